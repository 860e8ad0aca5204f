#include "workload/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <cstdint>
#include <sstream>
#include <string>

#include "workload/files.h"

namespace toy {
namespace {

bool numeric(const std::string& host, int port, Address* out) {
  sockaddr_in v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(port));
    memcpy(&out->storage, &v4, sizeof v4);
    out->size = sizeof v4;
    return true;
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(port));
    memcpy(&out->storage, &v6, sizeof v6);
    out->size = sizeof v6;
    return true;
  }
  return false;
}

std::string from_hosts_file(const std::string& host) {
  std::string text;
  read_all("/etc/hosts", &text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    for (std::string name; words >> name;) {
      if (name == host || name == host.substr(0, host.find('.'))) return address;
    }
  }
  return "";
}

}  // namespace

bool resolve(const std::string& host, int port, Address* out) {
  if (numeric(host, port, out)) return true;
  const std::string address = from_hosts_file(host);
  if (!address.empty()) return numeric(address, port, out);
  return host == "localhost" && numeric("127.0.0.1", port, out);
}

}  // namespace toy
