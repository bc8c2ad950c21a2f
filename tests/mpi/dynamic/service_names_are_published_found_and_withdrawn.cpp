// ranks: 1 3
// A port published under a service name is found by every rank, whatever bytes both hold, until it is withdrawn. What is published
// already cannot be published, and what is not published can be neither found nor withdrawn.
#include "../support.hpp"

using namespace test;

int main() {
  const World w = init();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const char service[] = "a service, with % and = and spaces";
  std::string port = "port #1 = /x\ny";
  port.append(500, 'p');
  char found[MPI_MAX_PORT_NAME];
  if (w.rank == 0) {
    CHECK_CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_ERR_NAME);
    CHECK_CLASS(MPI_Unpublish_name(service, MPI_INFO_NULL, port.c_str()), MPI_ERR_SERVICE);
    CHECK_OK(MPI_Publish_name(service, MPI_INFO_NULL, port.c_str()));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::memset(found, 'x', sizeof found);
  CHECK_OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
  CHECK_STR(found, port.c_str());
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == w.size - 1) CHECK_CLASS(MPI_Publish_name(service, MPI_INFO_NULL, "elsewhere"), MPI_ERR_SERVICE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (w.rank == 0) CHECK_OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port.c_str()));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_ERR_NAME);
  const std::string too_long(MPI_MAX_PORT_NAME, 'p');
  CHECK_CLASS(MPI_Publish_name("another", MPI_INFO_NULL, too_long.c_str()), MPI_ERR_PORT);
  return finish();
}
