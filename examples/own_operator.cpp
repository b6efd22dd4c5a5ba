// SPDX-License-Identifier: Apache-2.0
// Two operators of one's own: `swish`, which is element-wise and needs one function (it fuses with its neighbours like
// the library's own), and `rms_norm`, which has a parameter and loops. Gradients are checked against differences, then
// a small network with both learns on fl::cpu, whose vector loops know neither. ctest:
#include <fusionllm/fusionllm.hpp>

#include <cmath>
#include <cstdio>
namespace fl = fusionllm;

// x / (1 + exp(-x)) (Ramachandran et al., arXiv 1710.05941)
struct swish_op : fl::operator_base {
  static constexpr std::string_view name = "swish";
  static constexpr bool elementwise = true;
  static constexpr unsigned saves_inputs = 0b1;  // backward reads x
  template <class T>
  FL_HD static T apply(fl::scalar_part part, T x, T, T d, const fl::scalar_args&) {
    const T s = T(1) / (T(1) + fl::exponential(-x));
    return part == fl::scalar_part::value ? x * s : d * (s + x * s * (T(1) - s));
  }
};
struct swish_object : fl::operator_object_base {
  template <class S, class G>
  constexpr auto operator()(fl::tensor<fl::real, S, G> x) const {
    return fl::record<swish_op, fl::real, S>(x.g, fl::from(x.id));
  }
};
inline constexpr swish_object swish{};

// x / sqrt(mean(x^2) + epsilon) * weight, over the last dimension (Zhang and Sennrich, arXiv 1910.07467)
struct rms_norm_op : fl::operator_base {
  static constexpr std::string_view name = "rms_norm";
  static constexpr unsigned saves_inputs = 0b1;
  static constexpr fl::u64 saved(const fl::op_view& v) { return fl::u64(v.in[0].rows()); }  // 1 / rms of each row
  static constexpr fl::u64 flops(const fl::op_view& v) { return 4 * fl::u64(v.out.count()); }
  static constexpr fl::u64 flops_backward_input(const fl::op_view& v) { return 6 * fl::u64(v.out.count()); }
  static constexpr fl::u64 flops_backward_weight(const fl::op_view& v) { return 3 * fl::u64(v.out.count()); }

  template <class T>
  struct kernel {
    static void forward(fl::device_context&, const fl::kernel_args& a) {
      const fl::i64 rows = a.out.dims.rows(), n = a.out.dims.last();
      const T *x = a.in[0].as<const T>(), *weight = a.param[0].as<const T>();
      T *y = a.out.as<T>(), *saved = static_cast<T*>(a.saved);
      for (fl::i64 r = 0; r < rows; ++r, x += n, y += n) {
        T sum = 0;
        for (fl::i64 i = 0; i < n; ++i) sum += x[i] * x[i];
        const T reciprocal = T(1) / std::sqrt(sum / T(n) + T(a.op->attr.x));
        for (fl::i64 i = 0; i < n; ++i) y[i] = x[i] * reciprocal * weight[i];
        if (saved) saved[r] = reciprocal;  // absent in inference
      }
    }
    static void backward_input(fl::device_context&, const fl::kernel_args& a) {
      const fl::i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
      const T *x = a.in[0].as<const T>(), *weight = a.param[0].as<const T>(), *d = a.d_out.as<const T>();
      const T* saved = static_cast<const T*>(a.saved);
      T* dx = a.d_in[0].as<T>();
      if (!dx) return;  // not wanted
      for (fl::i64 r = 0; r < rows; ++r, x += n, d += n, dx += n) {
        T mean = 0;
        for (fl::i64 i = 0; i < n; ++i) mean += d[i] * weight[i] * x[i];
        mean *= saved[r] * saved[r] / T(n);
        for (fl::i64 i = 0; i < n; ++i) dx[i] = saved[r] * (d[i] * weight[i] - x[i] * mean);
      }
    }
    static void backward_weight(fl::device_context&, const fl::kernel_args& a) {  // adds
      const fl::i64 rows = a.d_out.dims.rows(), n = a.d_out.dims.last();
      const T *x = a.in[0].as<const T>(), *d = a.d_out.as<const T>(), *saved = static_cast<const T*>(a.saved);
      T* d_weight = a.d_param[0].as<T>();
      if (!d_weight) return;
      for (fl::i64 r = 0; r < rows; ++r, x += n, d += n)
        for (fl::i64 i = 0; i < n; ++i) d_weight[i] += d[i] * x[i] * saved[r];
    }
  };
};
struct rms_norm_object : fl::operator_object_base {
  template <class S, class G>
  constexpr auto operator()(fl::tensor<fl::real, S, G> x) const {
    const auto scope = x.g->enter("norm");
    const int weight = x.g->add_parameter("weight", fl::extents_of<fl::shape<S::last>>(), fl::ones, false);
    auto y = fl::record<rms_norm_op, fl::real, S>(x.g, fl::from(x.id), {weight, -1}, {{}, 1e-6});
    x.g->leave(scope);
    return y;
  }
};
inline constexpr rms_norm_object rms_norm{};

struct model {
  static constexpr auto block = fl::residual(rms_norm | fl::linear<32> | swish | fl::dropout(0.0) | fl::linear<16>);
  static constexpr auto define(auto& g) {
    auto xy = fl::input<fl::real, fl::batch, 2>(g, "xy");
    auto target = fl::input<fl::real, fl::batch, 1>(g, "target");
    return fl::mean_squared_error(xy | fl::linear<16> | fl::repeat<2>(block) | rms_norm | fl::linear<1>, target);
  }
};

constexpr fl::i64 batch = 32;
template <class T>
struct samples {  // z = sin(3 x) * y
  std::vector<T> xy = std::vector<T>(2 * batch), z = std::vector<T>(batch);
  explicit samples(fl::u64 step) {
    for (fl::u64 i = 0; i < xy.size(); ++i)
      xy[i] = 2 * T(fl::uniform(fl::random_word({.seed = 1, .step = step}, i))) - 1;
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = std::sin(3 * xy[2 * i]) * xy[2 * i + 1];
  }
  fl::batch_view view() const { return {{"xy", std::span(xy), {batch, 2}}, {"target", std::span(z), {batch, 1}}}; }
};

// The largest relative distance of a parameter's gradient from central differences, in double.
double worst_gradient() {
  fl::trainer<model> t({.device = "reference_f64", .batch = batch, .optimizer = {.learning_rate = 0, .adamw = {}}});
  const samples<double> s(0);
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
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

int main() {
  const double worst = worst_gradient();
  fl::trainer<model> t({.batch = batch, .optimizer = {.learning_rate = 1e-2, .adamw = {.weight_decay = 0}}});
  const double before = t.step(samples<float>(0).view()).loss;
  double loss = before;
  for (fl::u64 step = 1; step < 400; ++step) loss = t.step(samples<float>(step).view()).loss;
  std::printf("gradients within %.1e of differences; loss %.4f, after 400 steps %.4f\n", worst, before, loss);
  return worst < 1e-6 && loss < 0.1 * before ? 0 : 1;
}
