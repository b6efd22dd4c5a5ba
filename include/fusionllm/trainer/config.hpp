// SPDX-License-Identifier: Apache-2.0
// Everything a run is told, as one struct, and the table of its keys. The table is all there is to a key: its flag, its
// place in a JSON file, its help, its range, and whether the peers of a run must agree on it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

struct run_config {
  // training
  std::string model{};
  i64 steps = 200;
  i64 stop_after = 0;
  i64 batch = 16;
  i64 time = 128;
  i64 micro_batches = 4;
  i64 groups = 1;
  i64 seed = 1;
  std::string optimizer = "adamw";
  double learning_rate = 1e-3;
  double min_learning_rate = 1e-4;
  std::string learning_rate_schedule = "cosine";
  i64 warmup = 20;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0.9;
  double clip = 1.0;
  std::string no_decay{};
  std::string freeze{};
  double spike_factor = 0;
  i64 max_skipped = 10;
  // data
  std::string data{};
  std::string token_format = "bytes";
  std::string tokenizer{};
  i64 stride = 1;
  i64 validation_interval = 0;
  i64 validation_batches = 8;
  // plan
  std::string schedule = "1f1b";
  std::string recompute = "none";
  std::string scheduler{};
  std::string use{};
  std::string topology{};
  bool emulate = false;
  bool strict_bits = false;
  // compression
  std::string compressor{};
  double ratio = 10;
  std::string select{};
  std::string values{};
  // this peer
  std::string device{};
  i64 threads = 1;
  i64 memory_mib = 0;
  // run folder
  std::string run{};
  i64 checkpoint_interval = 0;
  i64 keep = 2;
  bool resume = false;
  bool overwrite = false;
  i64 log_interval = 1;
  // network
  i64 peers = 0;
  std::string bind = "127.0.0.1:0";
  std::string announce{};
  std::string broker = "127.0.0.1:4000";
  std::string name{};
  i64 rank = 0;
  std::string run_id{};
  std::string token{};
  bool insecure_network = false;
  double connect_timeout = 30;
  double handshake_timeout = 0.9;
  double step_timeout = 300;
  double heartbeat = 1;
  double silence_timeout = 10;
};

enum class config_scope : u8 {
  lasting,  ///< the same on all peers of a run, and in a run and its resumption: it decides the results
  agreed,   ///< the same on all peers of a run; the handshake compares it
  local,    ///< each process has its own
  secret    ///< local, and written nowhere
};

/// One key. Exactly one of the four members is set.
template <class Owner>
struct basic_config_field {
  std::string_view key;      ///< as in JSON; the flag is --key, with '-' or '_'
  std::string_view section;  ///< of --help
  std::string_view help;
  config_scope scope = config_scope::local;
  i64 Owner::*integer = nullptr;
  double Owner::*real = nullptr;
  std::string Owner::*text = nullptr;
  bool Owner::*flag = nullptr;
  i64 least = 0, most = INT64_MAX;  ///< of an integer
  double low = 0, high = 1e18;      ///< of a real
  bool above_low = false;           ///< a real is above `low`, not equal to it
  std::string_view choices{};       ///< of a text: "a|b"; empty: any
};
using config_field = basic_config_field<run_config>;

namespace detail {

template <class Owner>
struct field_maker {
  using field = basic_config_field<Owner>;
  std::string_view section;
  config_scope scope;

  constexpr field integer(std::string_view key, i64 Owner::*m, i64 least, i64 most, std::string_view help) const {
    field f{key, section, help, scope};
    f.integer = m, f.least = least, f.most = most;
    return f;
  }
  constexpr field real(std::string_view key, double Owner::*m, double low, double high, std::string_view help) const {
    field f{key, section, help, scope};
    f.real = m, f.low = low, f.high = high;
    return f;
  }
  constexpr field positive(std::string_view key, double Owner::*m, double high, std::string_view help) const {
    field f = real(key, m, 0, high, help);
    f.above_low = true;
    return f;
  }
  constexpr field text(std::string_view key, std::string Owner::*m, std::string_view help, std::string_view choices = "") const {
    field f{key, section, help, scope};
    f.text = m, f.choices = choices;
    return f;
  }
  constexpr field flag(std::string_view key, bool Owner::*m, std::string_view help) const {
    field f{key, section, help, scope};
    f.flag = m;
    return f;
  }
};

constexpr auto make_config_fields() {
  using c = run_config;
  constexpr i64 many = 1'000'000'000'000;
  constexpr auto lasting = config_scope::lasting, agreed = config_scope::agreed, local = config_scope::local;
  constexpr field_maker<c> training{"training", lasting}, training_now{"training", agreed};
  constexpr field_maker<c> data{"data", lasting}, data_now{"data", agreed}, data_here{"data", local};
  constexpr field_maker<c> plan{"plan", agreed}, plan_here{"plan", local}, compression{"compression", agreed};
  constexpr field_maker<c> peer{"this peer", local}, folder{"run folder", local}, folder_all{"run folder", agreed};
  constexpr field_maker<c> network{"network", local}, network_all{"network", agreed}, secret{"network", config_scope::secret};
  return std::array{
      training.text("model", &c::model, "which of the program's models; empty: the first"),
      training.integer("steps", &c::steps, 0, many, "steps of the whole run"),
      training_now.integer("stop_after", &c::stop_after, 0, many, "stop, with a checkpoint, after this step; 0: at the end"),
      training.integer("batch", &c::batch, 1, 1 << 24, "samples of a step"),
      training.integer("time", &c::time, 1, 1 << 24, "tokens of a sample"),
      training.integer("micro_batches", &c::micro_batches, 1, 4096, "parts that a batch is cut into"),
      training.integer("groups", &c::groups, 1, 4096, "groups of micro-batches; replicas divide it"),
      training.integer("seed", &c::seed, 0, INT64_MAX, "of weights, samples and dropout"),
      training.text("optimizer", &c::optimizer, "how weights are updated", "adamw|sgd"),
      training.real("learning_rate", &c::learning_rate, 0, 1e6, "after the warm-up"),
      training.real("min_learning_rate", &c::min_learning_rate, 0, 1e6, "at the last step of a schedule that falls"),
      training.text("learning_rate_schedule", &c::learning_rate_schedule, "after the warm-up", "cosine|linear|constant"),
      training.integer("warmup", &c::warmup, 0, many, "steps in which the learning rate rises"),
      training.real("weight_decay", &c::weight_decay, 0, 1e3, "of weights, not of norms and biases"),
      training.real("beta1", &c::beta1, 0, 0.999999999, "adamw"),
      training.real("beta2", &c::beta2, 0, 0.999999999, "adamw"),
      training.positive("epsilon", &c::epsilon, 1, "adamw"),
      training.real("momentum", &c::momentum, 0, 0.999999999, "sgd"),
      training.real("clip", &c::clip, 0, 1e18, "largest norm of the whole gradient; 0: any"),
      training.text("no_decay", &c::no_decay, "patterns of parameters without weight decay, with commas"),
      training.text("freeze", &c::freeze, "patterns of parameters that are not trained, with commas"),
      training.real("spike_factor", &c::spike_factor, 0, 1e18, "skip a loss above this (more than 1) times the mean of the last 16; 0: never"),
      training_now.integer("max_skipped", &c::max_skipped, 0, many, "end the run after so many skipped steps in a row; 0: never"),
      data_here.text("data", &c::data, "file of text or tokens"),
      data.text("token_format", &c::token_format, "of the data file", "bytes|uint16|uint32"),
      data_here.text("tokenizer", &c::tokenizer, "folder or file of the vocabulary that the tokens are of"),
      data.integer("stride", &c::stride, 1, many, "tokens between the starts of samples"),
      data_now.integer("validation_interval", &c::validation_interval, 0, many, "steps of train between held-out losses; 0: at the end"),
      data_now.integer("validation_batches", &c::validation_batches, 0, 1 << 20, "batches of held-out data; 0: none while training, all in evaluate and predict"),
      plan.text("schedule", &c::schedule, "order of micro-batches", "gpipe|1f1b"),
      plan.text("recompute", &c::recompute, "what backward computes again instead of keeping it", "none|block|selective"),
      plan.text("scheduler", &c::scheduler, "who makes the plan; empty: the first compiled in"),
      plan_here.text("use", &c::use, "run the plan of this file"),
      plan_here.text("topology", &c::topology, "file of sites, devices and links"),
      plan_here.flag("emulate", &c::emulate, "pace links and hold operators as the topology says"),
      plan_here.flag("strict_bits", &c::strict_bits, "refuse peers that would give other bits than each other, instead of a warning"),
      compression.text("compressor", &c::compressor, "what links carry; empty: the first compiled in"),
      compression.real("ratio", &c::ratio, 0, 1e6, "compression of the slowest link; up to 1: raw"),
      compression.text("select", &c::select, "where top-k looks; empty: the compressor's own", "row|tensor"),
      compression.text("values", &c::values, "of top-k; empty: the compressor's own", "f32|f16|int8"),
      peer.text("device", &c::device, "what computes: cpu, cuda:1, ..., or auto; empty: the first compiled in"),
      peer.integer("threads", &c::threads, 1, 1024, "of the device"),
      peer.integer("memory_mib", &c::memory_mib, 0, 1 << 30, "memory that it may use, which planner and train keep to; 0: what the machine has"),
      folder.text("run", &c::run, "folder of config, metrics and checkpoints; empty: none is kept"),
      folder_all.integer("checkpoint_interval", &c::checkpoint_interval, 0, many, "steps; 0: at the end"),
      folder.integer("keep", &c::keep, 1, 1'000'000, "checkpoints that are kept"),
      folder_all.flag("resume", &c::resume, "go on from the newest checkpoint of the run folder"),
      folder.flag("overwrite", &c::overwrite, "begin anew in a run folder that holds a run, which is removed"),
      folder.integer("log_interval", &c::log_interval, 1, many, "steps between plain lines of progress"),
      network_all.integer("peers", &c::peers, 0, 4096, "peers of the run; 0: the devices of the topology, or 1"),
      network.text("bind", &c::bind, "address to listen on; port 0: any"),
      network.text("announce", &c::announce, "address that others dial; empty: the bound one"),
      network.text("broker", &c::broker, "address of the broker"),
      network.text("name", &c::name, "of this peer in messages; empty: peer-RANK"),
      network.integer("rank", &c::rank, 0, 4095, "of this peer, below peers; in a topology, the number of its device"),
      network.text("run_id", &c::run_id, "what tells runs on one network apart"),
      secret.text("token", &c::token, "secret of the run; rather set $FUSIONLLM_TOKEN"),
      network.flag("insecure_network", &c::insecure_network, "allow unencrypted traffic beyond this machine"),
      network.positive("connect_timeout", &c::connect_timeout, 86400, "seconds to find broker and peers"),
      network.positive("handshake_timeout", &c::handshake_timeout, 86400, "seconds for a stranger to say who it is"),
      network.real("step_timeout", &c::step_timeout, 1e-3, 864000, "seconds a step may wait for a peer"),
      network.real("heartbeat", &c::heartbeat, 1e-3, 3600, "seconds between signs of life"),
      network.positive("silence_timeout", &c::silence_timeout, 86400, "seconds until a silent peer counts as lost"),
  };
}

}  // namespace detail

inline constexpr auto config_fields = detail::make_config_fields();

}  // namespace fusionllm::inline v0
