// Applying the safe fixes of diagnostics to a program's text. One round takes a fix per diagnostic,
// in source order, as long as its edits touch nothing that was edited in this round; the result is
// compiled again, because a fix can uncover the next mistake. Reads no files but those that `load`
// names, writes none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/source.h"
#include "driver/library.h"
#include "runtime/paths.h"

namespace ein {

struct AppliedFix {
  Code code;
  std::string title;
  LineCol at;  // in the text of its round
};

struct Fixed {
  std::string text;
  std::vector<AppliedFix> applied;
  SourceMap sources;  // of `text`, for the diagnostics that are left
  Diagnostics left;
};

Fixed apply_fixes(const std::string& name, std::string text, const ReadFile& read_file = {},
                  std::shared_ptr<const FileAccess> access = nullptr);

}  // namespace ein
