// The commands of a session, such as `:grad loss W`. Each is a line of the table below.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "core/print.h"
#include "driver/facts.h"
#include "driver/texts.h"
#include "ide/features.h"
#include "runtime/files.h"
#include "session/session.h"

namespace ein::session {
namespace {

using Words = std::vector<std::string>;

struct Asking {
  Session& s;
  const Watching& watching;
  std::string name;  // the command without its colon
  std::string rest;  // the text after it
  Words words;       // the same, split at blanks
};

Reply usage(const std::string& why) { return {.status = kUsage, .problems = why + "\n"}; }
Reply said(std::string text) { return {.text = std::move(text)}; }

// The definitions of the session as one program, compiled with what the command asks for.
struct Whole {
  SourceMap sources;
  Diagnostics diags;
  autodiff::Record record;
  Compiled compiled;
};
bool compile_whole(Asking& ask, const ExtraRequest& extra, const std::vector<Derivation>& derive,
                   autodiff::Direction direction, Whole& out, Reply& wrong) {
  ide::Documents documents = documents_of(ask.s.state, ask.s.options, false);
  FileId root = out.sources.add(":" + ask.name, "");
  CompileOptions options;
  for (const auto& e : documents.earlier) {
    options.earlier.push_back({out.sources.add(e.name, e.text), false, e.joined, e.tree});
  }
  options.read_file = documents.read;
  options.files = documents.files(out.sources);
  options.keep_asked = true;
  options.record = &out.record;
  options.extra = extra;
  options.derivations = derive;
  options.direction = direction;
  out.compiled = compile(root, out.sources, options, out.diags);
  if (out.compiled.ok && out.compiled.derived.wrong.empty()) return true;
  wrong.status = kWrong;
  wrong.problems = rendered(out.diags, out.sources, ask.s.options);
  if (!out.compiled.derived.wrong.empty()) wrong.problems += out.compiled.derived.wrong + "\n";
  return false;
}

// Reads what to differentiate and by what: `loss W b` or `loss W, b`.
bool read_pair(const Asking& ask, std::string& of, Words& wrt, Reply& wrong) {
  std::string rest = ask.rest;
  std::replace(rest.begin(), rest.end(), ',', ' ');
  std::replace(rest.begin(), rest.end(), '/', ' ');
  rest.erase(std::remove(rest.begin(), rest.end(), '@'), rest.end());
  Words words;
  for (size_t at = 0; (at = rest.find_first_not_of(' ', at)) != std::string::npos;) {
    size_t end = std::min(rest.find(' ', at), rest.size());
    words.push_back(rest.substr(at, end - at));
    at = end;
  }
  if (words.size() < 2) {
    wrong = usage(fmt::format(
        ":{0} needs a value and what to differentiate it by, as in `:{0} loss W`", ask.name));
    return false;
  }
  of = words[0];
  wrt.assign(words.begin() + 1, words.end());
  return true;
}

// `:grad`, `:jac` and `:explain`: a value, what it is differentiated by, and the program with that.
struct Pair {
  std::string of;
  Words wrt;
  Whole whole;
};
bool compile_pair(Asking& ask, bool jacobian, autodiff::Direction direction, Pair& out,
                  Reply& wrong) {
  if (!read_pair(ask, out.of, out.wrt, wrong)) return false;
  ExtraRequest extra;
  std::vector<Derivation> derive;
  if (jacobian) {
    derive.push_back({Derivation::Form::Jacobian, {out.of}, out.wrt});
  } else {
    extra = {out.of, out.wrt};
  }
  return compile_whole(ask, extra, derive, direction, out.whole, wrong);
}

Reply definitions_of(const std::vector<core::FamilyId>& roots, Whole& whole) {
  core::Module& m = whole.compiled.module;
  core::PrintOptions print{.only = roots, .comments = autodiff::comments(whole.record, m)};
  return said(laid_out(core::print(m, print)));
}

Reply grad(Asking& ask) {
  Pair pair;
  Reply wrong;
  if (!compile_pair(ask, false, autodiff::Direction::Auto, pair, wrong)) return wrong;
  // The requests of the command are the last ones.
  core::Module& m = pair.whole.compiled.module;
  const std::vector<core::FamilyId> all = derivatives(pair.whole.compiled.asked, m);
  std::vector<core::FamilyId> roots;
  for (core::FamilyId id : all) {
    if (text(m[id].name).starts_with("d_" + pair.of + "_d_")) roots.push_back(id);
  }
  return definitions_of(roots.empty() ? all : roots, pair.whole);
}

Reply jac(Asking& ask) {
  Pair pair;
  Reply wrong;
  if (!compile_pair(ask, true, autodiff::Direction::Auto, pair, wrong)) return wrong;
  core::Module& m = pair.whole.compiled.module;
  std::vector<core::FamilyId> roots;
  for (Symbol s : pair.whole.compiled.derived.derivatives) roots.push_back(m.find(s));
  return definitions_of(roots, pair.whole);
}

Reply explain(Asking& ask) {
  Pair pair;
  Reply wrong;
  if (!compile_pair(ask, false, autodiff::Direction::Reverse, pair, wrong)) return wrong;
  std::string out;
  for (const Explanation& e :
       explanations(pair.whole.record, pair.whole.compiled.asked, {pair.of}, pair.wrt)) {
    out += (out.empty() ? "" : "\n") + explanation_text(e);
  }
  return said(out);
}

Reply audit(Asking& ask) {
  Reply wrong;
  Whole whole;
  if (!compile_whole(ask, {}, {}, autodiff::Direction::Auto, whole, wrong)) return wrong;
  return said(audit_report(whole.compiled.asked, whole.sources).text);
}

Reply facts(Asking& ask) {
  Reply wrong;
  Whole whole;
  if (!compile_whole(ask, {}, {}, autodiff::Direction::Auto, whole, wrong)) return wrong;
  core::Module& m = whole.compiled.module;
  std::vector<FamilyReport> reports = report_families(m);
  std::erase_if(reports, [&](const FamilyReport& r) {
    const std::string& name = m[r.family].spelled();
    return !ask.words.empty() &&
           std::find(ask.words.begin(), ask.words.end(), name) == ask.words.end();
  });
  if (!ask.words.empty() && reports.empty()) {
    return usage(fmt::format("there is no value `{}`", ask.words[0]));
  }
  return said(facts_text(m, reports));
}

// The type of an expression, without computing it.
Reply type(Asking& ask) {
  if (ask.words.empty()) return usage(":type needs an expression, as in `:type x[0] + 1.0`");
  static const std::string kName = "shown";
  State tried = ask.s.state;
  ide::Documents documents = documents_of(tried, ask.s.options, false);
  std::string text = "let " + kName + " =\n" + ask.rest;
  auto a = ide::analyse(":type", text, ide::Depth::Full, documents, ask.watching.stop);
  if (!a) return {.status = kStopped};
  if (!a->compiled.ok) {
    return {.status = kWrong, .problems = rendered(a->diags, a->sources, ask.s.options)};
  }
  auto it = a->meanings.values.find(sema::Meanings::place({a->root, 4, 9}));
  if (it == a->meanings.values.end() || it->second.empty()) {
    return usage("this expression has no type of its own");
  }
  return said(ide::describe(it->second[0]) + "\n");
}

Reply time(Asking& ask) {
  if (ask.rest.empty()) return usage(":time needs an entry, as in `:time sum[i](x[i])`");
  double begin = now_ms();
  Reply out = enter(ask.s, ask.rest, ask.watching);
  out.text += fmt::format("{:.1f} ms\n", now_ms() - begin);
  return out;
}

Reply doc(Asking& ask) {
  if (ask.words.empty()) return usage(":doc needs a name, as in `:doc sum`");
  std::string found = inspect(ask.s, ask.words[0], static_cast<uint32_t>(ask.words[0].size()));
  if (found.empty()) return usage(fmt::format("nothing is known about `{}`", ask.words[0]));
  // Markdown as shown in a terminal: without the fences.
  std::string out;
  for (size_t at = 0; at < found.size();) {
    size_t end = std::min(found.find('\n', at), found.size());
    std::string line = found.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("```")) out += line + "\n";
  }
  return said(out);
}

Reply load(Asking& ask) {
  if (ask.rest.empty()) return usage(":load needs a file, as in `:load model.ein`");
  auto text = read_text(ask.rest);
  if (!text) return usage(fmt::format("cannot read `{}`", ask.rest));
  return enter(ask.s, *text, ask.watching, ask.rest);
}

Reply save(Asking& ask) {
  if (ask.rest.empty()) return usage(":save needs a file, as in `:save session.ein`");
  if (ask.s.options.access) {
    if (auto refused = refuse_write(*ask.s.options.access, ask.rest))
      return usage(refused->message);
  }
  auto written = write_text(ask.rest, laid_out(program_text(ask.s.state)));
  if (auto* e = std::get_if<RuntimeError>(&written)) return usage(e->message);
  return said(fmt::format("{} definition{} saved in {}\n", ask.s.state.pieces.size(),
                          ask.s.state.pieces.size() == 1 ? "" : "s", ask.rest));
}

Reply undo(Asking& ask) {
  if (ask.s.before.empty()) return usage("there is nothing to undo");
  auto names = [](const State& state) {
    std::map<std::string, const Piece*> out;
    for (const auto& p : state.pieces) {
      for (const std::string& n : p->names) out[n] = p.get();
    }
    return out;
  };
  auto now = names(ask.s.state), then = names(ask.s.before.back());
  Words gone, back;
  for (const auto& [n, piece] : now) {
    if (!then.contains(n)) gone.push_back(n);
  }
  for (const auto& [n, piece] : then) {
    if (!now.contains(n) || now[n] != piece) back.push_back(n);
  }
  ask.s.state = std::move(ask.s.before.back());
  ask.s.before.pop_back();
  std::string out;
  if (!gone.empty()) out += fmt::format("gone: {}\n", fmt::join(gone, ", "));
  if (!back.empty()) out += fmt::format("as before: {}\n", fmt::join(back, ", "));
  return said(out.empty() ? "as before\n" : out);
}

Reply reset(Asking& ask) {
  remember(ask.s);
  ask.s.state = {};
  return said("the session is empty (`:undo` takes that back)\n");
}

Reply backend(Asking& ask) {
  Options& o = ask.s.options;
  auto name = [&] { return o.backend == Backend::Native ? "native" : "ref"; };
  if (ask.rest.empty()) return said(fmt::format("{}\n", name()));
  if (ask.rest != "native" && ask.rest != "ref") {
    return usage(
        fmt::format("there is no back end `{}`: choose native (machine code) or ref (the "
                    "slow reference evaluator)",
                    ask.rest));
  }
  o.backend = ask.rest == "native" ? Backend::Native : Backend::Reference;
  return said(fmt::format("{}\n", name()));
}

Reply help(Asking& ask);
Reply quit(Asking&) { return {.quit = true}; }

struct Command {
  const char *name, *takes, *text;
  Reply (*run)(Asking&);
};
constexpr Command kCommands[] = {
    {"type", "EXPRESSION", "its type, without computing it", type},
    {"grad", "LOSS W ...", "the derivative of LOSS by each W, as source", grad},
    {"jac", "Y X ...", "the derivative of the array Y by each X in full, as source", jac},
    {"explain", "LOSS W ...", "the same step by step: what is summed and why", explain},
    {"audit", "", "where operands are repeated along a coordinate", audit},
    {"facts", "[NAME ...]", "what is known of values: ranges, broadcasts, order", facts},
    {"time", "ENTRY", "enters it and shows how long that took", time},
    {"doc", "NAME", "what a function or a value is", doc},
    {"load", "FILE", "enters the text of a file", load},
    {"save", "FILE", "writes the definitions of the session to a file", save},
    {"undo", "", "takes back the last entry that defined something", undo},
    {"reset", "", "forgets all definitions", reset},
    {"backend", "native|ref", "runs machine code, or the slow reference evaluator", backend},
    {"help", "", "this list", help},
    {"quit", "", "ends the session, as Ctrl-D does", quit},
};

Reply help(Asking&) {
  std::string out =
      "Enter definitions (`let y = 2.0`), expressions, whose values are shown, or a command:\n";
  for (const Command& c : kCommands) {
    out += fmt::format("  :{:<20} {}\n", fmt::format("{} {}", c.name, c.takes), c.text);
  }
  out += "Between lines `:{` and `:}` several lines are one entry.\n";
  return said(out + "A `;` at the end is optional. Tab completes names, Ctrl-C stops a run.\n");
}

std::string trimmed(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t\r\n");
  size_t end = text.find_last_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

}  // namespace

std::vector<std::string> command_names() {
  std::vector<std::string> out;
  for (const Command& c : kCommands) out.push_back(c.name);
  return out;
}

Reply run_command(Session& s, const std::string& line, const Watching& watching) {
  std::string whole = trimmed(line).substr(1);
  size_t blank = std::min(whole.find_first_of(" \t\n"), whole.size());
  Asking ask{s, watching, whole.substr(0, blank), trimmed(whole.substr(blank)), {}};
  for (size_t at = 0; (at = ask.rest.find_first_not_of(" \t\n", at)) != std::string::npos;) {
    size_t end = std::min(ask.rest.find_first_of(" \t\n", at), ask.rest.size());
    ask.words.push_back(ask.rest.substr(at, end - at));
    at = end;
  }
  const Command* found = nullptr;
  std::vector<std::string> close;
  for (const Command& c : kCommands) {
    if (ask.name == c.name) found = &c;
    if (!ask.name.empty() && std::string(c.name).starts_with(ask.name)) close.push_back(c.name);
  }
  if (!found && close.size() == 1) {  // `:q`, `:ex`
    ask.name = close[0];
    for (const Command& c : kCommands) {
      if (ask.name == c.name) found = &c;
    }
  }
  if (!found) {
    std::string near = close.empty() ? did_you_mean(ask.name, command_names()) : "";
    std::string hint = !close.empty() ? fmt::format("it may be :{}", fmt::join(close, " or :"))
                       : near.empty() ? "`:help` lists all of them"
                                      : fmt::format("did you mean `:{}`?", near);
    return usage(fmt::format("there is no command `:{}`; {}", ask.name, hint));
  }
  if (*found->takes == '\0' && !ask.rest.empty()) {
    return usage(fmt::format(":{} takes no argument, got `{}`", found->name, ask.rest));
  }
  return found->run(ask);
}

}  // namespace ein::session
