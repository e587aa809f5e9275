// How long the calls take in C++ that Python's are compared with.
#include "dense.hpp"
#include "queues.hpp"
#include "timing.hpp"

#include <chrono>

namespace trifactor::python {

namespace {

/// Seconds of one call on a diagonally dominant matrix of order n; copies of A and b belong to it, as in Python.
double seconds_of_call(const std::string& name, const std::string& dtype, index_t n, int repeats) {
  const Dtype d = dtype == "float32"      ? Dtype::F32
                  : dtype == "complex64"  ? Dtype::C32
                  : dtype == "complex128" ? Dtype::C64
                                          : Dtype::F64;
  return with_scalar(d, [&]<class T>(T) {
    std::vector<T> A(std::size_t(n * n), T(1)), b(std::size_t(n), T(1)), F, x;
    for (index_t i = 0; i < n; ++i) A[std::size_t(i * n + i)] = T(real_t<T>(2 * n));
    std::vector<int> info(1);
    Queue& q = host_queue();
    auto view = [n](std::vector<T>& v, index_t cols) {
      return MatrixView<T>{v.data(), n, cols, std::max<index_t>(n, 1)};
    };
    auto call = [&] {
      x = b;
      if (name != "F.solve") F = A;
      if (name == "cholesky")
        trifactor::cholesky(q, Uplo::Lower, view(F, n), info);
      else if (name == "solve pos")
        cholesky_factor_solve(q, Uplo::Lower, view(F, n), view(x, 1), info);
      else if (name == "F.solve")
        cholesky_solve(q, Uplo::Lower, MatrixView<const T>(view(F, n)), view(x, 1));
      else
        raise_value_error("name = '" + name + "' must be 'cholesky', 'solve pos' or 'F.solve'");
    };
    F = A;
    trifactor::cholesky(q, Uplo::Lower, view(F, n), info);
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) call();
    return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
  });
}

}  // namespace

void bind_timing(nb::module_& m) {
  m.def("seconds_of_call", &seconds_of_call, nb::arg("name"), nb::arg("dtype"), nb::arg("n"), nb::arg("repeats"),
        "Seconds that a call takes in C++: 'cholesky', 'solve pos' or 'F.solve'.");
}

}  // namespace trifactor::python
