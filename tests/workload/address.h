// Names to addresses without the resolver: getaddrinfo in a static binary loads shared libraries.
#pragma once

#include <sys/socket.h>

#include <string>

namespace toy {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// host: a numeric address, "localhost", or a name that /etc/hosts knows (in full or up to its
// first dot).
bool resolve(const std::string& host, int port, Address* out);

}  // namespace toy
