// SPDX-License-Identifier: Apache-2.0
// A model and the policies it was compiled with, as values: all that commands, broker and peers need to know of the
// user's types, so that they are compiled once and not once a model.
#pragma once

#include <memory>
#include <string>

#include "../compress/registry.hpp"
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

  /// Errors: errc::config naming the devices there are.
  const device_choice& device(std::string_view name) const {
    std::string all;
    for (const auto& d : devices) {
      if (name.empty() || d.name == name) return d;
      all += (all.empty() ? "" : ", ") + std::string(d.name);
    }
    fail(errc::config, "no device is called \"", name, "\", this program was built with: ", all);
  }
};

namespace detail {

template <class Model, class Device>
device_choice choice_of() {
  return {Device::name, device_table<Model, Device>(), &vector_functions_of<Device>, dtype_of<typename Device::real>,
          [](int threads) -> std::unique_ptr<device_context> { return std::make_unique<typename Device::context>(threads); }};
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
