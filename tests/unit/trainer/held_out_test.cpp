// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/held_out.hpp>

#include <fusionllm/ops/ops.hpp>
#include <fusionllm/trainer/text_data.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include "catch.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;

namespace {

struct pairs {  // the logits of the next token are a row of a table
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    return fl::cross_entropy(fl::embedding(tokens, fl::parameter<128, 128>(g, "table")), targets);
  }
};
using trainer = fl::trainer<pairs, fl::reference<double>>;
constexpr fl::i64 steps = 4;  // times of a sample

// `samples` held-out samples behind 180 bytes to train on, no two alike.
fl::text_data text_of(const fusionllm_test::temporary_folder& folder, fl::i64 samples, fl::i64 rows) {
  std::string text(std::size_t(9 * (steps * samples + 1)), 'x');
  for (fl::i64 i = 0; i <= steps * samples; ++i) text += char(33 + (i * i + i / steps) % 90);
  return fl::text_data(fl::token_file(folder.write("text", text)), {.time = steps, .rows = rows});
}

fl::held_out_loss loss_of(const fl::data_source& data, fl::i64 most = 1000) {
  trainer t({.batch = data.batch(), .time = steps, .micro_batches = 2});
  fl::data_buffers buffers(t.graph(), t.real_type(), {data.batch(), steps});
  return fl::evaluate_held_out(t, data, buffers, most);
}

}  // namespace

TEST_CASE("every held-out sample counts once, whatever the batch") {
  const fusionllm_test::temporary_folder folder;
  for (fl::i64 samples : {1, 3, 5, 8}) {
    const auto one_by_one = loss_of(text_of(folder, samples, 1));
    REQUIRE(one_by_one.rows == samples);
    for (fl::i64 rows : {2, 4, 16}) {
      const auto r = loss_of(text_of(folder, samples, rows));
      INFO(samples << " samples in batches of " << rows);
      CHECK(r.rows == samples);
      CHECK(r.loss == Approx(one_by_one.loss).epsilon(1e-12));
    }
  }
}

TEST_CASE("so many batches at most; none is no loss") {
  const fusionllm_test::temporary_folder folder;
  CHECK(loss_of(text_of(folder, 5, 2), 2).rows == 4);
  CHECK(loss_of(text_of(folder, 5, 2), 0).rows == 0);
  const fl::text_data short_one(fl::token_file(folder.write("short", "0123456789")), {.time = steps, .rows = 2});
  CHECK(loss_of(short_one).rows == 0);
}
