// SPDX-License-Identifier: Apache-2.0
// `trainer<Model, Policies...>`: a model with the policies it is compiled with. As an object it trains inside its
// caller's program; given to `run` it is a whole decentralized trainer.
//
//   fl::trainer<my_model> t({.threads = 2, .batch = 32, .micro_batches = 4});
//   auto r = t.step({{"tokens", tokens, {32, 128}}, {"targets", targets, {32, 128}}});   // spans of your memory
//   t.predict({{"tokens", prompt, {1, 9}}}, {"logits", logits, {1, 9, 256}});
//
// Policies, in any order, each for a seat; a seat may hold a list from which configuration chooses:
//   device       cpu, reference<float>, cuda, ... or devices<...>
//   scheduler    op_fence, equal_number, ... or schedulers<...>
//   compressor   ada_top_k<>, no_compression, ... or compressors<...>
//   transport    asio_tcp, so far the only one: commands use it, a trainer as an object needs none
#pragma once

#include "../device/cpu.hpp"
#include "../device/reference.hpp"
#include "../schedule/schedulers.hpp"
#include "basic_trainer.hpp"

namespace fusionllm::inline v0 {

/// Those of an empty seat: with GPUs where the program has a .cu file (fusionllm_add_trainer's DEVICE).
using default_devices = std::conditional_t<FUSIONLLM_WITH_CUDA != 0, devices<cpu, reference<float>, reference<double>, cuda, cuda_tf32>,
                                           devices<cpu, reference<float>, reference<double>>>;

namespace detail {
/// What a list lacks for plain use is appended: "none" must be there for a lossless run.
template <class List>
struct with_none {
  using type = List;
};
template <class... C>
struct with_none<compressors<C...>> {
  using type = std::conditional_t<(std::is_same_v<C, no_compression> || ...), compressors<C...>, compressors<C..., no_compression>>;
};
}  // namespace detail

/// A trainer whose empty scheduler's and compressor's seats get the given lists.
template <class Model, class Schedulers, class Compressors, class... Policies>
class trainer_with : public basic_trainer {
  static_assert((detail::check_policy<Policies>::value && ...));

 public:
  using model = Model;
  using device_list = policy_for<device_seat, default_devices, Policies...>;
  using scheduler_list = policy_for<scheduler_seat, Schedulers, Policies...>;
  using compressor_list = typename detail::with_none<detail::compressors_of<policy_for<compressor_seat, Compressors, Policies...>>>::type;

  static const model_binding& binding() { return bind_model<Model, device_list, scheduler_list, compressor_list>(); }

  explicit trainer_with(trainer_options o = {}) : basic_trainer(binding(), std::move(o)) {}
};

template <class Model, class... Policies>
class trainer : public trainer_with<Model, built_in_schedulers, built_in_compressors, Policies...> {
 public:
  using trainer::trainer_with::trainer_with;
};

}  // namespace fusionllm::inline v0
