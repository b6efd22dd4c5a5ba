// SPDX-License-Identifier: Apache-2.0
// A byte-level GPT as a whole decentralized trainer; `gpt --help` lists its commands. examples/demo.sh trains it on
// Shakespeare over four processes.
// ctest: graph
// ctest: train --data @DATA@/shakespeare.txt --steps 3 --batch 4 --time 32 --validation_batches 2 --run @WORK@/run --overwrite
#include "gpt.hpp"

#include <fusionllm/linked.hpp>

using trainer = fl::linked_trainer<byte_gpt>;

int main(int argc, char** argv) {
  return fl::run_linked<trainer>(argc, argv, {.defaults = {.batch = 16, .time = 128, .threads = 2}});
}
