#include "base/diag.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace ein {

const std::vector<CodeInfo>& all_codes() {
  static const std::vector<CodeInfo> codes = [] {
    std::vector<CodeInfo> list;
    // Slugs are identifiers in codes.def and are shown with hyphens; the strings are never freed.
    static std::deque<std::string> slugs;
    auto add = [&list](Code code, const char* name, Severity severity, std::string slug,
                       const char* title) {
      std::replace(slug.begin(), slug.end(), '_', '-');
      slugs.push_back(std::move(slug));
      list.push_back({code, name, severity, slugs.back().c_str(), title});
    };
#define EIN_DIAG(code, severity, slug, title) \
  add(Code::code, #code, Severity::severity, #slug, title);
#include "base/codes.def"
#undef EIN_DIAG
    return list;
  }();
  return codes;
}

const CodeInfo& info(Code code) {
  const auto& codes = all_codes();
  auto at = static_cast<size_t>(code);
  EIN_CHECK(at < codes.size(), "diagnostic code out of range");
  return codes[at];  // the enumerators come from the same list, in the same order
}

Diagnostic& Diagnostic::primary(Span span, std::string text) {
  labels.insert(labels.begin(), {span, std::move(text), true});
  return *this;
}

Diagnostic& Diagnostic::label(Span span, std::string text) {
  labels.push_back({span, std::move(text), false});
  return *this;
}

Diagnostic& Diagnostic::note(std::string text) {
  notes.push_back(std::move(text));
  return *this;
}

Diagnostic& Diagnostic::help(std::string text) {
  help_text = std::move(text);
  return *this;
}

Diagnostic& Diagnostic::fix(Fix fix) {
  fixes.push_back(std::move(fix));
  return *this;
}

Diagnostic& Diagnostics::add(Code code, std::string message) {
  if (info(code).severity == Severity::Error) ++errors_;
  items_.push_back({code, std::move(message), {}, {}, {}, {}});
  return items_.back();
}

bool Diagnostics::allowed(const Diagnostic& d) const {
  if (info(d.code).severity == Severity::Error || d.labels.empty()) return false;
  Span at = d.labels.front().span;
  return std::any_of(allowed_.begin(), allowed_.end(), [&](const Allowed& a) {
    return a.code == d.code && a.span.file == at.file && a.span.begin <= at.begin &&
           at.end <= a.span.end;
  });
}

std::vector<const Diagnostic*> Diagnostics::sorted() const {
  std::vector<const Diagnostic*> list;
  for (const Diagnostic& d : items_) list.push_back(&d);
  // Diagnostics without a place come last; they concern the program as a whole.
  auto key = [](const Diagnostic* d) {
    Span span = d->labels.empty() ? Span{} : d->labels.front().span;
    return std::pair(span.file.v, span.begin);
  };
  std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
  return list;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
  // Damerau-Levenshtein (adjacent letters swapped count once); a third of the length may differ.
  auto distance = [](const std::string& a, const std::string& b) {
    size_t n = a.size(), m = b.size();
    std::vector<std::vector<size_t>> d(n + 1, std::vector<size_t>(m + 1));
    for (size_t i = 0; i <= n; ++i) d[i][0] = i;
    for (size_t j = 0; j <= m; ++j) d[0][j] = j;
    for (size_t i = 1; i <= n; ++i) {
      for (size_t j = 1; j <= m; ++j) {
        size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, change});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
      }
    }
    return d[n][m];
  };
  std::string best;
  size_t limit = std::max<size_t>(1, name.size() / 3);
  for (const std::string& candidate : candidates) {
    // For one or two letters every other short name would be "near": ask for the same letters.
    if (name.size() <= 2 && candidate.size() > name.size() + 1) continue;
    size_t d = distance(name, candidate);
    if (d == 0 || d > limit || d >= std::max(name.size(), candidate.size())) continue;
    // Of two that are equally near, the one with the same letters: `tahn` is `tanh`, not `tan`. Then by the
    // alphabet: candidates come in the order in which this process first met them.
    auto rank = [&](const std::string& other) {
      return std::tuple(distance(name, other),
                        !std::is_permutation(name.begin(), name.end(), other.begin(), other.end()),
                        other);
    };
    if (best.empty() || rank(candidate) < rank(best)) best = candidate;
  }
  return best;
}

}  // namespace ein
