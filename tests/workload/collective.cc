#include "workload/collective.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <limits>

#include "workload/address.h"
#include "workload/waiting.h"

namespace toy {
namespace {

constexpr double for_ever = std::numeric_limits<double>::infinity();
constexpr double retry_s = 0.05;
constexpr double hello_timeout_s = 2;
constexpr uint32_t magic = 0x746f7931;  // "toy1"

struct Hello {
  uint32_t magic;
  int32_t attempt;
  int32_t world_size;
  int32_t rank;
  char attempt_id[64];  // EZPZ_ATTEMPT_ID: keeps two jobs that share a port apart
};

Hello make_hello(const Identity& me) {
  Hello hello{};  // no stray bytes: it is compared and sent as a whole
  hello.magic = magic;
  hello.attempt = me.attempt;
  hello.world_size = me.world_size;
  hello.rank = me.rank;
  const char* id = getenv("EZPZ_ATTEMPT_ID");
  if (id != nullptr) strncpy(hello.attempt_id, id, sizeof hello.attempt_id - 1);
  return hello;
}

bool transfer(int fd, void* data, size_t size, Until direction, double deadline_s) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n =
        direction == Until::readable ? recv(fd, at, size, 0) : send(fd, at, size, MSG_NOSIGNAL);
    if (n > 0) {
      at += n;
      size -= static_cast<size_t>(n);
    } else if (n == 0) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (wait_for(fd, direction, deadline_s) == Wait::timed_out) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool receive(int fd, void* data, size_t size, double deadline_s = for_ever) {
  return transfer(fd, data, size, Until::readable, deadline_s);
}

bool send_all(int fd, const void* data, size_t size, double deadline_s = for_ever) {
  return transfer(fd, const_cast<void*>(data), size, Until::writable, deadline_s);
}

void set_no_delay(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

int make_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// A connected socket, or -1 with errno.
int connect_once(const Address& address, double deadline_s) {
  const int fd = make_socket(address.storage.ss_family);
  if (fd < 0) return -1;
  int trouble = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
    trouble = errno;
    if (trouble == EINPROGRESS) {
      trouble = ETIMEDOUT;
      socklen_t size = sizeof trouble;
      if (wait_for(fd, Until::writable, deadline_s) == Wait::ready) {
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &trouble, &size);
      }
    }
  }
  if (trouble == 0) return fd;
  close(fd);
  errno = trouble;
  return -1;
}

// On all addresses of both families, or of IPv4 where the kernel has no IPv6; -1 with errno.
int listen_on(int port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(port));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  const int yes = 1;
  const int no = 0;

  int listener = make_socket(AF_INET6);
  const bool has_v6 = listener >= 0;
  if (!has_v6) listener = make_socket(AF_INET);
  if (listener < 0) return -1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (has_v6) setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const sockaddr* any =
      has_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  if (bind(listener, any, has_v6 ? sizeof v6 : sizeof v4) == 0 && listen(listener, 1024) == 0) {
    return listener;
  }
  const int trouble = errno;
  close(listener);
  errno = trouble;
  return -1;
}

}  // namespace

Collective::~Collective() {
  if (socket_ >= 0) close(socket_);
  for (const int peer : peers_) {
    if (peer >= 0) close(peer);
  }
}

bool Collective::meet(const Identity& me, double timeout_s, std::string* trouble) {
  me_ = me;
  if (me.world_size == 1) return true;
  const double deadline_s = now_s() + timeout_s;
  return me.rank == 0 ? listen_for_peers(deadline_s, trouble) : join_rank_0(deadline_s, trouble);
}

bool Collective::listen_for_peers(double deadline_s, std::string* trouble) {
  const int listener = listen_on(me_.master_port);
  if (listener < 0) {
    *trouble = "cannot listen on port " + std::to_string(me_.master_port) + ": " + strerror(errno);
    return false;
  }

  peers_.assign(static_cast<size_t>(me_.world_size), -1);
  int missing = me_.world_size - 1;
  while (missing > 0 && wait_for(listener, Until::readable, deadline_s) == Wait::ready) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) continue;
    Hello hello{};
    Hello expected = make_hello(me_);
    const bool said = receive(fd, &hello, sizeof hello, now_s() + hello_timeout_s);
    expected.rank = hello.rank;
    const bool welcome = said && memcmp(&hello, &expected, sizeof hello) == 0 && hello.rank > 0 &&
                         hello.rank < me_.world_size && peers_[hello.rank] < 0;
    if (!welcome) {
      fprintf(stderr, "toy_train: rank 0 turned a stranger away\n");
      close(fd);
      continue;
    }
    set_no_delay(fd);
    peers_[hello.rank] = fd;
    --missing;
  }
  close(listener);
  if (missing == 0) return true;
  *trouble = std::to_string(missing) + " of " + std::to_string(me_.world_size) +
             " ranks did not come to the rendezvous";
  return false;
}

bool Collective::join_rank_0(double deadline_s, std::string* trouble) {
  const std::string where = me_.master_addr + ":" + std::to_string(me_.master_port);
  do {
    Address address;
    if (!resolve(me_.master_addr, me_.master_port, &address)) {
      *trouble = "unknown host " + me_.master_addr;
      return false;
    }
    socket_ = connect_once(address, deadline_s);
    if (socket_ >= 0) {
      const Hello hello = make_hello(me_);
      set_no_delay(socket_);
      if (send_all(socket_, &hello, sizeof hello, deadline_s)) return true;
      close(socket_);
      socket_ = -1;
    }
    *trouble = "cannot reach rank 0 at " + where + ": " + strerror(errno);
    sleep_until(std::min(deadline_s, now_s() + retry_s));
  } while (now_s() < deadline_s);
  return false;
}

bool Collective::all_reduce(Vector* value) {
  if (me_.world_size == 1) return true;
  if (me_.rank != 0) {
    return send_all(socket_, value, sizeof *value) && receive(socket_, value, sizeof *value);
  }
  for (int rank = 1; rank < me_.world_size; ++rank) {
    Vector share{};
    if (!receive(peers_[rank], &share, sizeof share)) return false;
    for (int i = 0; i < width; ++i) (*value)[i] += share[i];
  }
  for (int rank = 1; rank < me_.world_size; ++rank) {
    if (!send_all(peers_[rank], value, sizeof *value)) return false;
  }
  return true;
}

bool Collective::broadcast(Model* model) {
  static_assert(sizeof(Model) == sizeof(int64_t) + sizeof(Vector), "sent as it lies in memory");
  if (me_.rank != 0) return receive(socket_, model, sizeof *model);
  for (int rank = 1; rank < me_.world_size; ++rank) {
    if (!send_all(peers_[rank], model, sizeof *model)) return false;
  }
  return true;
}

}  // namespace toy
