// Saving a running program: which program a state belongs to, and whether this is still the same
// one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/core.h"
#include "core/eval.h"
#include "driver/run.h"
#include "runtime/state.h"

namespace ein {

// Everything that the bits of a run depend on, piece by piece, so that a message can name a
// difference.
struct RunIdentity {
  struct Piece {
    std::string name, digest;
  };
  std::vector<Piece> families, inputs, settings;
};
RunIdentity identity_of(core::Module& m, const std::vector<core::FamilyId>& wanted,
                        const core::Inputs& inputs, const std::map<std::string, RowFile>& streamed,
                        const RunOptions& options);

// A state together with its program's identity, as the contents of a file; and back. Reports bytes
// that are damaged or not a state.
std::string pack_run(const RunIdentity& identity, std::string_view state);
struct KeptRun {
  RunIdentity identity;
  KeptState state;
};
std::variant<KeptRun, std::string> unpack_run(std::string_view bytes);

// Why a state does not belong to this run; empty if it does. Only what the state was computed from
// counts; what is printed, or computed afterwards, may have changed.
std::string difference(const KeptRun& kept, core::Module& m, const RunIdentity& now);

}  // namespace ein
