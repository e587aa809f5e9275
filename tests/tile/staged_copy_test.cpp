// core::staged_upload and staged_download with a device whose copies happen as late as they may: when somebody waits.
#include <core/staged_copy.hpp>

#include "support.hpp"

#include <functional>

namespace trifactor::tile_test {
namespace {

using core::ByteColumns;

/// Copies are done in the order in which they were begun, and none before it is waited for.
struct LateDevice {
  explicit LateDevice(std::size_t bytes) : bytes(bytes), rooms(2 * bytes) {}
  char* room(int k) { return rooms.data() + std::size_t(k) * bytes; }
  std::size_t room_bytes() const { return bytes; }
  void copy_on_host(const ByteColumns& from, const ByteColumns& to) {
    for (std::size_t j = 0; j < from.cols; ++j) std::copy_n(from.data + j * from.ld, from.rows, to.data + j * to.ld);
  }
  void send(int k, const ByteColumns& from, const ByteColumns& to) { begin(k, from, to); }
  void fetch(int k, const ByteColumns& from, const ByteColumns& to) { begin(k, from, to); }
  void begin(int k, const ByteColumns& from, const ByteColumns& to) {
    EXPECT_LE(from.bytes(), bytes);
    queue.push_back([=, this] { copy_on_host(from, to); });
    last[k] = queue.size();
  }
  void wait(int k) {
    while (done < last[k]) queue[done++]();
  }
  std::size_t bytes, done = 0, last[2] = {0, 0};
  std::vector<char> rooms;
  std::vector<std::function<void()>> queue;
};

TEST(StagedCopy, EveryByteArrivesAndNoOtherIsWritten) {
  for (const std::size_t room : {1, 7, 64, 1000})
    for (const std::size_t rows : {1, 5, 8, 63, 64, 65, 300})
      for (const std::size_t cols : {1, 2, 3, 17})
        for (const bool up : {true, false}) {
          SCOPED_TRACE(std::to_string(room) + " bytes, " + std::to_string(rows) + " x " + std::to_string(cols));
          const std::size_t from_ld = rows + 3, to_ld = rows + 1;
          std::vector<char> from(from_ld * cols), to(to_ld * cols, 'x');
          for (std::size_t k = 0; k < from.size(); ++k) from[k] = char(k * 31 % 97);
          LateDevice device(room);
          const ByteColumns source{from.data(), from_ld, rows, cols}, target{to.data(), to_ld, rows, cols};
          up ? core::staged_upload(device, source, target) : core::staged_download(device, source, target);
          EXPECT_EQ(device.done, device.queue.size()) << "not complete on return";
          bool same = true;
          for (std::size_t j = 0; j < cols; ++j)
            for (std::size_t i = 0; i < to_ld; ++i)
              same &= to[i + j * to_ld] == (i < rows ? from[i + j * from_ld] : 'x');
          EXPECT_TRUE(same);
        }
}

}  // namespace
}  // namespace trifactor::tile_test
