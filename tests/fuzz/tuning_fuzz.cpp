// Tuning rows of a file, and fields of a call: whatever the text, it is taken or refused in printable words.
#include "input.hpp"

#include <trifactor/error.hpp>
#include <tuning/rows.hpp>

using namespace trifactor;

std::vector<std::string> fuzz::seeds() {
  return {"any cholesky any : nb=8 leaf=4\nhost lu f64 n<=10 count>2 : nb=16 # why\n",
          "sm_90 sparse c32 n=5 : leaf=4 strip=128 update_order=16\nany solve any : columns=64 halve=2\n",
          "any lu any : nb=8\n[trifactor 0.1.0 on NVIDIA H200]\nsm_90 cholesky f64 : nb=4\n",
          "nb=3 looking=left tile=exclusive ib=2147483647",
          "any value any n>=4 : gpu_from=9223372036854775807"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view chain[] = {"sm_90", "cuda", "any"};
  const auto attempt = [](auto f) {
    try {
      f();
    } catch (const InvalidArgument& e) {
      for (const char c : std::string_view(e.what())) fuzz::require(c >= ' ' && c <= '~', "messages are printable");
    }
  };
  attempt([&] {
    tuning::Table table;
    const tuning::TextFile file{"fuzz.txt", text};
    table.add({&file, 1});
    const auto t = table.find<core::CholeskyTuning>(chain, "f64", 10, 1, "");
    fuzz::require(t.nb >= 1 && t.leaf >= 1 && t.nb <= 2147483647, "fields are in their ranges");
  });
  attempt([&] { tuning::Table().find<core::CholeskyTuning>(chain, "f64", 10, 1, text); });
  attempt([&] { tuning::Table().find<core::SparseTuning>(chain, "f64", 10, 1, text); });
  return 0;
}
