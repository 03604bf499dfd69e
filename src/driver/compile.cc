#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "autodiff/differentiate.h"
#include "base/check.h"
#include "core/build.h"
#include "core/groups.h"
#include "core/print.h"
#include "core/solve_gates.h"
#include "core/verify.h"
#include "sema/elaborate.h"
#include "syntax/dump.h"

namespace ein {
namespace {

class Pipeline {
 public:
  Pipeline(const CompileOptions& options, Compiled& out) : options_(options), out_(out) {}

  template <class F>
  auto run(const char* pass, const F& body) {
    auto begin = std::chrono::steady_clock::now();
    auto result = body();
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    out_.times.push_back({pass, spent.count()});
    return result;
  }

  // A pass that yields Core: verified and dumped here.
  template <class F>
  core::Module core(const char* pass, const Diagnostics& diags, const F& body) {
    core::Module m = run(pass, body);
    if (!diags.has_errors()) {
      std::vector<std::string> wrong = core::verify(m);
      EIN_CHECK(wrong.empty(), fmt::format("after {}: {}", pass, fmt::join(wrong, "; ")));
    }
    if (options_.dump_after == pass) out_.dump = core::print(m);
    return m;
  }

 private:
  const CompileOptions& options_;
  Compiled& out_;
};

// Adds `d_<of>_d_<wrt>` as if the program had asked for it.
void add_request(core::Module& m, const ExtraRequest& extra, Diagnostics& diags) {
  auto find = [&](const std::string& name) {
    core::FamilyId id = m.find(intern(name));
    if (id) return id;
    std::vector<std::string> known;
    for (const core::Family& f : m.families) known.push_back(text(f.name));
    std::string near = did_you_mean(name, known);
    auto& d = diags.error(Code::E0201, fmt::format("the program defines no value `{}`", name));
    if (!near.empty()) d.help(fmt::format("did you mean `{}`?", near));
    return id;
  };
  core::FamilyId num = find(extra.of);
  for (const std::string& name : extra.wrt) {
    core::FamilyId den = find(name);
    if (!num || !den) continue;
    for (core::FamilyId f : {num, den}) {
      if (is_float(m[f].dtype)) continue;
      diags
          .error(Code::E0602, fmt::format("`{}` is {}: only floats have derivatives",
                                          text(m[f].name), name_of(m[f].dtype)))
          .primary(m[f].span, "defined here");
      return;
    }
    core::Family f;
    f.name = core::fresh_name(m, fmt::format("d_{}_d_{}", extra.of, name));
    f.dtype = m[num].dtype;
    core::Request r{num, {}, den, {}};
    core::Clause clause;
    auto carry = [&](const core::Family& from, std::vector<core::ExprId>& at) {
      for (core::Coord c : from.coords) {
        for (const core::Coord& taken : f.coords) {
          if (c.name && taken.name == c.name) c.name = intern("d_" + text(c.name));
        }
        at.push_back(core::slot(m, static_cast<uint32_t>(f.coords.size())));
        f.coords.push_back(c);
        clause.box.push_back({core::int_lit(m, 0), c.extent});
      }
    };
    carry(m[num], r.num_at);
    carry(m[den], r.den_at);
    clause.body = core::request(m, r, m[num].span);
    clause.span = m[num].span;
    f.clauses.push_back(clause);
    m.families.add(std::move(f));
  }
}

void check_order(core::Module& m) {
  auto cycle = core::schedule(m, {}).cycle;
  if (!cycle) return;
  std::vector<std::string> names;
  for (core::FamilyId f : cycle->families) names.push_back(text(m[f].name));
  EIN_UNREACHABLE(
      fmt::format("autodiff produced families without a legal order: {}", fmt::join(names, ", ")));
}

// Equalities that hold only for some inputs. Inequalities stay: `T >= 1` follows from a base case
// and no annotation could prove it.
void reject_unproven(const core::Module& m, Diagnostics& diags) {
  for (const core::Constraint& c : m.constraints) {
    const auto* cond = core::get_if<core::Apply>(m, c.cond);
    if (!cond || cond->op != core::Op::Eq) continue;
    auto& d = diags.error(Code::E0406, "not proven: " + c.message);
    d.primary(c.first, "");
    if (c.second.valid() && !(c.second == c.first)) d.label(c.second, "and here");
    d.help(
        "give both coordinates one name, or leave out --strict to have it checked when the program "
        "starts");
  }
}

// What compiling a test found. The file has no errors, so every error is the test's, even one
// inside a function that it calls; warnings are its own only where they stand in it.
void keep_findings(const Diagnostics& found, Span test, Diagnostics& diags) {
  for (const Diagnostic& d : found.all()) {
    auto inside = [&](const Label& l) {
      return l.primary && l.span.file == test.file && l.span.begin >= test.begin &&
             l.span.end <= test.end;
    };
    bool own = std::any_of(d.labels.begin(), d.labels.end(), inside);
    own &= !found.allowed(d);
    if (info(d.code).severity == Severity::Error || own) diags.error(d.code, d.message) = d;
  }
}

void compile_tests(Compiled& out, const CompileOptions& options, Diagnostics& diags) {
  const ast::Ast& ast = out.program.ast;
  const std::vector<ast::StmtId> shared = sema::test_definitions(out.program);
  for (ast::StmtId id : ast.items) {
    const auto* test = std::get_if<ast::Test>(&ast[id].node);
    if (!test) continue;
    Diagnostics found;
    core::Module m =
        sema::elaborate_test(out.program, *test, found, options.files, options.inputs, &shared);
    if (!found.has_errors()) {
      core::solve_gates(m);
      m = autodiff::differentiate(std::move(m), found, options.direction);
    }
    keep_findings(found, ast[id].span, diags);
    if (!found.has_errors()) out.tests.push_back({test->name, ast[id].span, std::move(m)});
  }
}

// A warning that stands in the standard library: whoever calls it cannot do anything about it.
bool is_library_warning(const Diagnostic& d, const SourceMap& sources, FileId root) {
  if (info(d.code).severity == Severity::Error) return false;
  auto inside = [&](const Label& l) {
    return l.primary && l.span.file != root && sources.name(l.span.file).starts_with("std/");
  };
  return std::any_of(d.labels.begin(), d.labels.end(), inside);
}

Compiled run_passes(FileId file, SourceMap& sources, const CompileOptions& options,
                    Diagnostics& diags);

}  // namespace

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names{"parse", "sema", "solve-gates", "autodiff"};
  return names;
}

Compiled compile(FileId file, SourceMap& sources, const CompileOptions& options,
                 Diagnostics& diags) {
  Diagnostics found;
  Compiled out = run_passes(file, sources, options, found);
  for (const Diagnostic& d : found.all()) {
    if (is_library_warning(d, sources, file) || found.allowed(d)) continue;
    diags.error(d.code, d.message) = d;
  }
  return out;
}

namespace {

Compiled run_passes(FileId file, SourceMap& sources, const CompileOptions& options,
                    Diagnostics& diags) {
  Compiled out;
  Pipeline pipeline(options, out);
  out.program = pipeline.run("parse", [&] {
    sema::ReadModule read = module_reader(options.read_file, sources.name(file));
    sema::Program program = sema::read_program(file, sources, read, diags);
    program.derives |= !options.extra.of.empty();
    program.exporters = library_exporters;
    return program;
  });
  if (options.dump_after == "parse") out.dump = ast::dump(out.program.ast);
  core::Module m = pipeline.core("sema", diags, [&] {
    core::Module elaborated = sema::elaborate(out.program, diags, options.files, options.inputs);
    if (!options.extra.of.empty() && !diags.has_errors())
      add_request(elaborated, options.extra, diags);
    return elaborated;
  });
  if (options.strict && !diags.has_errors()) reject_unproven(m, diags);
  if (diags.has_errors()) return out;
  m = pipeline.core("solve-gates", diags, [&] {
    core::solve_gates(m);
    return std::move(m);
  });
  bool asked = !autodiff::requests_left(m).empty();
  if (options.keep_asked) out.asked = m;
  m = pipeline.core("autodiff", diags, [&] {
    return autodiff::differentiate(std::move(m), diags, options.direction, options.record);
  });
  if (diags.has_errors()) return out;
  if (asked) {
    EIN_CHECK(autodiff::requests_left(m).empty(), "a request is left after autodiff");
    check_order(m);
  }
  out.module = std::move(m);
  if (options.tests) {
    pipeline.run("tests", [&] {
      compile_tests(out, options, diags);
      return out.tests.size();
    });
  }
  out.ok = !diags.has_errors();
  return out;
}

}  // namespace
}  // namespace ein
