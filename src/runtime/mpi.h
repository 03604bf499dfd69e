// Ranks that are processes, started by mpirun. MPI is opened when it is needed, so that nothing
// links it: Open MPI or MPICH, whichever started the process. Their binary interfaces differ
// (handles are pointers in one and numbers in the other), so each has its own implementation here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/transport.h"

namespace ein {

// Whether mpirun started this process, and which rank of how many it is, according to the
// environment.
struct MpiPlace {
  int64_t rank = 0, ranks = 1;
  int64_t beside = 1;  // ranks on this machine
  bool open_mpi = true;
};
std::optional<MpiPlace> mpi_place();

// A transport over MPI, and how ranks exchange texts besides cells.
class MpiTransport : public Transport {
 public:
  // Announces that this rank sends no more cells, so that no rank waits for them.
  virtual void end() = 0;
  // Texts between ranks, separate from cells and from `end`; they arrive in the order in which they
  // were sent.
  virtual void tell(int64_t to, const std::string& words) = 0;
  virtual std::optional<std::string> hear(int64_t from) = 0;  // nothing if that rank has ended
};

// Initialises MPI; otherwise says why that is not possible. MPI is finalised when the transport is
// destroyed.
std::variant<std::unique_ptr<MpiTransport>, std::string> open_mpi(const MpiPlace& place);

}  // namespace ein
