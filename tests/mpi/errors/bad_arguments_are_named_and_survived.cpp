// ranks: 1 2
// timeout: 30
// Every point-to-point call, given a bad rank, tag, count, buffer, datatype or communicator under MPI_ERRORS_RETURN,
// returns the class the standard gives, with a text naming the offending value; the library works on afterwards.
#include <functional>
#include <limits>

#include "../support.hpp"

using namespace test;

namespace {

struct Arguments {
  void* buffer;
  long long count;
  MPI_Datatype type;
  int peer, tag;
  MPI_Comm comm;
};

struct Function {
  const char* name;
  bool receives;  // wildcards are allowed
  std::function<int(const Arguments&)> call;
};

thread_local MPI_Request request;
thread_local MPI_Status status;
thread_local int flag;
thread_local MPI_Message message;
thread_local int other[4];

int small(const Arguments& a) { return static_cast<int>(a.count); }

template <typename Call>
Function nonblocking_send(const char* name, Call call) {
  return {name, false, [call](const Arguments& a) {
            return call(a.buffer, small(a), a.type, a.peer, a.tag, a.comm, &request);
          }};
}

std::vector<Function> functions_with_buffers() {
  return {
      {"MPI_Send", false, [](auto& a) { return MPI_Send(a.buffer, small(a), a.type, a.peer, a.tag, a.comm); }},
      {"MPI_Bsend", false, [](auto& a) { return MPI_Bsend(a.buffer, small(a), a.type, a.peer, a.tag, a.comm); }},
      {"MPI_Ssend", false, [](auto& a) { return MPI_Ssend(a.buffer, small(a), a.type, a.peer, a.tag, a.comm); }},
      {"MPI_Rsend", false, [](auto& a) { return MPI_Rsend(a.buffer, small(a), a.type, a.peer, a.tag, a.comm); }},
      {"MPI_Send_c", false, [](auto& a) { return MPI_Send_c(a.buffer, a.count, a.type, a.peer, a.tag, a.comm); }},
      nonblocking_send("MPI_Isend", MPI_Isend),
      nonblocking_send("MPI_Ibsend", MPI_Ibsend),
      nonblocking_send("MPI_Issend", MPI_Issend),
      nonblocking_send("MPI_Irsend", MPI_Irsend),
      nonblocking_send("MPI_Send_init", MPI_Send_init),
      nonblocking_send("MPI_Bsend_init", MPI_Bsend_init),
      nonblocking_send("MPI_Ssend_init", MPI_Ssend_init),
      nonblocking_send("MPI_Rsend_init", MPI_Rsend_init),
      {"MPI_Recv", true, [](auto& a) { return MPI_Recv(a.buffer, small(a), a.type, a.peer, a.tag, a.comm, &status); }},
      {"MPI_Recv_c", true, [](auto& a) { return MPI_Recv_c(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, &status); }},
      {"MPI_Irecv", true,
       [](auto& a) { return MPI_Irecv(a.buffer, small(a), a.type, a.peer, a.tag, a.comm, &request); }},
      {"MPI_Recv_init", true,
       [](auto& a) { return MPI_Recv_init(a.buffer, small(a), a.type, a.peer, a.tag, a.comm, &request); }},
      {"MPI_Sendrecv, sending", false,
       [](auto& a) {
         return MPI_Sendrecv(a.buffer, small(a), a.type, a.peer, a.tag, other, 4, MPI_INT, MPI_PROC_NULL, 0, a.comm,
                             &status);
       }},
      {"MPI_Sendrecv, receiving", true,
       [](auto& a) {
         return MPI_Sendrecv(other, 4, MPI_INT, MPI_PROC_NULL, 0, a.buffer, small(a), a.type, a.peer, a.tag, a.comm,
                             &status);
       }},
      {"MPI_Sendrecv_replace", false,
       [](auto& a) {
         return MPI_Sendrecv_replace(a.buffer, small(a), a.type, a.peer, a.tag, MPI_PROC_NULL, 0, a.comm, &status);
       }},
      {"MPI_Isendrecv", false,
       [](auto& a) {
         return MPI_Isendrecv(a.buffer, small(a), a.type, a.peer, a.tag, other, 4, MPI_INT, MPI_PROC_NULL, 0, a.comm,
                              &request);
       }},
      {"MPI_Isendrecv_replace", false,
       [](auto& a) {
         return MPI_Isendrecv_replace(a.buffer, small(a), a.type, a.peer, a.tag, MPI_PROC_NULL, 0, a.comm, &request);
       }},
  };
}

std::vector<Function> probes() {
  return {
      {"MPI_Probe", true, [](auto& a) { return MPI_Probe(a.peer, a.tag, a.comm, &status); }},
      {"MPI_Iprobe", true, [](auto& a) { return MPI_Iprobe(a.peer, a.tag, a.comm, &flag, &status); }},
      {"MPI_Mprobe", true, [](auto& a) { return MPI_Mprobe(a.peer, a.tag, a.comm, &message, &status); }},
      {"MPI_Improbe", true, [](auto& a) { return MPI_Improbe(a.peer, a.tag, a.comm, &flag, &message, &status); }},
  };
}

// The call must fail with the class; its text must hold the word, when one is given.
void expect(const Function& f, const Arguments& a, int cls, const std::string& word = {}) {
  request = MPI_REQUEST_NULL;
  const int code = f.call(a);
  if (error_class(code) != cls) fprintf(stderr, "%s: %s\n", f.name, error_text(code).c_str());
  CHECK_EQ(error_class(code), cls);
  const std::string text = error_text(code);
  CHECK(!text.empty());
  if (library_is_heddle() && !word.empty()) CHECK_NAMES(text, word);
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "warp beam");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // where errors without a communicator go ...
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);   // ... which is here since MPI-4

  int data[16] = {};
  MPI_Datatype uncommitted;
  MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
  int* tag_ub = nullptr;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, &tag_ub, &flag);
  CHECK_EQ(flag, 1);
  const Arguments good{data, 1, MPI_INT, w.rank, 1, comm};

  for (const auto& f : functions_with_buffers()) {
    Arguments a = good;
    for (const int peer : {w.size, w.size + 100, std::numeric_limits<int>::max(), -5, std::numeric_limits<int>::min()}) {
      a = good, a.peer = peer;
      expect(f, a, MPI_ERR_RANK, std::to_string(peer));
      expect(f, a, MPI_ERR_RANK, "warp beam");
    }
    if (!f.receives) {
      a = good, a.peer = MPI_ANY_SOURCE;
      expect(f, a, MPI_ERR_RANK);
      a = good, a.tag = MPI_ANY_TAG;
      expect(f, a, MPI_ERR_TAG);
    }
    a = good, a.tag = -7;
    expect(f, a, MPI_ERR_TAG, "-7");
    if (*tag_ub < std::numeric_limits<int>::max()) {
      a = good, a.tag = *tag_ub + 1;
      expect(f, a, MPI_ERR_TAG, std::to_string(*tag_ub + 1));
    }
    a = good, a.count = -3;
    expect(f, a, MPI_ERR_COUNT, "-3");
    a = good, a.buffer = nullptr;
    expect(f, a, MPI_ERR_BUFFER);
    a = good, a.type = MPI_DATATYPE_NULL;
    expect(f, a, MPI_ERR_TYPE);
    a = good, a.type = uncommitted;
    expect(f, a, MPI_ERR_TYPE, "commit");
    a = good, a.comm = MPI_COMM_NULL;
    expect(f, a, MPI_ERR_COMM);
  }
  for (const auto& f : probes()) {
    Arguments a = good;
    a.peer = w.size;
    expect(f, a, MPI_ERR_RANK, std::to_string(w.size));
    a = good, a.tag = -7;
    expect(f, a, MPI_ERR_TAG, "-7");
    a = good, a.comm = MPI_COMM_NULL;
    expect(f, a, MPI_ERR_COMM);
  }
  MPI_Type_free(&uncommitted);

  // All of that left nothing behind.
  CHECK_OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status));
  CHECK_EQ(flag, 0);
  int got = 0;
  const int value = 77;
  CHECK_OK(MPI_Sendrecv(&value, 1, MPI_INT, w.rank, 1, &got, 1, MPI_INT, w.rank, 1, comm, &status));
  CHECK_EQ(got, 77);
  MPI_Comm_free(&comm);
  return finish();
}
