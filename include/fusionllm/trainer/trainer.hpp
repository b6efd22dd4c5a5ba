// SPDX-License-Identifier: Apache-2.0
// `trainer<Model, Policies...>`: a model with the policies it is compiled with. As an object it trains inside its
// caller's program; given to `run` it is a whole decentralized trainer.
//
//   fl::trainer<my_model> t({.batch = 32, .micro_batches = 4, .threads = 2});
//   auto r = t.step({{"tokens", tokens, {32, 128}}, {"targets", targets, {32, 128}}});   // spans of your memory
//   t.predict({{"tokens", prompt, {1, 9}}}, {"logits", logits, {1, 9, 256}});
//
// Policies, in any order, each for a seat; a seat may hold a list from which configuration chooses:
//   device       cpu, reference<float>, ... or devices<...>
//   scheduler    op_fence, equal_number, ... or schedulers<...>
//   compressor   ada_top_k<>, no_compression, ... or compressors<...>
//   transport    asio_tcp
#pragma once

#include "../device/cpu.hpp"
#include "../device/reference.hpp"
#include "../schedule/schedulers.hpp"
#include "basic_trainer.hpp"

namespace fusionllm::inline v0 {

namespace detail {
/// What a list lacks for plain use is appended: "none" must be there for a lossless run.
template <class List>
struct with_none;
template <class... C>
struct with_none<compressors<C...>> {
  using type = std::conditional_t<(std::is_same_v<C, no_compression> || ...), compressors<C...>, compressors<C..., no_compression>>;
};
}  // namespace detail

template <class Model, class... Policies>
class trainer : public basic_trainer {
 public:
  using model = Model;
  using device_list = policy_for<device_seat, devices<cpu, reference<float>, reference<double>>, Policies...>;
  using scheduler_list = policy_for<scheduler_seat, built_in_schedulers, Policies...>;
  using compressor_list = typename detail::with_none<fusionllm::compressor_list<policy_for<compressor_seat, built_in_compressors, Policies...>>>::type;

  static const model_binding& binding() { return bind_model<Model, device_list, scheduler_list, compressor_list>(); }

  explicit trainer(trainer_options o = {}) : basic_trainer(binding(), std::move(o)) {}
};

}  // namespace fusionllm::inline v0
