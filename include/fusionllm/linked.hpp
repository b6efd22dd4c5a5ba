// SPDX-License-Identifier: Apache-2.0
// The same library with its commands, schedulers and compressors compiled once, apart from the program: in CMake,
// fusionllm_add_trainer(name SOURCES main.cpp LINKED). The program's own file then holds its model and its devices only
// and compiles in a fraction of the time.
//
//   using trainer = fl::linked_trainer<my_model>;
//   int main(int argc, char** argv) { return fl::run_linked<trainer>(argc, argv); }
#pragma once

#include "run/program.hpp"
#include "trainer/trainer.hpp"

namespace fusionllm::inline v0 {

/// `built_in_schedulers`, from the companion.
struct linked_schedulers {
  using seat = scheduler_seat;
  static std::vector<std::string> names();
  static plan make(std::string_view name, const planning_problem& p);
};

/// `built_in_compressors`, from the companion.
struct linked_compressors {
  using seat = compressor_seat;
  static std::string names();
  static std::string_view first();
  static std::unique_ptr<codec> make(std::string_view label, const codec_options& options);
};

/// As `trainer`, with the companion's schedulers and compressors in empty seats.
template <class Model, class... Policies>
class linked_trainer : public trainer_with<Model, linked_schedulers, linked_compressors, Policies...> {
 public:
  using linked_trainer::trainer_with::trainer_with;
};

/// As `run`, with the companion's commands.
int run_linked(std::span<const named_model> models, std::span<const char* const> arguments, const program_options& program);
template <class Trainer>
int run_linked(int argc, const char* const* argv, const program_options& program = {}) {
  const named_model only{"", &Trainer::binding};
  return run_linked({&only, 1}, std::span(argv, std::size_t(argc)), program);
}
/// Several models in one program: `--model NAME` is one of them, and the first if it is left out.
///
///   return fl::run_linked({{"small", &small::binding}, {"large", &large::binding}}, argc, argv);
inline int run_linked(std::initializer_list<named_model> models, int argc, const char* const* argv, const program_options& program = {}) {
  return run_linked(std::span(models.begin(), models.size()), std::span(argv, std::size_t(argc)), program);
}

}  // namespace fusionllm::inline v0
