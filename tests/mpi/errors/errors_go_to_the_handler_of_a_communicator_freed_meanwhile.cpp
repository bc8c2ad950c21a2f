// ranks: 2
// timeout: 60
// MPI_Comm_free lets operations under way go on, and the communicator lives until they are over: an error of theirs goes to its
// own handler, which can still ask it for its name, and to no other communicator's. Then it goes. MPI-5.0 §7.4.3
#include "../support.hpp"

#include <functional>

using namespace test;

namespace {

struct Seen {
  int calls = 0, error_class = MPI_SUCCESS;
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
} seen;
int wrong_calls = 0;

void on_doomed(MPI_Comm* comm, int* code, ...) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  MPI_Comm_get_name(*comm, name, &length);
  seen = {seen.calls + 1, error_class(*code), *comm, name};
}
void on_other(MPI_Comm*, int*, ...) { ++wrong_calls; }

constexpr int large = 1 << 20;
thread_local std::vector<char> large_block(large), small_block(64);
thread_local MPI_Errhandler doomed_handler, other_handler;  // of each rank, which may be a thread

MPI_Comm new_comm(MPI_Errhandler handler, const char* name) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_name(comm, name);
  return comm;
}

/// Rank 0 starts an operation on a communicator and frees it; others take its place in memory; then rank 1 sends what does not fit.
/// \param bytes of the message   \param early sent before the communicator is freed, for probes
/// \param begin starts the operation; returns what ends it, with the code that it wants
struct Operation {
  const char* what;
  int bytes;
  bool early, answers;
  int wanted;
  std::function<std::function<int()>(MPI_Comm)> begin;
};

void run(const World& w, const Operation& operation) {
  const MPI_Comm comm = new_comm(doomed_handler, "doomed");
  MPI_Comm copy = comm;
  std::function<int()> end;
  if (w.rank == 1 && operation.early) MPI_Send(large_block.data(), operation.bytes, MPI_CHAR, 0, 5, comm);
  if (w.rank == 0) {
    end = operation.begin(comm);
    MPI_Comm_free(&copy);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm others[3];
  for (MPI_Comm& other : others) other = new_comm(other_handler, "another");
  if (w.rank == 1) {
    if (!operation.early) MPI_Send(large_block.data(), operation.bytes, MPI_CHAR, 0, 5, comm);
    if (operation.answers) MPI_Recv(small_block.data(), 1, MPI_CHAR, 0, 6, comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
  } else {
    seen = Seen{};
    const int code = end();
    if (operation.wanted == MPI_SUCCESS) {
      CHECK_EQ(seen.calls, 0);
    } else {
      if (seen.calls != 1) std::fprintf(stderr, "in %s of %d bytes\n", operation.what, operation.bytes);
      CHECK_EQ(seen.calls, 1);
      CHECK_EQ(error_class(code), operation.wanted);
      CHECK_EQ(seen.error_class, operation.wanted);
      CHECK(seen.comm == comm);
      CHECK(seen.name == "doomed");
    }
    CHECK_EQ(wrong_calls, 0);
  }
  for (MPI_Comm& other : others) MPI_Comm_free(&other);
}

MPI_Request receive(MPI_Comm comm) {
  MPI_Request request;
  MPI_Irecv(small_block.data(), 8, MPI_CHAR, 1, 5, comm, &request);
  return request;
}

}  // namespace

int main() {
  const World w = init();
  MPI_Comm_create_errhandler(on_doomed, &doomed_handler);
  MPI_Comm_create_errhandler(on_other, &other_handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, other_handler);

  const auto with = [](auto finish) {
    return [finish](MPI_Comm comm) -> std::function<int()> {
      return [finish, request = receive(comm)]() mutable { return finish(request); };
    };
  };
  const auto wait = [](MPI_Request& r) { return MPI_Wait(&r, MPI_STATUS_IGNORE); };
  const auto test = [](MPI_Request& r) {
    int flag = 0, code = MPI_SUCCESS;
    while (!flag) code = MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    return code;
  };
  const auto wait_all = [](MPI_Request& r) { return MPI_Waitall(1, &r, MPI_STATUSES_IGNORE); };
  const auto wait_any = [](MPI_Request& r) {
    int index;
    return MPI_Waitany(1, &r, &index, MPI_STATUS_IGNORE);
  };
  const auto wait_some = [](MPI_Request& r) {
    int count, index;
    return MPI_Waitsome(1, &r, &count, &index, MPI_STATUSES_IGNORE);
  };
  const auto probed = [](auto finish) {
    return [finish](MPI_Comm comm) -> std::function<int()> {
      MPI_Message message;
      MPI_Mprobe(1, 5, comm, &message, MPI_STATUS_IGNORE);
      return [finish, message]() mutable { return finish(message); };
    };
  };
  const auto receive_probed = [](MPI_Message& m) { return MPI_Mrecv(small_block.data(), 8, MPI_CHAR, &m, MPI_STATUS_IGNORE); };
  const auto receive_probed_later = [](MPI_Message& m) {
    MPI_Request request;
    MPI_Imrecv(small_block.data(), 8, MPI_CHAR, &m, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  const auto exchange = [](MPI_Comm comm) -> std::function<int()> {
    MPI_Request request;
    MPI_Isendrecv("x", 1, MPI_CHAR, 1, 6, small_block.data(), 8, MPI_CHAR, 1, 5, comm, &request);
    return [request]() mutable { return MPI_Wait(&request, MPI_STATUS_IGNORE); };
  };
  const auto persist = [](MPI_Comm comm) -> std::function<int()> {
    MPI_Request request;
    MPI_Recv_init(small_block.data(), 8, MPI_CHAR, 1, 5, comm, &request);
    MPI_Start(&request);
    return [request]() mutable {
      const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
      return code;
    };
  };
  const auto derived = [](MPI_Comm comm) -> std::function<int()> {
    MPI_Datatype type;
    MPI_Type_vector(2, 2, 4, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_Request request;
    MPI_Irecv(small_block.data(), 1, type, 1, 5, comm, &request);
    MPI_Type_free(&type);
    return [request]() mutable { return MPI_Wait(&request, MPI_STATUS_IGNORE); };
  };
  const auto forget = [](MPI_Comm comm) -> std::function<int()> {  // nobody learns of the error, and nothing is left
    static std::vector<char> room(large);
    MPI_Request request;
    MPI_Irecv(room.data(), large, MPI_CHAR, 1, 5, comm, &request);
    MPI_Request_free(&request);
    return [] { return MPI_SUCCESS; };
  };

  for (const int bytes : {32, large}) {
    run(w, {"MPI_Wait", bytes, false, false, MPI_ERR_TRUNCATE, with(wait)});
    run(w, {"MPI_Test", bytes, false, false, MPI_ERR_TRUNCATE, with(test)});
    run(w, {"MPI_Waitall", bytes, false, false, MPI_ERR_IN_STATUS, with(wait_all)});
    run(w, {"MPI_Waitany", bytes, false, false, MPI_ERR_TRUNCATE, with(wait_any)});
    run(w, {"MPI_Waitsome", bytes, false, false, MPI_ERR_IN_STATUS, with(wait_some)});
    run(w, {"MPI_Isendrecv", bytes, false, true, MPI_ERR_TRUNCATE, exchange});
    run(w, {"MPI_Recv_init", bytes, false, false, MPI_ERR_TRUNCATE, persist});
    run(w, {"a derived datatype", bytes, false, false, MPI_ERR_TRUNCATE, derived});
    run(w, {"MPI_Request_free", bytes, false, false, MPI_SUCCESS, forget});
  }
  run(w, {"MPI_Mrecv", 32, true, false, MPI_ERR_TRUNCATE, probed(receive_probed)});
  run(w, {"MPI_Imrecv", 32, true, false, MPI_ERR_TRUNCATE, probed(receive_probed_later)});

  // Communicators go when their last operation is over: new ones take their places.
  for (int i = 0; i < 500; ++i) {
    run(w, {"MPI_Wait", 32, false, false, MPI_ERR_TRUNCATE, with(wait)});
    run(w, {"MPI_Request_free", 32, false, false, MPI_SUCCESS, forget});
  }
  MPI_Comm last = new_comm(other_handler, "last");
  if (library_is_heddle()) CHECK_LT(MPI_Comm_toint(last), 4096 + 256);
  MPI_Comm_free(&last);
  MPI_Errhandler_free(&doomed_handler);
  MPI_Errhandler_free(&other_handler);
  return finish();
}
