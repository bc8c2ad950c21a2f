// The protocol, read once more: what must come of what is sent to a fuzzed context, and whether what comes is that.
#include "tcp_peer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace heddle::test {

std::size_t Stranger::follow(Line& line, const std::byte* at, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    if (line.bad) return bytes;
    if (line.have < sizeof line.head) {
      const std::size_t n = std::min(bytes - done, sizeof line.head - line.have);
      std::memcpy(line.head + line.have, at + done, n);
      line.have += n;
      done += n;
      if (line.have < sizeof line.head) return done;
      tcp::PacketHead head;
      std::memcpy(&head, line.head, sizeof head);
      if (is_unclear(line, head)) return done - n;
      line.bad = !is_good(line, head);
      if (line.bad) continue;
      line.left = head.bytes;
      line.pad = tcp::padding(head.bytes);
      line.body.clear();
      line.reply = nullptr;
      line.writing = nullptr;
      if (head.kind == tcp::PacketKind::reply) {
        line.reply = read_of(line, head.id);
        line.reply->landing = &line;
      }
      if (!line.left) end_body(line);
      continue;
    }
    tcp::PacketHead head;
    std::memcpy(&head, line.head, sizeof head);
    const bool writes = head.kind == tcp::PacketKind::write || head.kind == tcp::PacketKind::write_with_data;
    const std::size_t lacks = writes && !line.writing ? sizeof(tcp::WriteHead) - line.body.size() : line.left + line.pad;
    const std::size_t n = std::min({bytes - done, line.left + line.pad, lacks}), of_body = std::min(n, line.left);
    if (line.writing) {
      for (std::size_t i = 0; i < of_body; ++i, ++line.place) {
        line.writing->right[line.place] = at[done + i];
        line.writing->unsure[line.place] = is_troubled(line.peer);
      }
    } else {
      std::vector<std::byte>& to = line.reply ? line.reply->expected : line.body;
      to.insert(to.end(), at + done, at + done + of_body);
    }
    done += n;
    if (writes && !line.writing && line.body.size() == sizeof(tcp::WriteHead)) {
      begin_write(line);
      if (line.bad) continue;
    }
    line.pad -= n - of_body;
    line.left -= of_body;
    if (of_body && !line.left) end_body(line);
    else if (!line.left && !line.pad) end_packet(line);
  }
  return done;
}

void Stranger::begin_write(Line& line) {
  tcp::PacketHead head;
  tcp::WriteHead where;
  std::memcpy(&head, line.head, sizeof head);
  std::memcpy(&where, line.body.data(), sizeof where);
  const std::size_t bytes = head.bytes - sizeof where;
  line.bad = true;
  if (!written_[line.peer].may_be_next(static_cast<std::uint32_t>(head.id))) return;
  for (const auto& region : regions) {
    if (!region->used || !region->may_write || region->registration.key != where.key) continue;
    if (where.offset > region->bytes || bytes > region->bytes - where.offset) return;
    line.writing = region.get();
    line.place = Region::guard + where.offset;
    line.bad = false;
  }
}

/// All of it was sent. False: it must not have come.
bool Stranger::end_write(Line& line) {
  tcp::PacketHead head;
  std::memcpy(&head, line.head, sizeof head);
  const auto number = static_cast<std::uint32_t>(head.id);
  line.writing = nullptr;
  Written& all = written_[line.peer];
  if (!all.may_be_next(number)) return false;
  if (number == all.landed + 1) {
    ++all.landed;
    if (all.early && all.early_from == all.landed + 1) all.landed += std::exchange(all.early, 0);
  } else if (!all.early++) {
    all.early_from = number;
  }
  if (head.kind == tcp::PacketKind::write_with_data) ++announced_[static_cast<std::uint32_t>(head.id >> 32)];
  std::erase_if(all.questions, [&](const auto& one) {
    if (static_cast<std::int32_t>(one.first - all.landed) > 0) return false;
    confirmed_.emplace_back(line.peer, one.second);
    return true;
  });
  return true;
}

Posted* Stranger::read_of(const Line& line, std::uint64_t id, bool confirms) {
  for (const auto& one : posted)
    if (one->reads && one->confirms == confirms && one->asked && !one->complete && !one->finished && !one->refused && one->id == id &&
        one->peer == line.peer)
      return one.get();
  return nullptr;
}

bool Stranger::is_unclear(const Line& line, const tcp::PacketHead& head) {
  const bool confirms = head.kind == tcp::PacketKind::confirmed;
  if (head.kind != tcp::PacketKind::reply && head.kind != tcp::PacketKind::refusal && !confirms) return false;
  return !read_of(line, head.id, confirms) && std::any_of(posted.begin(), posted.end(), [&](const auto& one) {
    return one->reads && !one->asked && !one->complete && one->peer == line.peer;
  });
}

bool Stranger::is_good(const Line& line, const tcp::PacketHead& head) {
  if (head.version != tcp::packet_version) return false;
  if (line.meant && !line.peer)
    return head.kind == tcp::PacketKind::welcome && head.bytes == sizeof line.challenge;
  if (line.greeter && !line.peer)
    return head.kind == tcp::PacketKind::choice && head.bytes == 0 && line.welcomed_us &&
           head.id == tcp::proof_of(job, tcp::PacketKind::choice, line.greeter, identity_of(context.name()), line.challenge);
  if (!line.peer) return head.kind == tcp::PacketKind::greeting && head.bytes == sizeof(tcp::Greeting);
  switch (head.kind) {
    case tcp::PacketKind::message: return head.bytes <= largest;
    case tcp::PacketKind::request: return head.bytes == sizeof(tcp::ReadRequest);
    case tcp::PacketKind::reply:
    case tcp::PacketKind::refusal: {
      const Posted* read = read_of(line, head.id);
      return read && !read->landing && head.bytes == (head.kind == tcp::PacketKind::reply ? read->bytes : 0);
    }
    case tcp::PacketKind::confirmed: return read_of(line, head.id, true) && head.bytes == 0;
    case tcp::PacketKind::write:
    case tcp::PacketKind::write_with_data:
      return head.bytes >= sizeof(tcp::WriteHead) && head.bytes - sizeof(tcp::WriteHead) <= context.capabilities().largest_write;
    case tcp::PacketKind::confirm: return head.bytes == sizeof(tcp::WriteAwaited);
    default: return false;
  }
}

void Stranger::end_body(Line& line) {
  if (line.reply) {
    line.reply->finished = true;
    line.reply->landing = nullptr;
    line.reply = nullptr;
  }
  if (line.writing && !end_write(line)) {
    line.bad = true;
    return;
  }
  if (!line.pad) end_packet(line);
}

void Stranger::end_packet(Line& line) {
  tcp::PacketHead head;
  std::memcpy(&head, line.head, sizeof head);
  line.have = 0;
  switch (head.kind) {
    case tcp::PacketKind::greeting: {
      tcp::Greeting greeting;
      std::memcpy(&greeting, line.body.data(), sizeof greeting);
      line.bad = greeting.to != identity_of(context.name()) || head.id != tcp::proof_of(job, tcp::PacketKind::greeting, greeting.from, greeting.to, greeting.asks_for_welcome);
      if (line.bad) break;
      (greeting.asks_for_welcome ? line.greeter : line.peer) = greeting.from;
      break;
    }
    case tcp::PacketKind::welcome:
      std::memcpy(&line.challenge, line.body.data(), sizeof line.challenge);
      line.bad = head.id != tcp::proof_of(job, tcp::PacketKind::welcome, line.meant, identity_of(context.name()), line.challenge);
      if (!line.bad) line.peer = line.meant;
      break;
    case tcp::PacketKind::choice: line.peer = line.greeter; break;
    case tcp::PacketKind::message: expected_.push_back(line.body); break;
    case tcp::PacketKind::refusal: read_of(line, head.id)->refused = true; break;
    case tcp::PacketKind::confirmed: read_of(line, head.id, true)->finished = true; break;
    case tcp::PacketKind::confirm: {
      tcp::WriteAwaited question;
      std::memcpy(&question, line.body.data(), sizeof question);
      Written& all = written_[line.peer];
      if (static_cast<std::int32_t>(question.number - all.landed) <= 0) confirmed_.emplace_back(line.peer, head.id);
      else if (all.questions.size() < 1024) all.questions.emplace_back(question.number, head.id);
      else line.bad = true;
      break;
    }
    case tcp::PacketKind::request: {
      tcp::ReadRequest request;
      std::memcpy(&request, line.body.data(), sizeof request);
      Answer answer{line.peer, head.id, false, false, 0, 0, request.offset, request.bytes};
      for (std::size_t i = 0; i < regions.size(); ++i) {
        const Region& region = *regions[i];
        if (!region.used || region.may_write || region.registration.key != request.key) continue;
        answer.good = request.offset <= region.bytes && request.bytes <= region.bytes - request.offset;
        answer.region = i;
        answer.seed = region.seed;
      }
      answers_.push_back(answer);
      break;
    }
    default: break;
  }
}

void Stranger::arrived(const wire::Event& event) {
  if (!event.operation && !event.data) {
    const auto one = announced_.find(event.immediate);
    must(one != announced_.end(), "a write is announced that was not sent, or is not there yet");
    if (!--one->second) announced_.erase(one);
    return;
  }
  if (!event.operation) {
    must(!expected_.empty(), "a message is handed out that was not sent");
    must(!(reinterpret_cast<std::uintptr_t>(event.data) & 7), "a message does not lie at a multiple of eight");
    const std::vector<std::byte>& right = expected_.front();
    must(event.bytes == right.size() && std::equal(right.begin(), right.end(), event.data), "a message is handed out changed, or not in order");
    expected_.pop_front();
    ++messages_;
    return;
  }
  Posted& one = *reinterpret_cast<Posted*>(event.operation);
  must(!one.complete, "an operation completes twice");
  one.complete = true;
  if (!one.reads) {
    must(!event.error || is_troubled(one.peer), "a message to a good peer fails");
    return;
  }
  if (event.error) {
    must(one.refused || (is_troubled(one.peer) && !one.finished), "a read from a good peer fails");
    if (!one.refused) fail_reads(one.peer);
  } else {
    must(one.finished, "a read completes without its reply");
    must(std::equal(one.expected.begin(), one.expected.end(), one.at()) && one.expected.size() == one.bytes, "a read brings other bytes than its reply");
  }
  std::fill(one.at(), one.at() + one.bytes, std::byte{0xa5});  // it is the caller's again
}

void Stranger::fail_reads(std::uint64_t peer) {
  failing_.push_back(peer);
  for (auto& line : lines)
    if (line->peer == peer && line->reply) {
      line->reply = nullptr;
      line->over = line->bad = true;
    }
}

void Stranger::came(Line& line, const tcp::PacketHead& head, const std::byte* body) {
  must(head.version == tcp::packet_version, "the context sends another version");
  if (line.ours && !line.greeted_us) {
    tcp::Greeting greeting;
    must(head.kind == tcp::PacketKind::greeting && head.bytes == sizeof greeting, "the context does not greet");
    std::memcpy(&greeting, body, sizeof greeting);
    const bool searched = greeting.to == identity_of(searched_name(0)) || greeting.to == identity_of(searched_name(1));
    must(greeting.from == identity_of(context.name()) && listens(greeting.to) && greeting.asks_for_welcome == searched &&
             head.id == tcp::proof_of(job, tcp::PacketKind::greeting, greeting.from, greeting.to, searched), "the context greets as somebody else, or somebody else");
    line.greeted_us = true;
    (searched ? line.meant : line.peer) = greeting.to;
    return;
  }
  if (line.greeter && !line.welcomed_us) {
    must(head.kind == tcp::PacketKind::welcome && head.bytes == sizeof line.challenge, "the context does not welcome who asks for it");
    std::memcpy(&line.challenge, body, sizeof line.challenge);
    must(head.id == tcp::proof_of(job, tcp::PacketKind::welcome, identity_of(context.name()), line.greeter, line.challenge), "the context welcomes somebody else");
    line.welcomed_us = true;
    return;
  }
  must(line.peer, "the context sends before it knows to whom");
  if (line.meant && !line.chose_us) {
    must(head.kind == tcp::PacketKind::choice && head.bytes == 0 &&
             head.id == tcp::proof_of(job, tcp::PacketKind::choice, identity_of(context.name()), line.meant, line.challenge), "the context does not choose where it was welcomed");
    line.chose_us = true;
    return;
  }
  switch (head.kind) {
    case tcp::PacketKind::write: {
      tcp::WriteHead where;
      must(head.bytes >= sizeof where, "a write is of another size");
      std::memcpy(&where, body, sizeof where);
      const std::size_t number = where.offset >> 32, bytes = head.bytes - sizeof where;
      must(where.key == 0x5eed && number && number <= posted.size(), "the context writes what nobody posted");
      Posted& one = *posted[number - 1];
      must(one.writes && !one.arrived && one.peer == line.peer && one.room.size() == bytes && std::equal(one.room.begin(), one.room.end(), body + sizeof where),
           "the context writes twice, something else or elsewhere");
      must(head.id == one.count, "a write has a wrong number");
      one.arrived = true;
      return;
    }
    case tcp::PacketKind::confirm: {
      tcp::WriteAwaited question;
      must(head.bytes == sizeof question, "a confirmation is asked for in another size");
      std::memcpy(&question, body, sizeof question);
      for (const auto& one : posted) {
        if (!one->confirms || one->asked || one->peer != line.peer || one->count != question.number) continue;
        one->asked = true;
        one->id = head.id;
        return;
      }
      wrong("the context asks for a confirmation that nobody wants");
    }
    case tcp::PacketKind::confirmed: {
      const auto one = std::find(confirmed_.begin(), confirmed_.end(), std::pair{line.peer, head.id});
      must(one != confirmed_.end() && head.bytes == 0, "the context confirms what is not there, or twice");
      confirmed_.erase(one);
      return;
    }
    case tcp::PacketKind::message: {
      std::size_t number = 0;
      if (head.bytes >= sizeof number) std::memcpy(&number, body, sizeof number);
      must(number && number <= posted.size(), "the context sends a message that nobody posted");
      Posted& one = *posted[number - 1];
      must(!one.writes && !one.reads && !one.arrived && one.peer == line.peer && one.room.size() == head.bytes && std::equal(one.room.begin(), one.room.end(), body),
           "the context sends a message twice, changed or elsewhere");
      one.arrived = true;
      return;
    }
    case tcp::PacketKind::request: {
      tcp::ReadRequest request;
      must(head.bytes == sizeof request, "a request is of another size");
      std::memcpy(&request, body, sizeof request);
      must(request.offset && request.offset <= posted.size(), "the context asks for what nobody posted");
      Posted& one = *posted[request.offset - 1];
      must(!one.asked && one.peer == line.peer && one.bytes == request.bytes && request.key == 0x5eed, "the context asks twice, for something else or elsewhere");
      must(one.complete || !read_of(line, head.id), "two reads have one id");
      one.asked = true;
      one.id = head.id;
      return;
    }
    case tcp::PacketKind::reply:
    case tcp::PacketKind::refusal: {
      const bool reply = head.kind == tcp::PacketKind::reply;
      for (auto answer = answers_.begin(); answer != answers_.end(); ++answer) {
        if (answer->peer != line.peer || answer->id != head.id || (reply ? !answer->good : answer->good && !answer->withdrawn)) continue;
        bool same = head.bytes == (reply ? answer->bytes : 0);
        for (std::size_t i = 0; same && i < head.bytes; ++i) same = body[i] == byte_of(answer->seed, answer->offset + i);
        if (!same) continue;
        if (reply) ++answered_[head.id];
        answers_.erase(answer);
        return;
      }
      wrong(reply ? "the context gives out memory that it was not asked for, or may not" : "the context refuses what it should give");
    }
    default: wrong("the context sends something unknown");
  }
}

void Stranger::verify() {
  for (const auto& region : regions)
    for (std::size_t i = 0; i < region->memory.size(); ++i) {
      const bool guard = i < Region::guard || i >= Region::guard + region->bytes;
      if (region->memory[i] != region->right[i] && !region->unsure[i]) wrong(guard ? "a byte was written outside of what is exposed" : "exposed memory holds other bytes than were written");
    }
  for (const std::uint64_t peer : failing_)
    for (const auto& one : posted)
      must(one->peer != peer || !one->reads || one->complete, "one read fails because of its peer, and another does not");
  failing_.clear();
  for (auto& line : lines) {
    if (line->ended && line->over) continue;
    const bool closed = line->fd < 0 || inside_of(*line) < 0;
    if (!closed) continue;
    // Of a peer in trouble the context may close what else there is of it.
    // And who has not greeted for a minute, in a process that was stopped meanwhile, is sent away.
    const bool late = !line->peer && std::chrono::steady_clock::now() - line->since > std::chrono::seconds(30);
    // A search ends when the peer has come by itself.
    const bool found = line->meant && !line->peer && lines_of(line->meant);
    must(line->over || late || found || (line->peer && is_troubled(line->peer)) || (line->meant && is_troubled(line->meant)), "a good connection is closed");
    if (line->reply) line->reply->landing = nullptr;
    line->reply = nullptr;
    line->over = line->ended = true;
    if (!line->peer) continue;
    for (const auto& one : posted) {
      if (one->peer != line->peer || one->complete) continue;
      if (line->bad && one->reads) wrong("a read survives the bad packet of its peer");
      if (!lines_of(line->peer)) wrong("what was posted to a peer without a connection does not fail");
    }
  }
}

}  // namespace heddle::test
