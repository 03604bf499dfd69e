// Helpers for the tests of sema: elaborate a snippet, print one family, evaluate, find an error.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/render.h"
#include "core/eval.h"
#include "core/print.h"
#include "core/verify.h"
#include "sema/elaborate.h"
#include "syntax/parser.h"

namespace ein::test {

struct Checked {
  SourceMap sources;
  Diagnostics diags;
  core::Module m;

  std::string rendered() const { return render(diags, sources, RenderOptions{}); }
};

inline void check(Checked& c, const std::string& source) {
  FileId file = c.sources.add("t.ein", source);
  ast::Ast tree = ast::parse(file, c.sources, c.diags);
  c.m = sema::elaborate(sema::lone_program(std::move(tree)), c.diags);
  if (!c.diags.has_errors()) {
    for (const std::string& line : core::verify(c.m)) ADD_FAILURE() << source << "\n" << line;
  }
}

// The definition of `name` as Core prints it, one line per clause.
inline std::string definition(const std::string& source, const std::string& name) {
  Checked c;
  check(c, source);
  if (c.diags.has_errors()) return c.rendered();
  core::FamilyId f = c.m.find(intern(name));
  if (!f) return "no family " + name;
  return core::print(c.m, {{f}});
}

// Cells of `name` in row-major order.
inline std::vector<double> values(const std::string& source, const std::string& name,
                                  const core::Inputs& inputs = {}) {
  Checked c;
  check(c, source);
  EXPECT_FALSE(c.diags.has_errors()) << c.rendered();
  if (c.diags.has_errors()) return {};
  core::FamilyId f = c.m.find(intern(name));
  EXPECT_TRUE(f.valid()) << "no family " << name;
  if (!f) return {};
  core::EvalResult r = core::evaluate(c.m, inputs, {f});
  EXPECT_FALSE(r.error.has_value()) << r.error->message;
  if (r.error) return {};
  const Tensor& t = r.values.at(f);
  std::vector<double> out;
  for (int64_t i = 0; i < t.size(); ++i) {
    out.push_back(is_float(t.dtype()) ? t.get_float(i) : static_cast<double>(t.get_int(i)));
  }
  return out;
}

inline Tensor tensor(std::vector<int64_t> shape, std::vector<double> cells,
                     DType type = DType::F32) {
  Tensor t(type, std::move(shape));
  for (size_t i = 0; i < cells.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    if (is_float(type))
      t.set_float(at, cells[i]);
    else
      t.set_int(at, static_cast<int64_t>(cells[i]));
  }
  return t;
}

// Exactly one diagnostic: its code, a part of its message, and the text its first label stands on.
inline void expect_only(const std::string& source, const std::string& code,
                        const std::string& message, const std::string& marked) {
  Checked c;
  check(c, source);
  ASSERT_EQ(c.diags.all().size(), 1u) << source << "\n" << c.rendered();
  const Diagnostic& d = c.diags.all().front();
  EXPECT_EQ(info(d.code).name, code) << c.rendered();
  EXPECT_NE(d.message.find(message), std::string::npos) << c.rendered();
  ASSERT_FALSE(d.labels.empty()) << c.rendered();
  EXPECT_EQ(std::string(c.sources.text(d.labels[0].span)), marked) << c.rendered();
}

}  // namespace ein::test
