// SPDX-License-Identifier: Apache-2.0
// The laws of compressors, for those of the library and for yours: whoever sends through a link relies on them. No test
// framework is needed: what comes back is one line a broken law.
//   for (const auto& broken : fusionllm::laws::of_compressor<my_compressor>()) std::puts(broken.c_str());
#pragma once

#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fusionllm/compress/registry.hpp>

namespace fusionllm::inline v0::laws {

namespace detail {

/// Deterministic data, about normal, with a few large columns as activations have.
inline std::vector<float> activations(i64 rows, i64 columns, u64 seed) {
  std::vector<float> x(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < x.size(); ++i) {
    float sum = -2;
    for (int j = 0; j < 4; ++j)
      sum += float((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 40) * 0x1p-24f;
    x[i] = sum * (i % 13 == 5 ? 4.0f : 1.0f);
  }
  return x;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
}

inline bool same_mask(const mask& a, const mask& b) {
  return a.rows == b.rows && a.columns == b.columns && a.all == b.all && a.positions == b.positions
         && (a.all || a.per_row == b.per_row);
}

inline std::vector<bool> members(const mask& m) {
  std::vector<bool> in(static_cast<std::size_t>(m.rows * m.columns), m.all);
  for (u32 p : m.positions) in[p] = true;
  return in;
}

/// One run of the laws over codecs that `make()` gives.
template <class Make>
class run {
 public:
  explicit run(Make& make) : make_(make) {}

  std::vector<std::string> all() {
    const i64 extents[][2] = {{1, 1}, {1, 5}, {7, 1}, {3, 64}, {16, 96}, {5, 1000}, {0, 4}, {4, 0}};
    for (const auto& e : extents) {
      rows_ = e[0], columns_ = e[1];
      const i64 n = rows_ * columns_;
      x_ = activations(rows_, columns_, u64(n + 1));
      guarded("forward", [&] { forward(nullptr); });
      guarded("zeros", [&] { zeros(); });
      guarded("within a mask", [&] { within_masks(); });
      guarded("not finite", [&] { not_finite(); });
      guarded("integers", [&] { integers(); });
      guarded("damaged frames", [&] { damaged(); });
    }
    return std::move(broken_);
  }

 private:
  void law(bool holds, const char* what) {
    if (holds) return;
    std::ostringstream line;
    line << what << " (" << rows_ << " x " << columns_ << ')';
    broken_.push_back(std::move(line).str());
  }
  template <class F>
  void guarded(const char* what, F&& f) {
    try {
      f();
    } catch (const std::exception& e) {
      law(false, (std::string(what) + ": unexpected error: " + e.what()).c_str());
    }
  }
  template <class F>
  static bool fails_with(errc code, F&& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code() == code;
    }
    return false;
  }

  std::vector<float> decoded(codec& c, const_byte_span frame, const mask* outer, mask* seen) const {
    std::vector<float> y(x_.size(), std::numeric_limits<float>::quiet_NaN());  // decode has to write all of it
    c.decode(frame, y.data(), rows_, columns_, outer, seen);
    return y;
  }

  void forward(const mask* outer) {
    const auto a = make_(), b = make_();
    std::vector<std::byte> frame(99), other;
    mask made, made_again, seen;
    a->encode(x_.data(), rows_, columns_, outer, nullptr, frame, &made);
    b->encode(x_.data(), rows_, columns_, outer, nullptr, other, &made_again);
    law(frame == other && same_mask(made, made_again), "equal tensors give equal frames and masks");
    a->encode(x_.data(), rows_, columns_, outer, nullptr, other, nullptr);
    law(frame == other, "a codec that was used gives the same frame as one that was not");
    law(i64(frame.size()) <= a->max_encoded_bytes(rows_, columns_), "no frame exceeds max_encoded_bytes");
    law(i64(frame.size()) <= payload_header_bytes + 4 * rows_ * columns_, "no frame exceeds the tensor and a header");
    if (outer == nullptr) law(a->kept(rows_, columns_) == made.count(), "kept() is the size of the forward mask");

    const auto y = decoded(*b, frame, outer, &seen);
    law(same_mask(made, seen), "both ends see one mask");
    law(same_bits(y, decoded(*a, frame, outer, nullptr)), "decoding is deterministic");
    law(first_non_finite(y.data(), i64(y.size())) < 0, "what is decoded is finite");
    law(made.all || made.per_row == 0 || made.count() == made.per_row * rows_,
        "a mask of even rows has as many in each");
    const auto inside = members(made);
    bool zero = true, subset = true;
    const auto allowed = outer == nullptr ? std::vector<bool>(y.size(), true) : members(*outer);
    for (std::size_t i = 0; i < y.size(); ++i) {
      zero = zero && (inside[i] || y[i] == 0);
      subset = subset && (!inside[i] || allowed[i]);
    }
    law(zero, "what the mask leaves out is zero");
    law(subset, "the mask lies within the forward mask");
    if (a->lossless() && outer == nullptr) law(same_bits(x_, y), "a lossless codec loses nothing");

    a->encode(y.data(), rows_, columns_, outer, nullptr, other, nullptr);
    law(same_bits(y, decoded(*b, other, outer, nullptr)), "what was decoded is encoded without further loss");
  }

  void zeros() {
    const std::vector<float> kept = x_;
    x_.assign(x_.size(), 0.0f);
    forward(nullptr);
    const auto c = make_();
    std::vector<std::byte> frame;
    c->encode(x_.data(), rows_, columns_, nullptr, nullptr, frame, nullptr);
    law(same_bits(x_, decoded(*c, frame, nullptr, nullptr)), "zeros arrive as zeros");
    x_ = kept;
  }

  void within_masks() {
    mask outer;
    outer.keep_all(rows_, columns_);
    forward(&outer);
    outer.all = false;
    outer.per_row = (columns_ + 1) / 3;
    for (i64 r = 0; r < rows_; ++r)
      for (i64 c = 0; c < outer.per_row; ++c) outer.positions.push_back(u32(r * columns_ + 3 * c));
    if (outer.per_row > 0) forward(&outer);
    outer.per_row = 0;
    outer.positions.clear();
    for (i64 i = 0; i < rows_ * columns_; i += 1 + i % 7) outer.positions.push_back(u32(i));
    forward(&outer);
    outer.positions.clear();
    forward(&outer);
  }

  void not_finite() {
    for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN()})
      for (std::size_t at = 0; at < x_.size(); at += 1 + x_.size() / 3) {
        auto x = x_;
        x[at] = bad;
        x.back() = bad;
        const auto c = make_();
        std::vector<std::byte> frame;
        bool named = false;
        const bool refused = fails_with(errc::numeric, [&] {
          try {
            c->encode(x.data(), rows_, columns_, nullptr, nullptr, frame, nullptr);
          } catch (const error& e) {
            named = std::string(e.what()).find("entry " + std::to_string(at) + ' ') != std::string::npos;
            throw;
          }
        });
        law(refused && named, "infinities and NaNs are errc::numeric naming the first");
      }
  }

  void integers() {
    std::vector<std::int32_t> x(x_.size()), y(x_.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::int32_t(i * 2654435761u);
    const auto c = make_();
    std::vector<std::byte> frame;
    c->encode(tensor_in{x.data(), dtype::int32, rows_, columns_}, {}, frame, nullptr);
    c->decode(frame, tensor_out{y.data(), dtype::int32, rows_, columns_}, {}, nullptr);
    law(x == y, "integers arrive as they are");
  }

  /// A decode either fails as a protocol error or gives finite numbers.
  bool survives(const std::vector<std::byte>& frame, bool must_fail) {
    const auto c = make_();
    std::vector<float> y(x_.size());
    mask seen;
    try {
      c->decode(frame, y.data(), rows_, columns_, nullptr, &seen);
    } catch (const error& e) {
      return e.code() == errc::protocol;
    }
    return !must_fail && first_non_finite(y.data(), i64(y.size())) < 0 && seen.count() <= i64(y.size());
  }

  void damaged() {
    const auto c = make_();
    std::vector<std::byte> frame;
    c->encode(x_.data(), rows_, columns_, nullptr, nullptr, frame, nullptr);
    const std::size_t step = 1 + frame.size() / 40;
    for (std::size_t length = 0; length < frame.size(); length += length < 24 ? 1 : step)
      law(survives({frame.begin(), frame.begin() + std::ptrdiff_t(length)}, true),
          "a frame cut short is errc::protocol");
    auto longer = frame;
    longer.push_back(std::byte(0));
    law(survives(longer, true), "a frame with a byte too many is errc::protocol");
    for (std::size_t at = 0; at < frame.size(); at += at < 24 ? 1 : step)
      for (int bit = 0; bit < 8; ++bit) {
        auto damaged = frame;
        damaged[at] ^= std::byte(1 << bit);
        law(survives(damaged, false), "a damaged frame is errc::protocol or finite numbers");
      }
    std::vector<float> y(x_.size() + std::size_t(rows_ + columns_ + 1));
    law(fails_with(errc::protocol, [&] { c->decode(frame, y.data(), rows_ + 1, columns_, nullptr, nullptr); })
            && fails_with(errc::protocol, [&] { c->decode(frame, y.data(), rows_, columns_ + 1, nullptr, nullptr); }),
        "a frame of a tensor of other extents is errc::protocol");
  }

  Make& make_;
  i64 rows_ = 0;
  i64 columns_ = 0;
  std::vector<float> x_;
  std::vector<std::string> broken_;
};

}  // namespace detail

/// The laws that the codecs of `make()`, a std::unique_ptr<codec>, break; none for a good one.
template <class Make>
std::vector<std::string> of_codec(Make&& make) {
  return detail::run<std::remove_reference_t<Make>>(make).all();
}

/// The same for a compressor with options.
template <compressor C>
std::vector<std::string> of_compressor(const codec_options& options = {}) {
  return of_codec([&] { return compressors<C>::make(C::label, options); });
}

}  // namespace fusionllm::inline v0::laws
