// Ranks that are processes, started by mpirun. MPI is opened when it is needed, so that nothing links it: Open MPI or
// MPICH, whichever started the process. Their binaries do not fit each other (handles are pointers there
// and numbers here), so each has its own way in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/transport.h"

namespace ein {

// Whether mpirun started this process, and as which rank of how many, by what it left in the environment.
struct MpiPlace {
  int64_t rank = 0, ranks = 1;
  int64_t beside = 1;  // ranks on this machine
  bool open_mpi = true;
};
std::optional<MpiPlace> mpi_place();

// A transport over MPI, and what ranks tell each other besides cells.
class MpiTransport : public Transport {
 public:
  // Says that this rank sends no more cells; whoever waits for some waits no longer.
  virtual void end() = 0;
  // Words between ranks, apart from cells and from `end`; in the order in which they were sent.
  virtual void tell(int64_t to, const std::string& words) = 0;
  virtual std::optional<std::string> hear(int64_t from) = 0;  // nothing: it has ended
};

// Begins; the reason if that is not possible. Ends when the transport is destroyed.
std::variant<std::unique_ptr<MpiTransport>, std::string> open_mpi(const MpiPlace& place);

}  // namespace ein
