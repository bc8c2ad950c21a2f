// HEDDLE_HANG_REPORT: the sentence for each thing that a thread may wait for.
#include "simulation.hpp"

namespace heddle::proto {
namespace {

class ProtoHangReport : public ProtoTest {
 protected:
  std::string report(const WaitSubject& subject, Vci* vci = nullptr) {
    testing::internal::CaptureStderr();
    report_wait(vci, subject, 7);
    return testing::internal::GetCapturedStderr();
  }
  static void expect_in(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }
  static void expect_not_in(const std::string& text, const std::string& part) { EXPECT_EQ(text.find(part), std::string::npos) << text; }
  static void take_back(Request* receive) {
    cancel_receive(*receive);
    finish(receive);
  }
};

TEST_F(ProtoHangReport, a_receive_names_source_tag_and_communicator) {
  const Data to(8);
  Request* receive = b().receive(to, 0, 5);
  expect_in(report({.request = receive, .function = "MPI_Recv"}),
            "has waited for 7 seconds in MPI_Recv: for a message from rank 0, tag 5, on communicator simulated");
  take_back(receive);
  receive = b().receive(to);
  expect_in(report({.request = receive, .function = "MPI_Wait"}), "in MPI_Wait: for a message from any rank, any tag, on communicator simulated");
  take_back(receive);
}

TEST_F(ProtoHangReport, a_send_names_its_size_and_receiver) {
  const Data from = Data::numbered(70'000, 1), to(70'000);
  Request* send = a().send(from, 1, 6);
  expect_in(report({.request = send}), ": to send 70000 bytes to rank 1, tag 6, which has not received them yet, on communicator simulated");
  Request* receive = b().receive(to);
  run({send, receive});
  finish(send);
  finish(receive);
}

TEST_F(ProtoHangReport, a_send_that_was_asked_about_says_who_does_not_answer) {
  Request* send = a().send(Data::numbered(10, 1), 1, 6, SendMode::synchronous);
  a().cancel(send);
  expect_in(report({.request = send}), ": to cancel a send of 10 bytes to rank 1, tag 6, which has not answered: it is in no MPI call");
  settle();
  finish(send);
}

TEST_F(ProtoHangReport, a_part_of_a_collective_and_a_late_rank_are_named_as_such) {
  const Data to(8);
  b().turn();
  Request* receive = irecv(to.buffer(), 2, 9, b().comm(), Space::collective);
  expect_in(report({.request = receive}), ": a part from rank 2, on communicator simulated");
  take_back(receive);
  expect_in(report({.comm = &b().comm(), .rank = 2, .rank_is_late = true, .function = "MPI_Barrier"}),
            "in MPI_Barrier: rank 2 has not come to it, on communicator simulated");
}

TEST_F(ProtoHangReport, what_came_and_nobody_asked_for_is_the_trace_of_a_wrong_tag) {
  const Data to(8);
  a().send(Data::numbered(8, 1), 1, 4);
  b().step();
  Request* receive = b().receive(to, 0, 5);
  std::string text = report({.request = receive});
  expect_in(text, ". Not asked for so far: a message from rank 0, tag 4, 8 bytes, on the same communicator");
  a().send(Data::numbered(8, 1), 1, 3);
  b().step();
  text = report({.request = receive});
  expect_in(text, ". Not asked for so far: 2 messages; the first is from rank 0, tag 4, 8 bytes, on the same communicator");
  take_back(receive);
  finish(b().receive(to, 0, 4));
  finish(b().receive(to, 0, 3));
  receive = b().receive(to, 0, 5);
  expect_not_in(report({.request = receive}), "Not asked for");
  take_back(receive);
}

}  // namespace
}  // namespace heddle::proto
