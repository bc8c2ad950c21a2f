// Service names (MPI-5.0 §11.4.4): the launcher keeps them, so that programs started apart from each other find them.
#include <cstring>
#include <optional>
#include <string>

#include "generated/impl.hpp"
#include "sys/bootstrap/bootstrap.hpp"
#include "sys/error.hpp"

namespace heddle::mpi {

int Publish_name(const char* service_name, Info*, const char* port_name) {
  std::string problem;
  if (std::strlen(port_name) >= MPI_MAX_PORT_NAME)
    return error(MPI_ERR_PORT, "the port's name has %zu bytes; MPI_MAX_PORT_NAME allows %d", std::strlen(port_name), MPI_MAX_PORT_NAME - 1);
  return sys::bootstrap::publish(service_name, port_name, problem) ? MPI_SUCCESS : error(MPI_ERR_SERVICE, "%s", problem.c_str());
}

int Unpublish_name(const char* service_name, Info*, const char*) {
  std::string problem;
  return sys::bootstrap::unpublish(service_name, problem) ? MPI_SUCCESS : error(MPI_ERR_SERVICE, "%s", problem.c_str());
}

int Lookup_name(const char* service_name, Info*, char* port_name) {
  std::optional<std::string> port;
  std::string problem;
  if (!sys::bootstrap::lookup(service_name, port, problem)) return error(MPI_ERR_NAME, "%s", problem.c_str());
  if (!port) return error(MPI_ERR_NAME, "the service name \"%s\" is not published, or not where this job's launcher sees it", service_name);
  if (port->size() >= MPI_MAX_PORT_NAME)
    return error(MPI_ERR_NAME, "the port of service name \"%s\" has %zu bytes; MPI_MAX_PORT_NAME allows %d", service_name, port->size(), MPI_MAX_PORT_NAME - 1);
  std::memcpy(port_name, port->c_str(), port->size() + 1);
  return MPI_SUCCESS;
}

}  // namespace heddle::mpi
