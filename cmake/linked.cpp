// SPDX-License-Identifier: Apache-2.0
// The companion of <fusionllm/linked.hpp>: what no program's model enters.
#include <fusionllm/linked.hpp>
#include <fusionllm/run/run.hpp>

namespace fusionllm::inline v0 {

std::vector<std::string> linked_schedulers::names() { return built_in_schedulers::names(); }
plan linked_schedulers::make(std::string_view name, const planning_problem& p) { return built_in_schedulers::make(name, p); }

std::string linked_compressors::names() { return built_in_compressors::names(); }
std::string_view linked_compressors::first() { return built_in_compressors::first(); }
std::unique_ptr<codec> linked_compressors::make(std::string_view label, const codec_options& options) {
  return built_in_compressors::make(label, options);
}

int run_linked(std::span<const named_model> models, std::span<const char* const> arguments, const program_options& program) {
  return detail::exit_status_of([&] { return detail::run_program(models, arguments, program); });
}

}  // namespace fusionllm::inline v0
