// What src/cuda/device/cluster.cuh says in PTX, on the machine of tests/simt.
#pragma once

#include <cuda/device/pipeline.cuh>

#define TRIFACTOR_HAS_CLUSTERS 1

namespace trifactor::cuda {

inline int cluster_rank() { return int(simt::cluster_rank()); }
inline void cluster_arrive() { simt::arrive_cluster(false); }
inline void cluster_wait(simt::Where where = simt::Where::current()) { simt::wait_cluster(where); }
inline void cluster_sync(simt::Where where = simt::Where::current()) {
  simt::arrive_cluster(true);
  simt::wait_cluster(where);
}
inline void announce_barriers() {}

inline unsigned shared_address_of(unsigned address, int block) { return simt::shared_address_of(address, block); }
inline int load_shared_of(unsigned address) { return *static_cast<const int*>(simt::shared_memory(address)); }
inline void load_shared(unsigned& x, unsigned address) {
  x = *static_cast<const unsigned*>(simt::shared_memory(address));
}
inline void load_shared_if(bool wanted, ulonglong2& x, unsigned address) {
  if (wanted) x = *static_cast<const ulonglong2*>(simt::shared_memory(address));
}
inline void store_shared_if(bool wanted, unsigned address, const ulonglong2& x) {
  if (wanted) *static_cast<ulonglong2*>(simt::shared_memory(address)) = x;
}
inline void order_after_vote() { simt::order_after_vote(); }
inline void send_async(unsigned address, const ulonglong2& x, unsigned barrier) {
  simt::Sent sent;
  std::memcpy(sent.what, &x, 16);
  sent.write = [](unsigned char* to, const unsigned char* what) { std::memcpy(to, what, 16); }, sent.bytes = 16;
  simt::send(address, sent, barrier);
}
inline void send_async_if(bool wanted, unsigned address, const ulonglong2& x, unsigned barrier) {
  if (wanted) send_async(address, x, barrier);
}

}  // namespace trifactor::cuda
