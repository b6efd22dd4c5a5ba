// SPDX-License-Identifier: Apache-2.0
// `generate`: continues a prompt, token by token, with the model's output "logits". Each draw is a function of the seed
// and the token's number.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "../core/philox.hpp"
#include "token_text.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

/// Draws a token from softmax(logits / temperature) among the `top` likeliest (0: all); temperature 0 takes the
/// likeliest, of equals the lowest. `chance` in [0, 1).
inline i64 draw_token(std::span<const double> logits, double temperature, i64 top, double chance) {
  std::vector<i64> order(logits.size());
  std::iota(order.begin(), order.end(), i64(0));
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
  if (temperature == 0) return order[0];
  if (top > 0 && top < i64(order.size())) order.resize(std::size_t(top));
  std::vector<double> weight;
  double sum = 0;
  for (i64 token : order) {
    weight.push_back(std::exp((logits[std::size_t(token)] - logits[std::size_t(order[0])]) / temperature));
    sum += weight.back();
  }
  double left = chance * sum;
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    if ((left -= weight[i]) < 0) return order[i];
  return order.back();
}

namespace detail {

/// Feeds the model the last tokens and gives the logits after them.
class next_token_logits {
 public:
  explicit next_token_logits(basic_trainer& t, i64 longest) : trainer_(t), longest_(longest) {
    const int at = find_output(t.graph(), "logits");
    if (at < 0) fail(errc::model, "the model has no output 'logits': name it with fl::output(\"logits\", ...) to generate");
    const extents& e = t.graph().nodes[std::size_t(at)].out;
    if (e.rank != 3 || e.d[0] != batch || e.d[1] != time || e.d[2] < 1)
      fail(errc::model, "the model's 'logits' have shape ", shape_text{e}, ", expected (batch, time, vocabulary)");
    vocabulary_ = e.d[2];
  }

  i64 vocabulary() const { return vocabulary_; }
  const std::vector<double>& after(const std::vector<std::int32_t>& tokens) {
    const i64 n = (std::min)(longest_, i64(tokens.size()));
    const std::span<const std::int32_t> last(tokens.data() + (i64(tokens.size()) - n), std::size_t(n));
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

  basic_trainer& trainer_;
  i64 longest_, vocabulary_ = 0;
  std::vector<double> logits_;
};

}  // namespace detail

/// The prompt and `length` tokens more; each is shown to `seen` as it comes, as a span of one.
template <class Seen>
std::vector<std::int32_t> generate_tokens(basic_trainer& t, std::vector<std::int32_t> tokens, const run_config& c,
                                          const command_options& o, Seen&& seen) {
  detail::next_token_logits model(t, c.time);
  for (i64 i = 0; i < o.length; ++i) {
    const double chance = double(random_word({u64(c.seed), 0, 0, 0x47454E45}, u64(i))) * 0x1p-32;
    tokens.push_back(std::int32_t(draw_token(model.after(tokens), o.temperature, o.top, chance)));
    seen(std::span<const std::int32_t>(tokens).last(1));
  }
  return tokens;
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
  show(words.add(prompt));
  generate_tokens(t, prompt, c, call.options, [&](std::span<const std::int32_t> token) { show(words.add(token)); });
  show(words.finish());
  if (call.options.json) {
    json_text j;
    j.begin_object().field("prompt", std::string_view(call.options.prompt)).field("text", std::string_view(text)).end_object();
    text = j.text();
  }
  std::fprintf(call.out, "%s\n", text.c_str());
  return 0;
}

}  // namespace fusionllm::inline v0
