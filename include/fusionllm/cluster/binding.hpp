// SPDX-License-Identifier: Apache-2.0
// A model and the policies it was compiled with, as values: all that commands, broker and peers need to know of the
// user's types, so that they are compiled once and not once a model.
#pragma once

#include <charconv>
#include <memory>
#include <string>

#include "../compress/registry.hpp"
#include "../device/cuda.hpp"
#include "../device/table.hpp"
#include "../graph/fingerprint.hpp"
#include "../models/names.hpp"
#include "../runtime/stage_compute.hpp"
#include "../schedule/scheduler.hpp"
#include "policies.hpp"

namespace fusionllm::inline v0 {

struct device_choice {
  std::string_view name;
  std::span<const kernel_table* const> kernels;
  const vector_functions* vectors = nullptr;
  dtype real = dtype::f32;
  std::unique_ptr<device_context> (*make_context)(int threads) = nullptr;
  std::string arithmetic{};  ///< what the bits of its results depend on on this machine, such as its instruction set; empty: nothing
  std::unique_ptr<device_context> (*open)(int ordinal) = nullptr;  ///< instead of make_context: one of several of its kind
  int (*count)() = nullptr;                                        ///< how many this machine has

  /// The device that `asked`, such as "cpu" or "cuda:1", names. Errors: config; resource, for one that is not there.
  std::unique_ptr<device_context> make(std::string_view asked, int threads) const {
    const std::size_t colon = asked.find(':');
    if (!open) {
      if (colon != asked.npos) fail(errc::config, "device is ", asked, ", but of ", name, " there is only one: leave out ", asked.substr(colon));
      return make_context(threads);
    }
    int ordinal = 0;
    if (colon != asked.npos) {
      const char *begin = asked.data() + colon + 1, *end = asked.data() + asked.size();
      const auto [stop, wrong] = std::from_chars(begin, end, ordinal);
      if (wrong != std::errc{} || stop != end || ordinal < 0)
        fail(errc::config, "device is ", asked, ", expected a number after the colon, such as ", name, ":0");
    }
    return open(ordinal);
  }
  /// Whether this machine has one that can run all of a model.
  bool runs(const graph_view& g) const {
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      if (!kernels[i] && !g.nodes[i].op->placeholder) return false;
    return !count || count() > 0;
  }
};

struct model_binding {
  graph_view graph;
  u64 fingerprint = 0;
  const weight_names* file_names = &same_names;  ///< of parameters in files of weights
  std::vector<device_choice> devices;  ///< the first is the default
  std::vector<std::string> schedulers;
  plan (*make_plan)(std::string_view scheduler, const planning_problem&) = nullptr;
  std::string compressors;             ///< names, the first is the default
  std::string_view default_compressor;
  std::unique_ptr<codec> (*make_codec)(std::string_view label, const codec_options&) = nullptr;
  encoded_bytes_function encoded_bytes = nullptr;  ///< what the cost model asks of compressors

  /// "cuda:1" is of the device cuda; "auto" a GPU, if there is one and it can run all of the model, else the first.
  /// Errors: errc::config naming the devices there are.
  const device_choice& device(std::string_view name) const {
    if (name == "auto") {
      for (const auto& d : devices)
        if (d.open && d.runs(graph)) return d;
      return devices.front();
    }
    name = name.substr(0, name.find(':'));
    std::string all;
    for (const auto& d : devices) {
      if (name.empty() || d.name == name) return d;
      all += (all.empty() ? "" : ", ") + std::string(d.name);
    }
    fail(errc::config, "no device is called \"", name, "\", this program was built with: ", all);
  }
};

namespace detail {

/// Whether all inputs can be cut into micro-batches.
template <class Model>
constexpr bool inputs_have_batches() {
  for (const node& n : graph_of<Model>().nodes)
    if (n.op->placeholder && n.out.d[0] != batch) return false;
  return true;
}

template <class Device>
std::string arithmetic_of() {
  if constexpr (requires { Device::arithmetic(); }) return Device::arithmetic();
  else return {};
}
template <class Model, class Device>
device_choice choice_of() {
  return {Device::name, device_table<Model, Device>(), &vector_functions_of<Device>, dtype_of<typename Device::real>,
          [](int threads) -> std::unique_ptr<device_context> { return std::make_unique<typename Device::context>(threads); }, arithmetic_of<Device>()};
}
/// The tables of GPUs are in a .cu file of the program.
template <class Model, tabled_device Device>
device_choice choice_of() {
  const device_side& side = device_tables<Model, tables_of<Device>>();
  device_choice c{Device::name, side.tables, side.vectors, dtype_of<typename Device::real>};
  c.arithmetic = "a GPU";
  c.count = side.count;
  c.open = [](int ordinal) -> std::unique_ptr<device_context> {
    const device_side& of = device_tables<Model, tables_of<Device>>();
    require_same_model(graph_of<Model>(), of);
    return of.open(ordinal, Device::products);
  };
  return c;
}
template <class Model, class... Device>
std::vector<device_choice> choices_of(devices<Device...>) {
  return {choice_of<Model, Device>()...};
}

template <class T>
struct as_devices {
  using type = devices<T>;
};
template <class... D>
struct as_devices<devices<D...>> {
  using type = devices<D...>;
};
/// A list is what has names; one policy becomes a list of one.
template <class T>
struct as_schedulers {
  using type = schedulers<T>;
};
template <class T>
  requires requires { T::names(); }
struct as_schedulers<T> {
  using type = T;
};
template <class T>
struct as_compressors_list {
  using type = fusionllm::compressor_list<T>;
};
template <class T>
  requires requires { T::names(); }
struct as_compressors_list<T> {
  using type = T;
};
template <class T>
using compressors_of = typename as_compressors_list<T>::type;

}  // namespace detail

/// Makes the binding of a model to lists of devices, schedulers and compressors (or single ones).
template <class Model, class Devices, class Schedulers, class Compressors>
const model_binding& bind_model() {
  static_assert(detail::inputs_have_batches<Model>(),
                "a trainer cuts batches along the first dimension of each input, which has to be fl::batch");
  using schedulers_list = typename detail::as_schedulers<Schedulers>::type;
  using compressors_list = detail::compressors_of<Compressors>;
  static const model_binding b = [] {
    model_binding m;
    m.graph = graph_of<Model>();
    m.fingerprint = fingerprint(m.graph);
    m.file_names = &weight_names_of<Model>();
    m.devices = detail::choices_of<Model>(typename detail::as_devices<Devices>::type{});
    m.schedulers = schedulers_list::names();
    m.make_plan = &schedulers_list::make;
    m.compressors = compressors_list::names();
    m.default_compressor = compressors_list::first();
    m.make_codec = [](std::string_view label, const codec_options& o) { return compressors_list::make(label, o); };
    m.encoded_bytes = [](std::string_view label, double ratio, i64 rows, i64 columns) {
      codec_options o;
      o.ratio = ratio;
      return u64(compressors_list::make(label, o)->encoded_bytes(rows, columns));
    };
    return m;
  }();
  return b;
}

}  // namespace fusionllm::inline v0
