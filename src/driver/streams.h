// Which inputs of a run are read from their files step by step (plan/streams.h), and what is said
// about that.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/core.h"
#include "driver/run.h"
#include "runtime/row_file.h"

namespace ein {

// The files of inputs that a run may read row by row, by name: those of `load` that `wanted` reach
// and those of the options, if they are large enough and have rows. None where a recurrence may be
// cut into segments.
std::map<std::string, RowFile> streamable(const core::Module& m,
                                          const std::vector<core::FamilyId>& wanted,
                                          const RunOptions& options);
std::vector<core::FamilyId> families_of(const core::Module& m,
                                        const std::map<std::string, RowFile>& files);

// Reads what is not streamed and not there yet into `inputs`.
std::optional<RuntimeError> read_others(const core::Module& m,
                                        const std::vector<core::FamilyId>& wanted,
                                        const RunOptions& options,
                                        const std::map<std::string, RowFile>& streamed,
                                        core::Inputs& inputs);

struct StreamFact {
  std::string input;
  bool streams = false;
  int64_t window = 0;  // rows that are, or would be, in memory at a time; 0: it cannot stream
  std::string text;    // the whole of it in words
};
// About every input that could stream, and every large file that cannot.
std::vector<StreamFact> stream_facts(core::Module& m, const RunOptions& options);

}  // namespace ein
