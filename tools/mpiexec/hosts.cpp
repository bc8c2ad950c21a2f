#include "hosts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "option_words.hpp"

namespace heddle::mpiexec {
std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

namespace {

/// Whether an interface of this machine has the address. Host files of batch systems may hold addresses instead of names.
bool is_own_address(const std::string& text) {
  unsigned char wanted[16];
  const bool v4 = inet_pton(AF_INET, text.c_str(), wanted) == 1;
  ifaddrs* list = nullptr;
  if ((!v4 && inet_pton(AF_INET6, text.c_str(), wanted) != 1) || getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* entry = list; entry != nullptr && !found; entry = entry->ifa_next) {
    const sockaddr* address = entry->ifa_addr;
    if (address == nullptr || address->sa_family != (v4 ? AF_INET : AF_INET6)) continue;
    found = v4 ? std::memcmp(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, wanted, 4) == 0
               : std::memcmp(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, wanted, 16) == 0;
  }
  freeifaddrs(list);
  return found;
}

}  // namespace

int positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < 1 || value > 1'000'000)
    throw Refusal{fmt::format("{} {}: a number of ranks, 1 or more, is wanted", option, text)};
  return static_cast<int>(value);
}

HostChoice parse_host(const std::string& text) {
  unsigned char address[16];
  const std::size_t colon = inet_pton(AF_INET6, text.c_str(), address) == 1 ? std::string::npos : text.rfind(':');
  if (colon == std::string::npos) return {text, 0};
  return {text.substr(0, colon), positive("host " + text.substr(0, colon) + ":", text.substr(colon + 1))};
}

void read_host_file(const std::string& file, std::vector<HostChoice>& hosts) {
  std::ifstream lines(file);
  if (!lines) throw Refusal{fmt::format("cannot read the host file \"{}\"", file)};
  for (std::string line; std::getline(lines, line);) {
    std::replace(line.begin(), line.end(), '\t', ' ');
    const std::vector<std::string> words = split(line.substr(0, line.find('#')), ' ');
    if (words.empty()) continue;
    HostChoice host = parse_host(words.front());
    for (const std::string& word : words)
      if (word.starts_with("slots=")) host.slots = positive("slots", word.substr(6));
    hosts.push_back(std::move(host));
  }
}

bool is_this_machine(const std::string& host) {
  const std::string here = host_name();
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == here ||
         host == here.substr(0, here.find('.')) || is_own_address(host);
}

}  // namespace heddle::mpiexec
