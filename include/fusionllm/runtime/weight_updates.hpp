// SPDX-License-Identifier: Apache-2.0
// The end of a step that counts: primary owners update their parameters, send the new values to all who have a copy, and
// take those of others. What computes or copies runs on the device's thread, everything else on the reactor.
#pragma once

#include "micro_batches.hpp"
#include "message_box.hpp"
#include "outgoing_messages.hpp"

namespace fusionllm::inline v0 {

class weight_updates {
 public:
  weight_updates(const peer_share& share, const device_binding& device, const optimizer_settings& o, parameter_store& store, message_box& box,
                 outgoing_messages& out)
      : share_(share), device_(device), optimizer_(o), store_(store), box_(box), out_(out), leaving_(device.context->memory()),
        found_(device.context->memory(), store.parameters().size()) {}

  /// `rows`: samples of the batch. Errors: numeric, for a weight that is not finite any more.
  void update(u64 step, double gradient_scale, i64 rows) {
    const update_scalars s = scalars_at(optimizer_, step, gradient_scale);
    const auto& all = store_.parameters();
    updates_.clear();
    found_.clear();
    for (const auto& x : all) {
      if (!is_mine(x)) continue;
      const parameter_info& info = share_.parameter(x.parameter);
      const i64 n = share_.count_of(x.parameter);
      if (info.trained()) updates_.push_back({x.weight, x.gradient, x.m, x.v, n, bool(share_.rules[std::size_t(x.parameter)].decays)});
      else device_.vectors->decay(*device_.context, x.weight, x.gradient, n, kept(info.momentum, filled(rows, share_.p.micro_batches)));
    }
    (optimizer_.kind == optimizer_kind::adamw ? device_.vectors->adamw : device_.vectors->sgd)(*device_.context, updates_, s);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (is_mine(all[i]))
        device_.vectors->search(*device_.context, share_.real, all[i].weight, share_.count_of(all[i].parameter), found_.data() + i);
    copy_out();
    settle(*device_.context);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (found_[i])
        fail(errc::numeric, "the update of step ", step, " leaves an infinity or NaN in ", share_.parameter(all[i].parameter).path.view(),
             ": lower learning_rate and go on from the last checkpoint");
  }
  void send_values() {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (const auto& x = store_.parameters()[i]; values_[i])
        for (int to : share_.owners_at(x.parameter).holders)
          if (to != share_.self)
            out_.send_copy(out_.header(frame_kind::parameter, box_.step(), to, u32(x.parameter)), {values_[i], std::size_t(share_.bytes_of(x.parameter))});
  }

  bool has_copies() const {
    for (const auto& x : store_.parameters())
      if (is_copy(x)) return true;
    return false;
  }
  /// A parameter whose new values have not come yet, -1 if all have.
  int missing() const {
    for (const auto& x : store_.parameters())
      if (is_copy(x) && !values_of(x)) return x.parameter;
    return -1;
  }
  void prepare_copies() {
    copies_.clear();
    for (const auto& x : store_.parameters())
      if (is_copy(x)) copies_.push_back({x.weight, box_.bytes_of(*values_of(x))});
  }
  void copy() {
    device_memory* memory = device_.context->memory();
    for (const auto& [to, from] : copies_)
      if (memory) memory->upload(to, from.data(), from.size());
      else std::memcpy(to, from.data(), from.size());
  }
  void drop_copies() {
    for (const auto& x : store_.parameters())
      if (is_copy(x)) box_.drop(*values_of(x));
  }

 private:
  bool is_mine(const local_parameter& x) const { return x.primary && share_.updates(x.parameter); }
  bool is_copy(const local_parameter& x) const { return !x.primary && share_.updates(x.parameter); }
  /// What others have a copy of.
  void copy_out() {
    const auto leaves = [&](const local_parameter& x) { return is_mine(x) && share_.owners_at(x.parameter).holders.size() > 1; };
    u64 bytes = 0;
    for (const auto& x : store_.parameters())
      if (leaves(x)) bytes += aligned(share_.bytes_of(x.parameter));
    leaving_.begin(bytes);
    values_.assign(store_.parameters().size(), nullptr);
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (const auto& x = store_.parameters()[i]; leaves(x)) values_[i] = leaving_.copy(x.weight, share_.bytes_of(x.parameter));
  }
  const message_box::message* values_of(const local_parameter& x) const { return box_.find(frame_kind::parameter, u32(x.parameter), 0); }

  const peer_share& share_;
  device_binding device_;
  const optimizer_settings& optimizer_;
  parameter_store& store_;
  message_box& box_;
  outgoing_messages& out_;
  std::vector<std::pair<std::byte*, const_byte_span>> copies_;
  std::vector<parameter_update> updates_;
  host_copies leaving_;
  std::vector<const std::byte*> values_;  ///< by local parameter: what is sent; null: nothing
  shared_numbers<u32> found_;             ///< by local parameter: not finite
};

}  // namespace fusionllm::inline v0
