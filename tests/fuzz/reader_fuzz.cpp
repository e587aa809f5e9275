// Matrix Market files: read, or refused with file, line and rule.
#include "input.hpp"

#include <failure.hpp>
#include <matrix_market.hpp>

#include <sys/mman.h>
#include <unistd.h>

using namespace trifactor;

std::vector<std::string> fuzz::seeds() {
  return {"%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 4.5\n2 1 -1e-3\n2 2 5\n3 3 6\n",
          "%%MatrixMarket matrix array real general\n2 2\n1\n2.5\n-3\n4e2\n",
          "%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 2 0\n2 1 1 -1\n2 2 3 0\n",
          "%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 1\n3 1\n",
          "%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 9\n3 2 -7\n3 2 +1\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("fuzz.mtx", 0);
  if (file < 0 || write(file, data, size) != ssize_t(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    const program::MatrixMarketFile matrix(path);
    const auto& header = matrix.header();
    fuzz::require(header.rows >= 0 && header.cols >= 0 && header.entries >= 0, "sizes are not negative");
    if (header.rows <= 1000 && header.cols <= 1000) {
      const auto A = matrix.dense<std::complex<double>>();
      fuzz::require(A.rows() == header.rows && A.cols() == header.cols, "the matrix has the sizes of the file");
      if (header.rows == header.cols && header.format == program::MatrixMarketHeader::Format::Coordinate)
        matrix.sparse<std::complex<double>>();
    }
  } catch (const program::InputError& e) {
    fuzz::require(std::string_view(e.what()).find(path) != std::string_view::npos, "the message names the file");
  }
  close(file);
  return 0;
}
