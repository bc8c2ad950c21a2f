#include "transport/socket_silence.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

namespace heddle {

void ask_when_silent(int fd, int seconds) noexcept {
  int on = 0;
  socklen_t size = sizeof on;
  if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size) || on) return;
  const int every = std::max(seconds / 4, 1), most = 127;  // longer than our own limit, so that the kernel does not give up first
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &every, sizeof every);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &most, sizeof most);
  on = 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

bool is_silent(int fd, int seconds) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) return false;
  const std::uint32_t limit = static_cast<std::uint32_t>(seconds) * 1000;
  return (info.tcpi_probes > 1 || info.tcpi_retransmits > 1) && info.tcpi_last_ack_recv > limit &&
         info.tcpi_last_data_recv > limit;
}

}  // namespace heddle
