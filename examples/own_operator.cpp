// SPDX-License-Identifier: Apache-2.0
// Two operators of one's own: `squared_relu`, which is element-wise and needs one function (it fuses with its neighbours
// like the library's own), and `token_shift`, which has a parameter and loops: a time sees the one before it. Gradients
// are checked against differences, then a small network with both learns what cannot be known from one time alone, on
// fl::cpu, whose vector loops know neither.
// ctest:
#include <fusionllm/fusionllm.hpp>

#include <cmath>
#include <cstdio>
namespace fl = fusionllm;

// max(x, 0)^2 (So et al., arXiv 2109.08668)
struct squared_relu_op : fl::operator_base {
  static constexpr std::string_view name = "squared_relu";
  static constexpr bool elementwise = true;
  static constexpr unsigned saves_inputs = 0b1;  // backward reads x
  template <class T>
  FL_HD static constexpr T apply(fl::scalar_part part, T x, T, T d, const fl::scalar_args&) {
    const T r = x > T(0) ? x : T(0);
    return part == fl::scalar_part::value ? r * r : d * 2 * r;
  }
};
inline constexpr fl::same_shape_object<squared_relu_op> squared_relu{};

// x[t] + (x[t - 1] - x[t]) * mix, where x[-1] is 0 (Peng et al., arXiv 2305.13048)
struct token_shift_op : fl::operator_base {
  static constexpr std::string_view name = "token_shift";
  static constexpr unsigned saves_inputs = 0b1;  // of which only backward_weight has a use
  static constexpr fl::u64 flops(const fl::op_view& v) { return 3 * fl::u64(v.out.count()); }
  static constexpr fl::u64 flops_backward_input(const fl::op_view& v) { return 4 * fl::u64(v.out.count()); }
  static constexpr fl::u64 flops_backward_weight(const fl::op_view& v) { return 3 * fl::u64(v.out.count()); }

  template <class T>
  struct kernel {
    static void forward(fl::device_context&, const fl::kernel_args& a) {
      const fl::i64 n = a.out.dims.last();
      const T *x = a.in[0].as<const T>(), *mix = a.param[0].as<const T>();
      T* y = a.out.as<T>();
      each(a.out.dims, [&](fl::i64 i, fl::i64 t) {
        const T before = t > 0 ? x[i - n] : T(0);
        y[i] = x[i] + (before - x[i]) * mix[i % n];
      });
    }
    static void backward_input(fl::device_context&, const fl::kernel_args& a) {
      const fl::i64 n = a.d_out.dims.last(), times = a.d_out.dims.d[1];
      const T *d = a.d_out.as<const T>(), *mix = a.param[0].as<const T>();
      T* dx = a.d_in[0].as<T>();
      if (!dx) return;  // not wanted
      each(a.d_out.dims, [&](fl::i64 i, fl::i64 t) {
        const T after = t + 1 < times ? d[i + n] : T(0);
        dx[i] = d[i] * (1 - mix[i % n]) + after * mix[i % n];
      });
    }
    static void backward_weight(fl::device_context&, const fl::kernel_args& a) {  // adds
      const fl::i64 n = a.d_out.dims.last();
      const T *x = a.in[0].as<const T>(), *d = a.d_out.as<const T>();
      T* d_mix = a.d_param[0].as<T>();
      if (!d_mix) return;
      each(a.d_out.dims, [&](fl::i64 i, fl::i64 t) { d_mix[i % n] += d[i] * ((t > 0 ? x[i - n] : T(0)) - x[i]); });
    }

   private:
    // f(element, its time) for all elements of (batch, time, features).
    template <class F>
    static void each(const fl::extents& e, F f) {
      for (fl::i64 i = 0; i < e.count(); ++i) f(i, i / e.last() % e.d[1]);
    }
  };
};
struct token_shift_object : fl::operator_object_base {
  template <class S, class G>
  constexpr auto operator()(fl::tensor<fl::real, S, G> x) const {
    static_assert(S::rank == 3 && S::last > 0, "token_shift takes (batch, time, features)");
    const auto scope = x.g->enter("shift");
    const int mix = x.g->add_parameter("mix", fl::extents_of<fl::shape<S::last>>(), fl::zeros, false);
    auto y = fl::record<token_shift_op, fl::real, S>(x.g, fl::from(x.id), {mix});
    x.g->leave(scope);
    return y;
  }
};
inline constexpr token_shift_object token_shift{};

struct model {
  static constexpr auto block = fl::residual(token_shift | fl::linear<32> | squared_relu | fl::scale(0.5) | fl::linear<16>);
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 1>(g, "x");
    auto target = fl::input<fl::real, fl::batch, fl::time, 1>(g, "target");
    return fl::mean_squared_error(x | fl::linear<16> | fl::repeat<2>(block) | fl::linear<1>, target);
  }
};

constexpr fl::i64 batch = 16, times = 8;
template <class T>
struct samples {  // z[t] = x[t] * x[t - 1]
  std::vector<T> x = std::vector<T>(batch * times), z = std::vector<T>(batch * times);
  explicit samples(fl::u64 step) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 2 * T(fl::uniform(fl::random_word({.seed = 1, .step = step}, i))) - 1;
      z[i] = i % times ? x[i] * x[i - 1] : 0;
    }
  }
  fl::batch_view view() const { return {{"x", std::span(x), {batch, times, 1}}, {"target", std::span(z), {batch, times, 1}}}; }
};

// The largest relative distance of a parameter's gradient from central differences, in double.
double worst_gradient() {
  fl::trainer<model> t({.device = "reference_f64", .batch = batch, .time = times, .optimizer = {.learning_rate = 0, .adamw = {}}});
  const samples<double> s(0);
  for (const auto& p : t.graph().params)  // where they begin, at zero, some terms of the gradients would not show
    for (std::size_t i = 0; i < p.count(); ++i) t.parameter(p.path.view()).as<double>()[i] += 0.05;
  t.step(s.view());
  double worst = 0;
  for (const auto& p : t.graph().params) {
    const fl::tensor_ref w = t.parameter(p.path.view()), g = t.gradient(p.path.view());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < p.count(); ++i) {
      double& x = w.as<double>()[i];
      const double before = x, h = 1e-5;
      x = before + h;
      const double up = t.evaluate(s.view());
      x = before - h;
      const double down = t.evaluate(s.view());
      x = before;
      const double d = (up - down) / (2 * h);
      difference += (g.as<double>()[i] - d) * (g.as<double>()[i] - d);
      norm += d * d;
    }
    const double distance = std::sqrt(difference / norm);
    if (!(distance <= worst)) worst = distance;  // also what is no number
  }
  return worst;
}

int main() {
  const double worst = worst_gradient();
  fl::trainer<model> t({.batch = batch, .time = times, .optimizer = {.learning_rate = 1e-2, .adamw = {.weight_decay = 0}}});
  const double before = t.step(samples<float>(0).view()).loss;
  double loss = before;
  for (fl::u64 step = 1; step < 400; ++step) loss = t.step(samples<float>(step).view()).loss;
  std::printf("gradients within %.1e of differences; loss %.4f, after 400 steps %.4f\n", worst, before, loss);
  return worst < 1e-6 && loss < 0.1 * before ? 0 : 1;
}
