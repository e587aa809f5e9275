// Copies between a device and pageable memory of the host, through two page-locked rooms: while one piece crosses, the
// CPU copies the next. A driver that is given pageable memory copies with one thread and waits in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trifactor::core {

/// Columns of `rows` bytes, `ld` bytes apart.
struct ByteColumns {
  char* data;
  std::size_t ld, rows, cols;

  ByteColumns block(std::size_t i, std::size_t j, std::size_t m, std::size_t n) const {
    return {data + i + j * ld, ld, m, n};
  }
  std::size_t bytes() const { return rows * cols; }
};

/// Where the pieces of at most `room` bytes begin and how large they are: whole columns, or parts of one.
struct Piece {
  std::size_t i, j, rows, cols;
};
inline std::vector<Piece> pieces_of(std::size_t rows, std::size_t cols, std::size_t room) {
  std::vector<Piece> pieces;
  if (rows <= room) {
    const std::size_t at_once = room / rows;
    for (std::size_t j = 0; j < cols; j += at_once) pieces.push_back({0, j, rows, std::min(at_once, cols - j)});
  } else {
    for (std::size_t j = 0; j < cols; ++j)
      for (std::size_t i = 0; i < rows; i += room) pieces.push_back({i, j, std::min(room, rows - i), 1});
  }
  return pieces;
}

/// A device has room(k), k = 0 or 1, of room_bytes() page-locked bytes; send(k, from, to) and fetch(k, from, to) begin
/// a copy between that room and the device; wait(k) returns when the last one that was begun with it is complete, or at
/// once where there was none; copy_on_host(from, to) is the CPU's part. The columns are not empty.
template <class Device>
void staged_upload(Device& device, ByteColumns host, ByteColumns target) {
  const auto pieces = pieces_of(host.rows, host.cols, device.room_bytes());
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const auto [i, j, m, n] = pieces[p];
    const int k = int(p % 2);
    const ByteColumns room{device.room(k), m, m, n};
    if (p >= 2) device.wait(k);  // the piece before the last has left this room
    device.copy_on_host(host.block(i, j, m, n), room);
    device.send(k, room, target.block(i, j, m, n));
  }
  device.wait(0), device.wait(1);
}

template <class Device>
void staged_download(Device& device, ByteColumns source, ByteColumns host) {
  const auto pieces = pieces_of(host.rows, host.cols, device.room_bytes());
  for (std::size_t p = 0; p <= pieces.size(); ++p) {
    if (p < pieces.size()) {
      const auto [i, j, m, n] = pieces[p];
      const int k = int(p % 2);
      device.fetch(k, source.block(i, j, m, n), {device.room(k), m, m, n});
    }
    if (p == 0) continue;
    const auto [i, j, m, n] = pieces[p - 1];
    const int k = int((p - 1) % 2);
    device.wait(k);
    device.copy_on_host({device.room(k), m, m, n}, host.block(i, j, m, n));
  }
}

}  // namespace trifactor::core
