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

TEST_CASE("targets that the loss ignores have no weight, whatever the batch") {
  class masked final : public fl::data_source {  // row r has r targets that count, of `steps`
   public:
    explicit masked(fl::i64 rows) : rows_(rows) {}
    fl::i64 batch() const override { return rows_; }
    fl::i64 validation_batches() const override { return (steps + rows_) / rows_; }
    fl::i64 validation_rows(fl::i64 index) const override { return (std::min)(rows_, steps + 1 - index * rows_); }
    void fill(fl::u64, fl::i64, fl::i64, std::span<const fl::output_span>) const override { throw std::logic_error("not asked"); }
    void fill_validation(fl::i64 index, fl::i64 begin, fl::i64 end, std::span<const fl::output_span> inputs) const override {
      for (const auto& input : inputs)
        for (fl::i64 r = begin; r < end; ++r)
          for (fl::i64 t = 0; t < steps; ++t) {
            const fl::i64 row = index * rows_ + r, token = (7 * row + 3 * t) % 128;
            static_cast<std::int32_t*>(input.data)[(r - begin) * steps + t] =
                input.name == "targets" && t >= row ? -100 : std::int32_t(token);
          }
    }
    fl::u64 digest() const override { return 1; }
    std::string describe() const override { return "masked"; }

   private:
    fl::i64 rows_;
  };
  const auto whole = loss_of(masked(steps + 1));
  REQUIRE(whole.rows == steps + 1);
  REQUIRE(whole.loss > 0);
  for (fl::i64 rows : {1, 2, 3}) CHECK(loss_of(masked(rows)).loss == Approx(whole.loss).epsilon(1e-12));
}

TEST_CASE("so many batches at most; none is no loss") {
  const fusionllm_test::temporary_folder folder;
  CHECK(loss_of(text_of(folder, 5, 2), 2).rows == 4);
  CHECK(loss_of(text_of(folder, 5, 2), 0).rows == 0);
  const fl::text_data short_one(fl::token_file(folder.write("short", "0123456789")), {.time = steps, .rows = 2});
  CHECK(loss_of(short_one).rows == 0);
}
