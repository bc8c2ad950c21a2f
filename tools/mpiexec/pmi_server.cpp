#include "pmi_server.hpp"

#include <fmt/format.h>

#include <utility>

#include "sys/bootstrap/encoding.hpp"
#include "sys/bootstrap/pmi1_wire.hpp"

namespace heddle::mpiexec {

using sys::bootstrap::decode_percent;
using sys::bootstrap::wire_number;
using sys::bootstrap::wire_value;

PmiServer::PmiServer(std::string job_id, int size, int universe_size, std::vector<int> appnums, NameService& names,
                     PmiEvents events)
    : job_id_(std::move(job_id)),
      universe_size_(universe_size),
      appnums_(std::move(appnums)),
      names_(names),
      events_(std::move(events)),
      clients_(static_cast<std::size_t>(size)) {
  values_["PMI_process_mapping"] = fmt::format("(vector,(0,1,{}))", size);
}

void PmiServer::receive(int rank, std::string_view bytes) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  while (!bytes.empty() && !client.broken) {
    const std::size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    if (client.partial.size() + piece.size() > longest_line) {
      client.broken = true;
      client.partial = std::string();
      events_.broken(rank, fmt::format("a line of more than {} bytes", longest_line));
      return;
    }
    if (newline == std::string_view::npos) {
      client.partial += piece;
      return;
    }
    bytes.remove_prefix(newline + 1);
    if (client.partial.empty()) {
      handle_line(rank, piece);
    } else {
      const std::string line = std::exchange(client.partial, {}) + std::string(piece);
      handle_line(rank, line);
    }
  }
}

void PmiServer::answer(int rank, std::string_view line) { events_.reply(rank, line); }

void PmiServer::handle_line(int rank, std::string_view line) {
  if (line.find('\0') != std::string_view::npos) {
    answer(rank, "cmd=error rc=-1 msg=zero_byte_in_command\n");
    return;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  Client& client = clients_[static_cast<std::size_t>(rank)];
  if (client.in_spawn_part || line.starts_with("mcmd=")) {
    handle_spawn_line(rank, line);
    return;
  }
  if (line.empty()) return;
  const std::string_view command = wire_value(line, "cmd").value_or("");
  const bool quiet = wire_number(line, "quiet") == 1;
  if (command == "init") {
    init(rank, line, quiet);
  } else if (command == "put") {
    put(rank, line, quiet);
  } else if (command == "get") {
    get(rank, line);
  } else if (command == "barrier_in") {
    barrier(rank);
  } else if (command == "finalize") {
    if (!quiet) answer(rank, "cmd=finalize_ack rc=0\n");
    events_.finalized(rank);
  } else if (command == "abort") {
    abort(rank, line);
  } else if (command == "get_maxes") {
    answer(rank, "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  } else if (command == "get_universe_size") {
    answer(rank, fmt::format("cmd=universe_size rc=0 size={}\n", universe_size_));
  } else if (command == "get_appnum") {
    answer(rank, fmt::format("cmd=appnum rc=0 appnum={}\n", appnums_[static_cast<std::size_t>(rank)]));
  } else if (command == "get_my_kvsname") {
    answer(rank, fmt::format("cmd=my_kvsname rc=0 kvsname={}\n", job_id_));
  } else if (command == "publish_name") {
    publish(rank, line);
  } else if (command == "lookup_name") {
    lookup(rank, line);
  } else if (command == "unpublish_name") {
    unpublish(rank, line);
  } else {
    answer(rank, "cmd=error rc=-1 msg=unknown_command\n");
  }
}

void PmiServer::init(int rank, std::string_view line, bool quiet) {
  if (wire_number(line, "pmi_version").value_or(1) != 1) {
    answer(rank, "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n");
    return;
  }
  if (!quiet) answer(rank, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
  events_.initialized(rank);
}

void PmiServer::put(int rank, std::string_view line, bool quiet) {
  const auto key = wire_value(line, "key");
  const auto value = wire_value(line, "value");
  if (!key || key->empty() || !value || wire_value(line, "kvsname").value_or(job_id_) != job_id_) {
    answer(rank, "cmd=put_result rc=-1 msg=bad_put\n");
    return;
  }
  values_.insert_or_assign(std::string(*key), std::string(*value));
  if (!quiet) answer(rank, "cmd=put_result rc=0 msg=success\n");
}

void PmiServer::get(int rank, std::string_view line) {
  const auto key = wire_value(line, "key");
  const auto found = key ? values_.find(std::string(*key)) : values_.end();
  if (found == values_.end())
    answer(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  else
    answer(rank, "cmd=get_result rc=0 msg=success value=" + found->second + "\n");
}

void PmiServer::barrier(int rank) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  if (client.in_barrier) return;  // a client that does not wait for its barrier counts once
  client.in_barrier = true;
  if (++in_barrier_ < static_cast<int>(clients_.size())) return;
  in_barrier_ = 0;
  // All flags first: a reply may come back as a failure of that rank's connection, which must find a clean state.
  for (Client& each : clients_) each.in_barrier = false;
  for (int each = 0; each < static_cast<int>(clients_.size()); ++each) answer(each, "cmd=barrier_out rc=0\n");
}

void PmiServer::abort(int rank, std::string_view line) {
  events_.aborted(rank, wire_number(line, "exitcode").value_or(1),
                  decode_percent(wire_value(line, "message").value_or("")));
}

void PmiServer::publish(int rank, std::string_view line) {
  const auto service = wire_value(line, "service");
  const auto port = wire_value(line, "port");
  if (!service || service->empty() || !port)
    answer(rank, "cmd=publish_result rc=-1 msg=bad_publish\n");
  else if (!names_.try_emplace(std::string(*service), *port).second)
    answer(rank, "cmd=publish_result rc=1 msg=already_published\n");
  else
    answer(rank, "cmd=publish_result rc=0 msg=success info=ok\n");
}

void PmiServer::lookup(int rank, std::string_view line) {
  const auto service = wire_value(line, "service");
  const auto found = service ? names_.find(std::string(*service)) : names_.end();
  if (found == names_.end())
    answer(rank, "cmd=lookup_result rc=1 msg=service_not_found info=notok\n");
  else
    answer(rank, "cmd=lookup_result rc=0 info=ok port=" + found->second + "\n");
}

void PmiServer::unpublish(int rank, std::string_view line) {
  const auto service = wire_value(line, "service");
  if (service && names_.erase(std::string(*service)) == 1)
    answer(rank, "cmd=unpublish_result rc=0 msg=success info=ok\n");
  else
    answer(rank, "cmd=unpublish_result rc=1 msg=service_not_found info=notok\n");
}

// `mcmd=spawn`, then one `key=value` per line, then `endcmd`; once for each program of a multiple spawn.
void PmiServer::handle_spawn_line(int rank, std::string_view line) {
  constexpr std::size_t most_parts = 4096, most_keys = 65536;  // against a client that never ends its command
  Client& client = clients_[static_cast<std::size_t>(rank)];
  if (!client.in_spawn_part) {
    if (line != "mcmd=spawn") {
      answer(rank, "cmd=error rc=-1 msg=unknown_command\n");
      return;
    }
    if (!client.spawn) client.spawn.emplace();
    client.spawn->parts.emplace_back();
    client.in_spawn_part = true;
    return;
  }
  auto& part = client.spawn->parts.back();
  if (line != "endcmd") {
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && part.size() < most_keys)
      part.insert_or_assign(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)));
    return;
  }
  client.in_spawn_part = false;
  const auto total = part.find("totspawns");
  const auto expected = total != part.end() ? sys::bootstrap::parse_number(total->second) : std::nullopt;
  if (expected && *expected > static_cast<int>(client.spawn->parts.size()) && client.spawn->parts.size() < most_parts)
    return;
  client.spawn.reset();
  answer(rank, "cmd=spawn_result rc=-1 msg=spawn_is_not_supported\n");
}

}  // namespace heddle::mpiexec
