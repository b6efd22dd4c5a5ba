// SPDX-License-Identifier: Apache-2.0
// Steps of a model on weights and data that PyTorch has too, for the Python files beside this one. Prints one line of
// JSON: losses, seconds, resident memory.
//
//   vs_torch_steps_bench MODEL [--KEY VALUE]...
//   device         cpu, reference_f64
//   weights        safetensors to begin with; none: the model's own
//   batches        safetensors: (steps, batch, ...) for each input of the model; none: tokens of the model's own
//   gradients      safetensors to write: gradients of step 1, before clipping, by the names of the weights
//   first, last    safetensors to write: weights after step 1 and after all steps
//   batch, time, steps, threads, micro_batches, recompute, learning_rate, weight_decay
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include <fusionllm/models/gpt2.hpp>
#include <fusionllm/models/resnet.hpp>
#include <fusionllm/trainer/json_text.hpp>
#include <fusionllm/trainer/safetensors_weights.hpp>
#include <fusionllm/trainer/trainer.hpp>

namespace fl = fusionllm;

struct gpt2_tiny : fl::gpt<fl::gpt_config{.layers = 2, .width = 64, .heads = 2, .vocabulary = 503, .positions = 64}> {};
constexpr fl::resnet_config small_pictures() {
  fl::resnet_config c = fl::resnet<101>::config;
  c.side = 64;
  return c;
}
struct resnet101_64 : fl::residual_network<small_pictures()> {};
template <class Model>
constexpr auto binding = &fl::trainer<Model, fl::devices<fl::cpu, fl::reference<double>>>::binding;
const std::map<std::string, const fl::model_binding& (*)()> models{
    {"gpt2_tiny", binding<gpt2_tiny>},
    {"gpt2_small", binding<fl::gpt2<fl::gpt2_size::small>>},
    {"resnet101", binding<fl::resnet<101>>},
    {"resnet101_64", binding<resnet101_64>},
};

/// What the command line says.
class settings {
 public:
  settings(int argc, char** argv) {
    constexpr std::string_view keys = " device weights batches gradients first last batch time steps threads micro_batches"
                                      " recompute learning_rate weight_decay ";
    for (int i = 2; i < argc; i += 2) {
      const std::string key = std::strncmp(argv[i], "--", 2) ? "" : argv[i] + 2;
      if (i + 1 == argc || keys.find(' ' + key + ' ') == keys.npos)
        fl::fail(fl::errc::usage, "expected --KEY VALUE, with one of the keys", keys, "found '", argv[i], "'");
      values_[key] = argv[i + 1];
    }
  }
  std::string text(const char* key, const char* otherwise = "") const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  double number(const char* key, double otherwise) const {
    return values_.count(key) ? std::stod(values_.at(key)) : otherwise;
  }
  fl::i64 count(const char* key, fl::i64 otherwise) const { return fl::i64(number(key, double(otherwise))); }

 private:
  std::map<std::string, std::string> values_;
};

/// One input of the model for all steps, in the type that it is read in.
struct input_values {
  std::string name;
  fl::dtype type = fl::dtype::int32;
  fl::extents dims{};  ///< of one step
  std::vector<std::byte> bytes;

  fl::input_span step(fl::u64 s) const {
    const std::size_t one = std::size_t(dims.count()) * size_of(type);
    return {name, type, dims, bytes.data() + s * one % bytes.size()};
  }
  template <class T, class Value>
  void fill(fl::dtype t, std::size_t count, Value value) {
    type = t;
    bytes.resize(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      const T x = T(value(i));
      std::memcpy(bytes.data() + i * sizeof(T), &x, sizeof(T));
    }
  }
};

std::vector<input_values> read_inputs(const std::string& path, const fl::graph_view& g, fl::dtype real) {
  const fl::safetensors_file file(path);
  std::vector<input_values> all;
  for (const auto& n : g.nodes) {
    if (!n.op->placeholder) continue;
    const fl::stored_tensor* t = file.find(n.scope.view());
    if (!t || t->shape.size() < 2) fl::fail(fl::errc::data, "'", path, "' has no batches of '", n.scope.view(), "'");
    input_values v;
    v.name = std::string(n.scope.view());
    for (std::size_t k = 1; k < t->shape.size(); ++k) v.dims.d[std::size_t(v.dims.rank++)] = fl::i64(t->shape[k]);
    std::vector<double> values(t->count);
    file.read(*t, std::span(values));
    const auto value = [&](std::size_t i) { return values[i]; };
    if (n.type == fl::element::i32) v.fill<std::int32_t>(fl::dtype::int32, values.size(), value);
    else if (real == fl::dtype::f64) v.fill<double>(real, values.size(), value);
    else v.fill<float>(real, values.size(), value);
    all.push_back(std::move(v));
  }
  return all;
}

std::vector<input_values> own_tokens(const fl::graph_view& g, const settings& s) {
  const fl::i64 batch = s.count("batch", 4), time = s.count("time", 256), steps = s.count("steps", 1);
  std::vector<input_values> all(2);
  for (std::size_t k = 0; k < 2; ++k) {
    all[k].name = k ? "targets" : "tokens";
    all[k].dims = {2, {batch, time}};
    const auto vocabulary = fl::u32(g.params[0].dims.d[0]);
    all[k].fill<std::int32_t>(fl::dtype::int32, std::size_t(batch * time * steps),
                              [&](std::size_t i) { return fl::random_word({1, 0, 0, fl::u32(k)}, i) % vocabulary; });
  }
  return all;
}

/// A line of /proc/self/status, in KiB.
fl::i64 memory(const char* key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == std::string(key) + ':') {
      fl::i64 n = 0;
      file >> n;
      return n;
    }
  return 0;
}

fl::trainer_options options_of(const settings& s, const std::vector<input_values>& inputs) {
  fl::trainer_options o;
  o.device = s.text("device", "cpu");
  o.threads = int(s.count("threads", 2));
  o.batch = inputs[0].dims.d[0];
  o.time = inputs[0].dims.rank == 2 ? inputs[0].dims.d[1] : 1;
  o.micro_batches = int(s.count("micro_batches", 1));
  o.optimizer.learning_rate = s.number("learning_rate", 3e-4);
  o.optimizer.adamw.weight_decay = s.number("weight_decay", 0.1);
  const std::string how = s.text("recompute", "none");
  o.recompute = how == "block"       ? fl::recompute_policy::block
                : how == "selective" ? fl::recompute_policy::selective
                                     : fl::recompute_policy::none;
  return o;
}

void run(const fl::model_binding& model, const settings& s) {
  const fl::dtype real = model.device(s.text("device", "cpu")).real;
  const auto inputs = s.text("batches").empty() ? own_tokens(model.graph, s) : read_inputs(s.text("batches"), model.graph, real);
  const fl::i64 resident = memory("VmRSS");
  fl::basic_trainer t(model, options_of(s, inputs));
  if (!s.text("weights").empty()) fl::load_weights(t, s.text("weights"));
  const auto wide = real == fl::dtype::f64 ? fl::stored_type::f64 : fl::stored_type::f32;
  fl::json_text j;
  j.begin_object().field("who", "fusionllm").field("device", t.device_name()).field("parameters", parameter_count(t.graph()));
  j.key("losses").begin_array();
  std::vector<double> seconds;
  for (fl::u64 step = 0, steps = fl::u64(s.count("steps", 1)); step < steps; ++step) {
    std::vector<fl::input_span> spans;
    for (const auto& i : inputs) spans.push_back(i.step(step));
    const fl::nanoseconds begin = fl::machine_clock::read();
    j.value(t.step(fl::batch_view(std::span<const fl::input_span>(spans))).loss);
    seconds.push_back(double(fl::machine_clock::read() - begin) * 1e-9);
    if (step == 0 && !s.text("gradients").empty())
      fl::write_weights(s.text("gradients"), wide, t.graph(), t.file_names(), real, [&](int p) {
        return static_cast<const std::byte*>(t.gradient(t.graph().params[std::size_t(p)].path.view()).data);
      });
    if (step == 0 && !s.text("first").empty()) fl::save_weights(t, s.text("first"), wide);
  }
  if (!s.text("last").empty()) fl::save_weights(t, s.text("last"), wide);
  j.end_array().key("seconds").begin_array();
  for (double x : seconds) j.value(x);
  j.end_array().field("resident_before_kib", resident).field("peak_kib", memory("VmHWM"));
  std::printf("%s\n", j.end_object().text().c_str());
}

int main(int argc, char** argv) try {
  const auto model = models.find(argc > 1 ? argv[1] : "");
  if (model == models.end()) fl::fail(fl::errc::usage, "the first argument is gpt2_tiny, gpt2_small, resnet101 or resnet101_64");
  run(model->second(), settings(argc, argv));
} catch (const std::exception& e) {
  std::fprintf(stderr, "vs_torch_steps_bench: %s\n", e.what());
  return 1;
}
