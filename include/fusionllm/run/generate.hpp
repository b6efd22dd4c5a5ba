// SPDX-License-Identifier: Apache-2.0
// `generate`: continues a prompt, token by token, with the model's output "logits". Each draw is a function of the seed
// and the token's number.
#pragma once

#include <vector>

#include "../core/philox.hpp"
#include "sampling.hpp"
#include "token_text.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Feeds the model the last tokens and gives the logits after them. A model that can be decoded sees each token once, as
/// long as all fit its `time`.
class next_token_logits {
 public:
  explicit next_token_logits(basic_trainer& t, i64 longest) : trainer_(t), longest_(longest) {
    const int at = find_output(t.graph(), "logits");
    if (at < 0) fail(errc::model, "the model has no output 'logits': name it with fl::output(\"logits\", ...) to generate");
    const extents& e = t.graph().nodes[std::size_t(at)].out;
    if (e.rank != 3 || e.d[0] != batch || e.d[1] != time || e.d[2] < 1)
      fail(errc::model, "the model's 'logits' have shape ", shape_text{e}, ", expected (batch, time, vocabulary)");
    vocabulary_ = e.d[2];
    input_ = find_input(t.graph(), "tokens");
    if (input_ < 0) fail(errc::model, "the model has no input 'tokens': name it with fl::input<...>(g, \"tokens\") to generate");
    decoder_ = t.decoder("logits");
    inputs_.resize(t.graph().nodes.size());
  }

  i64 vocabulary() const { return vocabulary_; }
  const std::vector<double>& after(const std::vector<std::int32_t>& tokens) {
    const i64 all = i64(tokens.size()), n = (std::min)(longest_, all);
    const std::span<const std::int32_t> last(tokens.data() + (all - n), std::size_t(n));
    if (decoder_) return decode(last, all);
    return trainer_.real_type() == dtype::f64 ? run<double>(last, n) : run<float>(last, n);
  }

 private:
  template <class T>
  const std::vector<double>& run(std::span<const std::int32_t> last, i64 n) {
    std::vector<T> all(std::size_t(n * vocabulary_));
    trainer_.predict({{"tokens", last, {1, n}}}, {"logits", std::span<T>(all), {1, n, vocabulary_}});
    logits_.assign(all.end() - vocabulary_, all.end());
    return logits_;
  }

  // Tokens that moved on within the window have other positions: then all are seen again.
  const std::vector<double>& decode(std::span<const std::int32_t> last, i64 all) {
    const i64 n = i64(last.size()), past = n == all && seen_ < n ? seen_ : 0;
    inputs_[std::size_t(input_)] = last.data() + past;
    const tensor_ref r = decoder_->run({1, n - past}, inputs_, 1, past);
    seen_ = n;
    const i64 at = r.count() - vocabulary_;
    logits_.resize(std::size_t(vocabulary_));
    for (i64 i = 0; i < vocabulary_; ++i)
      logits_[std::size_t(i)] = r.type == dtype::f64 ? r.as<double>()[at + i] : double(r.as<float>()[at + i]);
    return logits_;
  }

  basic_trainer& trainer_;
  i64 longest_, vocabulary_ = 0, seen_ = 0;
  int input_ = -1;
  std::unique_ptr<inference> decoder_;
  std::vector<const void*> inputs_;  ///< by node
  std::vector<double> logits_;
};

}  // namespace detail

/// Draws up to `length` tokens after the prompt; each is given to `seen` as it comes, as a span of one, until that says
/// that it is enough.
template <class Seen>
void generate_tokens(basic_trainer& t, std::vector<std::int32_t> tokens, const run_config& c, const command_options& o, Seen&& seen) {
  detail::next_token_logits model(t, c.time);
  const draw_settings draw{o.temperature, o.top_k, o.top_p};
  for (i64 i = 0; i < o.length; ++i) {
    const double chance = double(random_word({u64(c.seed), 0, 0, 0x47454E45}, u64(i))) * 0x1p-32;
    tokens.push_back(std::int32_t(draw_token(model.after(tokens), draw, chance)));
    if (!seen(std::span<const std::int32_t>(tokens).last(1))) return;
  }
}

inline int generate_command(const command_call& call) {
  run_config c = call.config;
  c.batch = c.micro_batches = c.groups = 1;  // one sample at a time
  basic_trainer t(call.model, trainer_options_of(c));
  load_trained(call, t);
  token_text words(c, detail::next_token_logits(t, c.time).vocabulary());
  const auto prompt = words.tokens(call.options.prompt, call.options.special ? special_text::token : special_text::ordinary);
  std::string text;
  const auto show = [&](const std::string& more) {
    if (call.options.json) text += more;
    else if (!more.empty()) std::fwrite(more.data(), 1, more.size(), call.out), std::fflush(call.out);
  };
  text_until written(call.options.stop);
  show(words.add(prompt));
  generate_tokens(t, prompt, c, call.options, [&](std::span<const std::int32_t> token) {
    show(written.add(words.add(token)));
    return !written.ended();
  });
  show(written.add(words.finish()) + written.finish());
  if (call.options.json) {
    json_text j;
    j.begin_object().field("prompt", std::string_view(call.options.prompt)).field("text", std::string_view(text)).end_object();
    text = j.text();
  }
  std::fprintf(call.out, "%s\n", text.c_str());
  return 0;
}

}  // namespace fusionllm::inline v0
