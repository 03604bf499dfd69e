#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/files.h"
#include "runtime/show.h"
#include "runtime/streams.h"
#include "syntax/parser.h"

namespace ein::session {
namespace {

constexpr int64_t kShortValue = 8;  // values with more cells are not shown beside their definition
constexpr int64_t kMostKept =
    // The most bytes of a kept value; larger values are computed again at each use.
    int64_t{1} << 30;
constexpr size_t kMostAgain = 8;  // the most recomputed definitions that are shown

bool starts_with_colon(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == ':';
}

// One attempt to compile an entry.
struct Attempt {
  State state;  // the session if this attempt succeeds; its pieces are the program's earlier texts
  std::shared_ptr<const ide::Analysis> made;
  std::vector<Piece> fresh;  // the entry's own definitions
};

// The earlier texts that contain the errors of an attempt, by number. Nothing if an error lies
// elsewhere.
std::optional<std::set<size_t>> misfits(const ide::Analysis& a) {
  std::set<size_t> out;
  for (const Diagnostic& d : a.diags.all()) {
    if (info(d.code).severity != Severity::Error) continue;
    bool placed = false;
    for (const Label& l : d.labels) {
      if (!l.primary) continue;
      for (size_t k = 0; k < a.earlier.size(); ++k) {
        if (a.earlier[k].file != l.span.file) continue;
        out.insert(k);
        placed = true;
      }
    }
    if (!placed) return std::nullopt;
  }
  return out;
}

// Statements that are bare expressions: a prompt shows their values.
std::set<uint32_t> unused_values(const ide::Analysis& a) {
  std::set<uint32_t> out;
  for (const Diagnostic& d : a.diags.all()) {
    if (d.code != Code::W0201) continue;
    for (const Label& l : d.labels) {
      if (!l.primary || l.span.file != a.root) continue;
      for (ast::StmtId id : a.ast().items) {
        const ast::Stmt& s = a.ast()[id];
        if (s.span.file == a.root && s.span.begin <= l.span.begin && l.span.end <= s.span.end &&
            std::holds_alternative<ast::ExprStmt>(s.node)) {
          out.insert(s.span.begin);
        }
      }
    }
  }
  return out;
}

bool replaces(const Piece& old, const std::set<std::string>& names) {
  if (old.import) return false;  // it loses names one at a time (sema/earlier.h)
  auto taken = [&](const std::string& name) {
    return names.contains(name) || (name[0] == '@' && names.contains(name.substr(1)));
  };
  return std::any_of(old.names.begin(), old.names.end(), taken);
}

std::vector<Piece> pieces_in(const std::string& written) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add("", written);
  return pieces_of(ast::parse(file, sources, diags), file, sources);
}

std::set<std::string> names_of(const std::vector<Piece>& pieces) {
  std::set<std::string> out;
  for (const Piece& p : pieces) out.insert(p.names.begin(), p.names.end());
  return out;
}

std::string type_text(const ide::Analysis& a, Span name) {
  auto it = a.meanings.values.find(sema::Meanings::place(name));
  if (it == a.meanings.values.end() || it->second.empty()) return "";
  return ide::describe(it->second[0]);
}

// A short value without its type: `3.5` or `[1.0, 2.0]`. Empty for larger values.
std::string value_text(const Tensor& value) {
  if (value.size() > kShortValue || value.rank() > 1) return "";
  if (value.rank() == 0) return show_scalar(value, 0);
  std::string out;
  for (int64_t i = 0; i < value.size(); ++i) { out += (i > 0 ? ", " : "") + show_scalar(value, i); }
  return "[" + out + "]";
}

// The size of a value in bytes, as far as its extents are known.
int64_t bytes_of(const core::Module& m, core::FamilyId id) {
  auto out = static_cast<int64_t>(size_of(m[id].dtype));
  for (const core::Coord& c : m[id].coords) {
    const auto* literal = core::get_if<core::IntLit>(m, c.extent);
    if (literal && __builtin_mul_overflow(out, literal->value, &out)) return INT64_MAX;
  }
  return out;
}

struct Entering {
  Session& s;
  const std::string& written;
  const std::string& name;
  const Watching& watching;
  Reply reply = {};
  Attempt attempt = {};
  std::vector<std::pair<std::string, std::string>> forgotten = {};  // names, each with the reason
  std::map<std::string, Span> places = {};  // where the names of earlier definitions stand

  bool stopped() const { return watching.stop && watching.stop(); }
  void analyse(const std::set<uint32_t>& printed);
  bool compile();
  bool fits(bool replaces_some);
  void drop(const std::set<size_t>& misfit);
  void add_pieces();
  void compute();
  void fail(const RuntimeError& error);
  void describe(const core::Module& m, const std::set<std::string>& again);
  Reply finish();
};

// Compiles the entry on top of `attempt.state`.
void Entering::analyse(const std::set<uint32_t>& printed) {
  ide::Documents documents = documents_of(attempt.state, s.options, true);
  documents.printed = printed;
  documents.binds = false;
  attempt.made = ide::analyse(name, written, ide::Depth::Full, documents, watching.stop);
}

// Forgets the definitions that do not fit.
void Entering::drop(const std::set<size_t>& misfit) {
  std::string lost;
  Pieces left;
  const Pieces& old = attempt.state.pieces;
  for (size_t k = 0; k < old.size(); ++k) {
    if (!misfit.contains(k)) {
      left.push_back(old[k]);
      continue;
    }
    for (const std::string& n : old[k]->names) lost += (lost.empty() ? "`" : ", `") + n + "`";
  }
  const ide::Analysis& a = *attempt.made;
  forgotten.emplace_back(lost, rendered(a.diags, a.sources, s.options));
  attempt.state.pieces = std::move(left);
}

// Compiles the entry, leaving out definitions that it replaces and others that no longer fit. False
// if the entry is wrong even then.
bool Entering::fits(bool replaces_some) {
  for (;;) {
    analyse({});
    if (!attempt.made || attempt.made->compiled.ok) return attempt.made != nullptr;
    const ide::Analysis& a = *attempt.made;
    if (reply.problems.empty()) reply.problems = rendered(a.diags, a.sources, s.options);
    std::optional<std::set<size_t>> misfit = misfits(a);
    if (!replaces_some || !misfit || misfit->empty()) return false;
    drop(*misfit);
  }
}

// False if the entry is wrong; then the reply says why.
bool Entering::compile() {
  std::set<std::string> names = names_of(pieces_in(written));
  // The definitions without those that the entry replaces; and again with the entry's clauses added
  // to them: `let h[0] = 1.0`, then `let h[t in 1..9] = h[t - 1]`.
  Pieces left, joined;
  bool clauses = false;
  for (const auto& p : s.state.pieces) {
    bool gone = replaces(*p, names);
    if (!gone) left.push_back(p);
    if (!gone || !p->value) {
      if (!gone) joined.push_back(p);
      continue;
    }
    auto kept = std::make_shared<Piece>(*p);
    kept->joined = clauses = true;
    joined.push_back(std::move(kept));
  }
  attempt.state = s.state;
  attempt.state.pieces = left;
  bool ok = fits(left.size() < s.state.pieces.size());
  if (!ok && attempt.made && clauses) {
    forgotten.clear();
    attempt.state.pieces = joined;
    ok = fits(false);
  }
  reply.status = ok ? kFine : attempt.made ? kWrong : kStopped;
  if (!ok) return false;
  reply.problems.clear();
  std::set<uint32_t> values = unused_values(*attempt.made);
  if (values.empty()) return true;
  analyse(values);
  ok = attempt.made && attempt.made->compiled.ok;
  reply.status = ok ? kFine : attempt.made ? kWrong : kStopped;
  if (attempt.made && !ok) {
    reply.problems = rendered(attempt.made->diags, attempt.made->sources, s.options);
  }
  return ok;
}

// Adds the definitions of the entry to the others.
void Entering::add_pieces() {
  const ide::Analysis& a = *attempt.made;
  attempt.fresh = pieces_of(a.ast(), a.root, a.sources);
  Pieces& pieces = attempt.state.pieces;
  for (size_t k = 0; k < pieces.size(); ++k) {  // their present names, for `describe`
    for (size_t n = 0; n < pieces[k]->places.size(); ++n) {
      uint32_t at = pieces[k]->places[n];
      places[pieces[k]->names[n]] = {a.earlier[k].file, at, at};
    }
  }
  for (const Piece& p : attempt.fresh) {
    auto same = [&](const auto& old) { return p.import && plain_text(*old) == plain_text(p); };
    std::erase_if(pieces, same);
    auto kept = std::make_shared<Piece>(p);
    kept->tree = tree_of(p.text);
    pieces.push_back(std::move(kept));
  }
}

void Entering::fail(const RuntimeError& error) {
  const ide::Analysis& a = *attempt.made;
  Diagnostics diags;
  Diagnostic& d = diags.error(error.code, error.message);
  if (error.at.valid()) d.primary(error.at, "");
  if (error.code == Code::E0801) {
    d.help(
        "an input gets its value when it is defined: `let x = [1.0, 2.0]`, `let x = "
        "load(\"x.npy\")`");
  }
  reply.status = kFailed;
  reply.problems += rendered(diags, a.sources, s.options);
}

// Computes what is new or has changed, and performs the entry's effects.
void Entering::compute() {
  const ide::Analysis& a = *attempt.made;
  const auto keys = value_keys(a.compiled.asked);
  State& next = attempt.state;
  // The kept values of definitions whose meaning has not changed.
  KeptValues known;
  for (const auto& [id, key] : keys) {
    auto it = next.kept.find(text(a.compiled.asked[id].name));
    if (it != next.kept.end() && it->second.key == key) known.insert(*it);
  }
  std::map<std::string, Tensor> given;
  const core::Module& whole = a.compiled.module;
  core::Module m = with_known(whole, known, given);
  RunOptions how;
  how.backend = s.options.backend;
  how.cache = s.options.cache;
  how.access = s.options.access.get();
  how.monitor = watching.monitor;
  how.streams = false;  // files are read whole, because their values are kept
  std::set<std::string> again;
  const bool waiting = has_missing_inputs(whole);
  for (const auto& piece : next.pieces) {
    if (!piece->value) continue;
    bool fresh = std::any_of(attempt.fresh.begin(), attempt.fresh.end(),
                             [&](const Piece& p) { return p.names == piece->names; });
    for (const std::string& n : piece->names) {
      for (core::FamilyId id : families_of(m, n)) {
        const std::string& family = text(m[id].name);
        if (given.contains(family) || (waiting && !missing_inputs(whole, id).empty())) continue;
        if (m[id].file || bytes_of(whole, id) > kMostKept)
          continue;  // it is read or computed when it is needed
        how.show.push_back(family);
        if (!fresh) again.insert(n);
      }
    }
  }
  // The values that the run reads from files are kept, too.
  std::vector<core::FamilyId> wanted = wanted_families(m, how);
  for (core::FamilyId id : reached(m, wanted)) {
    if (m[id].file && bytes_of(m, id) <= kMostKept) how.show.push_back(text(m[id].name));
  }
  RunResult ran = run(m, given, how, [](const std::string& line) { put(line); });
  flush_output();
  if (ran.error) return fail(*ran.error);
  if (ran.stopped) {
    reply.status = kStopped;
    return;
  }
  if (!ran.fallback.empty()) {
    reply.problems +=
        fmt::format("warning: ran on the slow reference evaluator: {}\n", ran.fallback);
  }
  next.kept = std::move(known);
  for (const auto& [family, value] : ran.values) {
    core::FamilyId id = a.compiled.asked.find(intern(family));
    if (auto key = keys.find(id); key != keys.end()) next.kept[family] = {key->second, value};
  }
  describe(whole, again);
}

void Entering::describe(const core::Module& m, const std::set<std::string>& again) {
  const ide::Analysis& a = *attempt.made;
  const bool waiting = has_missing_inputs(m);
  auto add = [&](const std::string& n, const std::string& type, bool repeated) {
    Defined d{n, type, "", repeated};
    std::vector<core::FamilyId> families = families_of(m, n);
    if (families.size() == 1) {
      auto it = attempt.state.kept.find(text(m[families[0]].name));
      if (it != attempt.state.kept.end()) d.value = value_text(it->second.value);
      if (waiting) d.waits = missing_inputs(m, families[0]);
      d.large = bytes_of(m, families[0]) > kMostKept;
    }
    reply.defined.push_back(std::move(d));
  };
  for (const Piece& p : attempt.fresh) {
    if (p.joined) continue;
    const ast::Stmt& stmt = a.ast()[p.stmt];
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      for (const ast::Name& n : let->names) {
        if (text(n.symbol) != "_") add(text(n.symbol), type_text(a, n.span), false);
      }
    }
    const auto* fn = std::get_if<ast::Fn>(&stmt.node);
    if (fn && !fn->rule) reply.defined.push_back({p.names[0], ide::signature_of(a, *fn), ""});
    if (const auto* c = std::get_if<ast::Const>(&stmt.node)) {
      reply.defined.push_back({p.names[0], type_text(a, c->name.span), ""});
    }
  }
  for (const auto& piece : attempt.state.pieces) {
    for (const std::string& n : piece->names) {
      if (!piece->joined && again.contains(n))
        add(n, places.contains(n) ? type_text(a, places[n]) : "", true);
    }
  }
}

std::string line_of(const Defined& d) {
  std::string out = d.name;
  if (d.type.starts_with("fn ")) {
    out = d.type;
  } else if (!d.type.empty()) {
    out += ": " + d.type;
  }
  if (!d.value.empty()) out += " = " + d.value;
  if (d.waits.size() == 1 && d.waits[0] == d.name) return out + "  (an input without a value)";
  if (!d.waits.empty()) {
    return fmt::format("{}  (not computed: `{}` has no value)", out, fmt::join(d.waits, "`, `"));
  }
  if (d.large) return out + "  (large: computed again at each use)";
  return d.again ? out + "  (computed again)" : out;
}

// Writes the reply. If the attempt succeeded, its state becomes that of the session.
Reply Entering::finish() {
  if (reply.status != kFine) return std::move(reply);
  const ide::Analysis& a = *attempt.made;
  for (const auto& [names, why] : forgotten) {
    reply.problems += fmt::format("warning: {} {} not fit any more and {} forgotten\n{}", names,
                                  names.find(',') == std::string::npos ? "does" : "do",
                                  names.find(',') == std::string::npos ? "is" : "are", why);
  }
  for (ast::StmtId id : a.ast().items) {
    const auto* test = std::get_if<ast::Test>(&a.ast()[id].node);
    if (!test || a.ast()[id].span.file != a.root) continue;
    reply.problems += fmt::format(
        "note: the test \"{}\" is not run here; `ein test` runs those of a file\n", test->name);
  }
  Diagnostics warnings;
  for (const Diagnostic& d : a.diags.all()) warnings.error(d.code, d.message) = d;
  reply.problems += rendered(warnings, a.sources, s.options);
  size_t again = 0;
  for (const Defined& d : reply.defined) {
    if (d.again && ++again > kMostAgain) continue;
    reply.text += line_of(d) + "\n";
  }
  if (again > kMostAgain) {
    reply.text += fmt::format("and {} more computed again\n", again - kMostAgain);
  }
  if (!attempt.fresh.empty()) {
    remember(s);
    s.state = std::move(attempt.state);
  } else {
    s.state.kept = std::move(attempt.state.kept);
    s.state.seen = std::move(attempt.state.seen);
  }
  return std::move(reply);
}

}  // namespace

Reply enter(Session& s, const std::string& text, const Watching& watching, std::string name) {
  if (read_entry(text) == Reading::Nothing) return {};
  if (starts_with_colon(text)) return run_command(s, text, watching);
  if (name.empty()) name = fmt::format("<{}>", ++s.entries);
  Entering e{s, text, name, watching};
  if (e.compile()) {
    e.add_pieces();
    e.compute();
  }
  Reply out = e.finish();
  out.spent = std::move(e.attempt.made);
  return out;
}

}  // namespace ein::session
