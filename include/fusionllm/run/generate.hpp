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

/// The output that text is generated with, decoded where the model can be. Errors: model.
inline forward_output logits_output(const graph_view& g, i64 longest) {
  const int at = find_output(g, "logits");
  if (at < 0) fail(errc::model, "the model has no output 'logits': name it with fl::output(\"logits\", ...) to generate");
  const extents& e = g.nodes[std::size_t(at)].out;
  if (e.rank != 3 || e.d[0] != batch || e.d[1] != time || e.d[2] < 1)
    fail(errc::model, "the model's 'logits' have shape ", shape_text{e}, ", expected (batch, time, vocabulary)");
  const int input = find_input(g, "tokens");
  if (input < 0) fail(errc::model, "the model has no input 'tokens': name it with fl::input<...>(g, \"tokens\") to generate");
  const flags needed = slice(g, at);
  for (int i = 0; i < g.size(); ++i)
    if (const node& n = g.nodes[std::size_t(i)]; n.op->placeholder && needed[std::size_t(i)] && i != input)
      fail(errc::model, "the model's 'logits' need the input '", n.scope.view(), "' beside 'tokens': generate has none");
  return {at, decodable(g, at) ? inference_kind::decoding : inference_kind::whole, {1, longest}, 1};
}

/// Errors: numeric: logits that no token can be drawn by. An infinity below zero is a token that never comes.
inline void check_logits(std::span<const double> logits, std::size_t tokens) {
  const char* wrong = nullptr;
  bool any = false;
  std::size_t i = 0;
  for (; i < logits.size() && !wrong; ++i) {
    if (std::isnan(logits[i])) wrong = "no number";
    else if (logits[i] == INFINITY) wrong = "infinite";
    any |= logits[i] > -INFINITY;
  }
  if (any && !wrong) return;
  const std::string what = wrong ? "the logit of token " + std::to_string(i - 1) + " is " + wrong : "the logits of all tokens are -infinity";
  fail(errc::numeric, what, " after ", tokens, " tokens of text: weights of this checkpoint are damaged or grew without bounds; use an "
       "older one with --checkpoint, or train again with a lower --learning-rate");
}

/// Feeds the model the last tokens and gives the logits after them. A model that can be decoded sees each token once, as
/// long as all fit its `time`. Errors: numeric, for logits as of `check_logits`.
class next_token_logits {
 public:
  next_token_logits(model_outputs& m, const forward_output& what)
      : model_(m), pass_(m.pass_of(what.node)), what_(what), input_(find_input(m.graph(), "tokens")), inputs_(m.graph().nodes.size()) {}

  i64 vocabulary() const { return model_.graph().nodes[std::size_t(what_.node)].out.d[2]; }
  const std::vector<double>& after(const std::vector<std::int32_t>& tokens) {
    const i64 all = i64(tokens.size()), n = (std::min)(what_.bounds.time, all);
    // Tokens that moved on within the window have other positions: then all are seen again.
    const i64 past = what_.kind == inference_kind::decoding && n == all && seen_ < n ? seen_ : 0;
    inputs_[std::size_t(input_)] = tokens.data() + (all - n) + past;
    check_indices(model_.graph(), inputs_, {1, n - past});
    const tensor_ref r = pass_.run({1, n - past}, inputs_, 1, past, true);
    seen_ = n;
    const i64 at = r.count() - vocabulary();
    logits_.resize(std::size_t(vocabulary()));
    for (i64 i = 0; i < vocabulary(); ++i) logits_[std::size_t(i)] = real_element(r.data, r.type, at + i);
    check_logits(logits_, tokens.size());
    return logits_;
  }

 private:
  model_outputs& model_;
  forward_pass& pass_;
  forward_output what_;
  int input_;
  i64 seen_ = 0;
  std::vector<const void*> inputs_;  ///< by node
  std::vector<double> logits_;
};

}  // namespace detail

/// Draws up to `length` tokens after the prompt; each is given to `seen` as it comes, as a span of one, until that says
/// that it is enough.
template <class Seen>
void generate_tokens(detail::next_token_logits& model, std::vector<std::int32_t> tokens, const run_config& c, const command_options& o, Seen&& seen) {
  const draw_settings draw{o.temperature, o.top_k, o.top_p};
  for (i64 i = 0; i < o.length; ++i) {
    const double chance = double(random_word({u64(c.seed), 0, 0, 0x47454E45}, u64(i))) * 0x1p-32;
    tokens.push_back(std::int32_t(draw_token(model.after(tokens), draw, chance)));
    if (!seen(std::span<const std::int32_t>(tokens).last(1))) return;
  }
}

inline int generate_command(const command_call& call) {
  const run_config& c = call.config;
  const forward_output logits = detail::logits_output(call.model.graph, c.time);
  token_text words(c, call.model.graph.nodes[std::size_t(logits.node)].out.d[2]);
  const auto prompt = words.tokens(call.options.prompt, call.options.special ? special_text::token : special_text::ordinary);
  const trained t = open_trained(call, {1, c.time}, {logits});
  detail::next_token_logits model(*t.model, logits);
  std::string text;
  const auto show = [&](const std::string& more) {
    if (call.options.json) text += more;
    else if (!more.empty()) std::fwrite(more.data(), 1, more.size(), call.out), std::fflush(call.out);
  };
  text_until written(call.options.stop);
  show(words.add(prompt));
  generate_tokens(model, prompt, c, call.options, [&](std::span<const std::int32_t> token) {
    show(written.add(words.add(token)));
    return !written.ended();
  });
  show(written.add(words.finish()));
  show(written.finish());
  if (call.options.json) {
    json_text j;
    j.begin_object().field("prompt", std::string_view(call.options.prompt)).field("text", std::string_view(text)).end_object();
    text = j.text();
  }
  std::fprintf(call.out, "%s\n", text.c_str());
  return 0;
}

}  // namespace fusionllm::inline v0
