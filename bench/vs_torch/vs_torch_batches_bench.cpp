// SPDX-License-Identifier: Apache-2.0
// The samples that a run trains on, and those that are held out, in its order, for programs in other languages:
// `vs_torch_batches_bench TOKENS OUTPUT STEPS BATCH TIME SEED VALIDATION` writes of the token file TOKENS STEPS + VALIDATION
// batches, each BATCH x (TIME + 1) tokens as int32, of which the last TIME are the targets.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fusionllm/trainer/token_data.hpp>
#include <fusionllm/trainer/whole_file.hpp>

namespace fl = fusionllm;

int main(int argc, char** argv) try {
  if (argc != 8) fl::fail(fl::errc::usage, "expected TOKENS OUTPUT STEPS BATCH TIME SEED VALIDATION");
  const fl::i64 steps = std::atoll(argv[3]), batch = std::atoll(argv[4]), time = std::atoll(argv[5]);
  const fl::i64 validation = std::atoll(argv[7]);
  const fl::token_data data(fl::mapped_token_file(argv[1]), {.time = time, .rows = batch, .seed = fl::u64(std::atoll(argv[6]))});
  std::vector<std::int32_t> tokens(std::size_t(batch * time)), targets(tokens.size());
  const fl::output_span inputs[] = {{"tokens", std::span(tokens), {batch, time}}, {"targets", std::span(targets), {batch, time}}};
  fl::whole_file out(argv[2], fl::errc::data, "file of batches");
  for (fl::i64 s = 0; s < steps + validation; ++s) {
    if (s < steps) data.fill(fl::u64(s), 0, batch, inputs);
    else data.fill_validation(s - steps, 0, batch, inputs);
    for (std::size_t row = 0; row < tokens.size(); row += std::size_t(time)) {
      out.write(&tokens[row], sizeof tokens[0]);
      out.write(&targets[row], std::size_t(time) * sizeof targets[0]);
    }
  }
  out.finish();
} catch (const std::exception& e) {
  std::fprintf(stderr, "vs_torch_batches_bench: %s\n", e.what());
  return 1;
}
