// SPDX-License-Identifier: Apache-2.0
// The kernels that language models need, on the host's teams.
#include <fusionllm/cuda/operators.hpp>

#include "operator_check.hpp"
#include "text_model.hpp"

namespace fl = fusionllm;

TEST_CASE("operators of language models by teams of one") {
  for (const fl::sizes s : {fl::sizes{1, 1}, {2, 5}, {3, 33}, {1, 130}}) {
    seam::check_operators<seam::text_model, seam::alone>(s);
    seam::check_operators<seam::llama_like, seam::alone>(s);
  }
}

TEST_CASE("operators of language models by teams of threads") {
  seam::check_operators<seam::text_model, seam::together<32>>({2, 7});
  seam::check_operators<seam::llama_like, seam::together<32>>({2, 7});
}

TEST_CASE("operators of language models with activations of 16 bits") {
  for (const fl::sizes s : {fl::sizes{2, 5}, {1, 70}}) {
    seam::check_operators<seam::text_model, seam::alone_bf16>(s);
    seam::check_operators<seam::llama_like, seam::alone_bf16>(s);
  }
}
