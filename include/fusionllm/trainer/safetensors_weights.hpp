// SPDX-License-Identifier: Apache-2.0
// A model's parameters in and out of safetensors, under the names that the model gives them in files.
//
//   fl::load_weights(trainer, "model.safetensors");
//   fl::save_weights(trainer, "model.safetensors", fl::stored_type::bf16);
#pragma once

#include "../models/names_match.hpp"
#include "../runtime/initialize.hpp"
#include "safetensors_files.hpp"
#include "safetensors_writer.hpp"

namespace fusionllm::inline v0 {

/// What to do about names that only the model or only the file has.
enum class weights_must { fit, fit_in_part };

/// Files of weights that fit a model, to read any of its parameters from.
class model_weights {
 public:
  /// Errors: errc::checkpoint: no such file, or damaged; errc::model listing what is missing, left over or of another
  /// shape. With `fit_in_part` parameters may be missing and tensors left over, which notes say.
  model_weights(const std::string& path, const graph_view& g, const weight_names& names, weights_must how = weights_must::fit)
      : files_(path), graph_(g) {
    std::vector<weight_in_file> found;
    for (const auto& e : files_.tensors()) found.push_back({e.tensor->name, e.tensor->shape});
    match_ = match_weights(names, g.params, found);
    const bool whole = how == weights_must::fit;
    std::string problems = list("of another shape: ", match_.wrong);
    if (whole || match_.missing.size() == g.params.size()) problems += list("missing: ", match_.missing);
    if (whole) problems += list("of no parameter: ", match_.unused);
    if (!problems.empty())
      fail(errc::model, "the weights in '", files_.path(), "' do not fit the model:", problems);
    for (const std::string& n : {list("missing, which start anew: ", match_.missing), list("not used: ", match_.unused)})
      if (!n.empty()) match_.notes.push_back(n.substr(3));
    for (std::size_t p = 0; p < match_.sources.size(); ++p) expect_equal(int(p));
  }

  const safetensors_files& files() const { return files_; }
  /// What was decided, for people.
  const std::vector<std::string>& notes() const { return match_.notes; }
  bool has(int parameter) const { return match_.sources[std::size_t(parameter)].tensor >= 0; }
  /// Whether reading it can find a value that no fp32 is near, so that a caller may try before changing anything.
  bool may_fail(int parameter, dtype real) const {
    if (!has(parameter)) return false;
    const stored_type t = source(parameter).tensor->type;
    return !info_of(t).readable || t == stored_type::int64 || t == stored_type::uint64 || t == stored_type::int32
           || t == stored_type::uint32 || (t == stored_type::f64 && real == dtype::f32);
  }

  /// The parameter's value, or, where the file has none, what it starts with for `seed`. Errors: those of
  /// `safetensors_file::read`.
  template <class T>
  void read(int parameter, std::span<T> out, u64 seed) const {
    const parameter_info& p = graph_.params[std::size_t(parameter)];
    if (!has(parameter)) return initialize(out.data(), p, seed);
    const auto e = source(parameter);
    if (match_.sources[std::size_t(parameter)].transposed) e.file->read_transposed(*e.tensor, std::size_t(p.dims.d[0]), out);
    else e.file->read(*e.tensor, out);
  }

 private:
  safetensors_files::entry source(int parameter) const {
    return files_.tensors()[std::size_t(match_.sources[std::size_t(parameter)].tensor)];
  }

  static std::string list(const char* what, const std::vector<std::string>& names) {
    constexpr std::size_t most = 24;
    if (names.empty()) return {};
    std::string text = "\n  " + std::to_string(names.size()) + ' ' + what;
    for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i ? ", " : "") + printable(names[i], 300);
    return names.size() > most ? text + ", ..." : text;
  }

  // Of a tied parameter a file may have several copies.
  void expect_equal(int parameter) const {
    for (int other : match_.sources[std::size_t(parameter)].equals) {
      const auto a = source(parameter), b = files_.tensors()[std::size_t(other)];
      const auto x = a.file->bytes(*a.tensor), y = b.file->bytes(*b.tensor);
      const std::size_t n = (std::min)(x.size(), y.size());
      if (a.tensor->type != b.tensor->type || std::memcmp(x.data(), y.data(), n) != 0)
        fail(errc::model, "'", printable(a.tensor->name), "' and '", printable(b.tensor->name), "' of '", files_.path(),
             "' differ, the model has one parameter for both, '", graph_.params[std::size_t(parameter)].path.view(), "'");
    }
  }

  safetensors_files files_;
  graph_view graph_;
  weight_match match_;
};

/// Writes all parameters of a model. `values_of(parameter)` gives memory in `real`, which is read before the next call.
/// Returns the bytes written. Errors: errc::checkpoint, errc::resource; errc::numeric: a value beyond `type`.
template <class ValuesOf>
u64 write_weights(const std::string& path, stored_type type, const graph_view& g, const weight_names& names, dtype real, ValuesOf&& values_of) {
  std::vector<safetensors_writer::tensor> tensors;
  std::unordered_map<std::string, std::pair<int, bool>> from;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    const extents& e = g.params[i].dims;
    written_name n = name_in_file(names, g.params[i].path.view());
    const bool transposed = n.transposed && e.rank == 2;
    std::vector<u64> shape;
    for (int k = 0; k < e.rank; ++k) shape.push_back(u64(e.d[std::size_t(transposed ? 1 - k : k)]));
    from[n.text] = {int(i), transposed};
    tensors.push_back({std::move(n.text), std::move(shape)});
  }
  safetensors_writer w(path, type, std::move(tensors));
  const auto add = [&]<class T>(const T* values, const parameter_info& p, bool transposed) {
    const std::span<const T> all(values, std::size_t(p.count()));
    if (transposed) w.add_transposed(all, std::size_t(p.dims.d[0]));
    else w.add(all);
  };
  for (const auto& t : w.tensors()) {
    const auto [i, transposed] = from[t.name];
    const parameter_info& p = g.params[std::size_t(i)];
    const std::byte* values = values_of(i);
    if (real == dtype::f64) add(reinterpret_cast<const double*>(values), p, transposed);
    else add(reinterpret_cast<const float*>(values), p, transposed);
  }
  w.finish();
  return w.bytes_written();
}

/// Takes the weights of a trainer from files; its optimizer's state and its step stay. Returns notes. Errors: as
/// `model_weights` and `safetensors_file::read`; nothing is changed then.
template <class Trainer>
std::vector<std::string> load_weights(Trainer& t, const std::string& path, weights_must how = weights_must::fit) {
  const graph_view& g = t.graph();
  const model_weights from(path, g, t.file_names(), how);
  const auto read = [&]<class T>(T*, bool trial) {
    std::vector<T> scratch;
    for (int i = 0; i < int(g.params.size()); ++i) {
      const std::size_t n = std::size_t(g.params[std::size_t(i)].count());
      if (!from.has(i) || (trial && !from.may_fail(i, dtype_of<T>))) continue;
      if (trial) scratch.resize(n);
      T* to = trial ? scratch.data() : t.parameter(g.params[std::size_t(i)].path.view()).template as<T>();
      from.read(i, std::span<T>(to, n), 0);
    }
  };
  for (bool trial : {true, false}) {
    if (t.real_type() == dtype::f64) read(static_cast<double*>(nullptr), trial);
    else read(static_cast<float*>(nullptr), trial);
  }
  return from.notes();
}

/// Writes the weights of a trainer. Errors: as `write_weights`.
template <class Trainer>
void save_weights(Trainer& t, const std::string& path, stored_type type = stored_type::f32) {
  write_weights(path, type, t.graph(), t.file_names(), t.real_type(), [&](int i) {
    return static_cast<const std::byte*>(t.parameter(t.graph().params[std::size_t(i)].path.view()).data);
  });
}

}  // namespace fusionllm::inline v0
