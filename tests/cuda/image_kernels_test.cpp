// SPDX-License-Identifier: Apache-2.0
// The kernels that models of images need, where there is no cuDNN, on the host's teams.
#include <fusionllm/cuda/operators.hpp>

#include "image_model.hpp"
#include "operator_check.hpp"

namespace fl = fusionllm;

TEST_CASE("operators of models of images by teams of one") {
  for (fl::i64 batch : {2, 5}) seam::check_operators<seam::image_model, seam::alone>({batch, 1});
}

TEST_CASE("operators of models of images by teams of threads") {
  seam::check_operators<seam::image_model, seam::together<32>>({3, 1});
}

TEST_CASE("operators of models of images with activations of 16 bits") {
  seam::check_operators<seam::image_model, seam::alone_bf16>({3, 1});
}
