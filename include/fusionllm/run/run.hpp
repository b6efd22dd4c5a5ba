// SPDX-License-Identifier: Apache-2.0
// `run<trainer>(argc, argv)`: a program's main function with all its commands. Only here does the library print, install
// signal handlers and decide how the process ends; docs/errors.md has a paragraph for each exit status.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>

#include "evaluate.hpp"
#include "export.hpp"
#include "generate.hpp"
#include "graph.hpp"
#include "import.hpp"
#include "local.hpp"
#include "plan.hpp"
#include "predict.hpp"
#include "resolve.hpp"
#include "tokenize.hpp"
#include "train.hpp"
#include "usage.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline int dispatch(const command_call& call, std::string_view command) {
  if (command == "train") return train_command(call);
  if (command == "local") return local_command(call);
  if (command == "broker") return broker_command(call);
  if (command == "peer") return peer_command(call);
  if (command == "plan") return plan_command(call);
  if (command == "simulate") return simulate_command(call);
  if (command == "graph") return graph_command(call);
  if (command == "tokenize") return tokenize_command(call);
  if (command == "generate") return generate_command(call);
  if (command == "evaluate") return evaluate_command(call);
  if (command == "predict") return predict_command(call);
  if (command == "import") return import_command(call);
  if (command == "export") return export_command(call);
  fail(errc::internal, "the command '", command, "' has no function");
}

/// Of the process, before anything is opened. A file of the run must not get the number of a standard stream that was
/// closed: what is printed would go into it (and still fails to be written). A limit of a file's size is an error of the
/// write, not the end of the process.
inline void prepare_process() {
  int number;
  do number = ::open("/dev/null", O_RDONLY | O_NOCTTY);
  while (number >= 0 && number <= 2);
  if (number > 2) ::close(number);
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Errors: errc::config, naming the models there are.
inline const model_binding& model_of(std::span<const named_model> models, std::string_view name) {
  std::string all;
  for (const auto& m : models) {
    if (name.empty() || m.name == name) return m.binding();
    all += (all.empty() ? "" : ", ") + std::string(m.name);
  }
  if (all.empty()) fail(errc::config, "model is '", printable(name), "', this program has one model, which has no name: leave the key out");
  fail(errc::config, "model is '", printable(name), "', this program has ", all);
}

inline int run_program(std::span<const named_model> models, std::span<const char* const> arguments, const program_options& program) {
  prepare_process();
  const char* path = arguments.empty() ? "fusionllm" : arguments.front();
  std::string_view name = path;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const command_line line = parse_command_line(arguments.empty() ? arguments : arguments.subspan(1));
  std::string text;
  if (line.version) text = version_text();
  else if (line.help) text = line.command ? help_text(name, *line.command, usual_config(line, program.defaults)) : help_text(name);
  if (!text.empty()) return std::fputs(text.c_str(), stdout) < 0;
  const run_config config = resolve(line, program.defaults);
  return dispatch({model_of(models, config.model), config, line.options, program, path}, line.command->name);
}

/// Runs `f`; an exception becomes a line on stderr and an exit status.
template <class F>
int exit_status_of(F&& f) {
  const auto say = [](const char* what, errc code) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n", what);
    return int(code);
  };
  try {
    const int status = f();
    if (std::fflush(stdout) != 0) return say("cannot write the output: is the disk full?", errc::resource);
    return status;
  } catch (const error& e) {
    return say(e.what(), e.code());
  } catch (const std::bad_alloc&) {
    return say("out of memory: use smaller micro-batches, or more peers", errc::resource);
  } catch (const std::exception& e) {
    return say((std::string("internal: ") + e.what()).c_str(), errc::internal);
  }
}

}  // namespace detail

/// The whole of a program. `Trainer` is a `trainer<Model, Policies...>`. Returns the exit status.
template <class Trainer>
int run(int argc, const char* const* argv, const program_options& program = {}) {
  const named_model only{"", &Trainer::binding};
  return detail::exit_status_of([&] { return detail::run_program({&only, 1}, std::span(argv, std::size_t(argc)), program); });
}
/// Several models in one program: `--model NAME` is one of them, and the first if it is left out.
inline int run(std::initializer_list<named_model> models, int argc, const char* const* argv, const program_options& program = {}) {
  return detail::exit_status_of([&] {
    return detail::run_program(std::span(models.begin(), models.size()), std::span(argv, std::size_t(argc)), program);
  });
}

}  // namespace fusionllm::inline v0
