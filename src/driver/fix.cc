#include "driver/fix.h"

#include <algorithm>

#include "driver/compile.h"
#include "driver/files.h"

namespace ein {
namespace {

// Fixes that undo each other would otherwise go on for ever.
constexpr int kMaxRounds = 8;

bool touches(const Edit& a, const Edit& b) {
  return a.span.begin <= b.span.end && b.span.begin <= a.span.end;
}

// Adds the edits of `fix` unless one is in another file or touches an edit already taken.
bool take(const Fix& fix, FileId file, std::vector<Edit>& taken) {
  for (const Edit& e : fix.edits) {
    if (e.span.file != file) return false;
    for (const Edit& other : taken) {
      if (touches(e, other)) return false;
    }
  }
  taken.insert(taken.end(), fix.edits.begin(), fix.edits.end());
  return !fix.edits.empty();
}

std::string apply(std::string text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.span.begin > b.span.begin; });
  for (const Edit& e : edits) text.replace(e.span.begin, e.span.end - e.span.begin, e.replacement);
  return text;
}

}  // namespace

Fixed apply_fixes(const std::string& name, std::string text, const ReadFile& read_file,
                  std::shared_ptr<const FileAccess> access) {
  Fixed out;
  out.text = std::move(text);
  for (int round = 0;; ++round) {
    out.sources = {};
    out.left = {};
    FileId file = out.sources.add(name, out.text);
    CompileOptions options{.read_file = read_file, .tests = true};
    options.files = files_on_disk(out.sources, access);
    compile(file, out.sources, options, out.left);
    if (round == kMaxRounds) return out;
    std::vector<Edit> edits;
    std::vector<AppliedFix> applied;
    for (const Diagnostic* d : out.left.sorted()) {
      auto safe =
          std::find_if(d->fixes.begin(), d->fixes.end(), [](const Fix& f) { return f.safe; });
      if (safe == d->fixes.end() || !take(*safe, file, edits)) continue;
      applied.push_back(
          {d->code, safe->title, out.sources.position(file, safe->edits[0].span.begin)});
    }
    if (edits.empty()) return out;
    out.text = apply(std::move(out.text), std::move(edits));
    out.applied.insert(out.applied.end(), applied.begin(), applied.end());
  }
}

}  // namespace ein
