// Laws of cost that hold for every gradient of the book: a value with its gradients takes at
// most four times the operations of the value, and the cost and the printed length of a chain
// of products are proportional to its length. The programs and their inputs are the file
// tests of tests/grad; an input is enlarged by repeating it, so that work that does not grow
// with it does not count.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/eval.h"
#include "core/print.h"
#include "properties.h"

namespace ein {
namespace {

using nlohmann::json;

struct LawProgram {
  std::string source;
  core::Inputs inputs;
  std::vector<std::string> values, gradients;
};

void flatten(const json& cells, std::vector<double>& out) {
  if (!cells.is_array()) {
    out.push_back(cells.is_boolean() ? static_cast<double>(cells.get<bool>())
                                     : cells.get<double>());
    return;
  }
  for (const json& c : cells) flatten(c, out);
}

std::vector<int64_t> shape_of(const json& cells) {
  std::vector<int64_t> out;
  for (const json* at = &cells; at->is_array(); at = &at->at(0))
    out.push_back(static_cast<int64_t>(at->size()));
  return out;
}

// The array repeated to fill another shape.
Tensor repeated(const json& cells, DType type, const std::vector<int64_t>& large) {
  std::vector<int64_t> shape = shape_of(cells);
  std::vector<double> flat;
  flatten(cells, flat);
  Tensor t(type, large);
  for (int64_t i = 0; i < t.size(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (size_t k = shape.size(); k-- > 0;) {
      from += rest % large[k] % shape[k] * stride;
      stride *= shape[k];
      rest /= large[k];
    }
    double v = flat[static_cast<size_t>(from)];
    if (is_float(type)) {
      t.set_float(i, v);
    } else {
      t.set_int(i, static_cast<int64_t>(v));
    }
  }
  return t;
}

LawProgram read(const std::filesystem::path& path, bool large) {
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  LawProgram p{s.str(), {}, {}, {}};
  const std::map<std::string, DType> types{
      {"f64", DType::F64}, {"i32", DType::I32}, {"i64", DType::I64}, {"bool", DType::Bool}};
  std::regex input(R"(//! in (\w+) = (.*) : (\w+)(\[[\d, ]*\])?)"),
      grad(R"(//! grad: (\w+) = (\w+) / (\w+))");
  std::smatch found;
  for (std::string line; std::getline(s, line);) {
    if (std::regex_match(line, found, input)) {
      json cells = json::parse(found[2].str());
      std::vector<int64_t> shape = shape_of(cells);
      for (int64_t& n : shape) n *= large ? 6 : 1;
      p.inputs[found[1]] = repeated(cells, types.at(found[3]), shape);
    } else if (std::regex_match(line, found, grad)) {
      p.gradients.push_back(found[1]);
      p.values.push_back(found[2]);
    }
  }
  return p;
}

struct Cost {
  uint64_t value, all;
};
std::optional<Cost> cost(const LawProgram& p) {
  fuzz::Subject subject;
  EXPECT_EQ(fuzz::compile_source(p.source, subject), "");
  core::Module& m = subject.compiled.module;
  std::vector<core::FamilyId> values, all;
  for (const std::string& n : p.values) values.push_back(m.find(intern(n)));
  all = values;
  for (const std::string& n : p.gradients) all.push_back(m.find(intern(n)));
  core::EvalResult a = core::evaluate(m, p.inputs, values), b = core::evaluate(m, p.inputs, all);
  if (a.error || b.error) return std::nullopt;  // an extent that the program fixes
  return Cost{a.operations, b.operations};
}

TEST(Laws, EveryGradientOfTheBookCostsAtMostFourValues) {
  int programs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(EIN_SOURCE_DIR) + "/tests/grad")) {
    std::string name = entry.path().stem();
    // The exact derivative of `prod` has two recurrences where the value has one reduction.
    if (name.compare(0, 5, "seed_") != 0 || name == "seed_000_product") continue;
    LawProgram p = read(entry.path(), true);
    if (p.gradients.empty()) continue;
    std::optional<Cost> c = cost(p);
    if (!c) c = cost(p = read(entry.path(), false));
    ASSERT_TRUE(c) << name;
    EXPECT_LE(c->all, 4 * c->value)
        << name << ": " << static_cast<double>(c->all) / static_cast<double>(c->value);
    ++programs;
  }
  EXPECT_GE(programs, 25);
}

std::string product(int n) {
  std::string out;
  for (int k = 0; k < n; ++k) out += "let A" + std::to_string(k) + ": [f64; 4, 4];\n";
  for (int k = 1; k < n; ++k) {
    out += "let P" + std::to_string(k) + "[i, j] = sum[k](" +
           (k == 1 ? std::string("A0") : "P" + std::to_string(k - 1)) + "[i, k] * A" +
           std::to_string(k) + "[k, j]);\n";
  }
  out += "let loss = sum[i, j](P" + std::to_string(n - 1) + "[i, j] ** 2.0);\n";
  for (int k = 0; k < n; ++k)
    out += "let d" + std::to_string(k) + " = @loss / @A" + std::to_string(k) + ";\n";
  return out;
}

TEST(Laws, AChainOfProductsIsLinearInItsLength) {
  auto measure = [](int n, size_t& printed) {
    fuzz::Subject subject;
    EXPECT_EQ(fuzz::compile_source(product(n), subject), "");
    core::Module& m = subject.compiled.module;
    printed = core::print(m).size();
    core::Inputs inputs;
    std::vector<core::FamilyId> wanted{m.find(intern("loss"))}, value = wanted;
    for (int k = 0; k < n; ++k) {
      std::string a = "A" + std::to_string(k);
      Tensor t(DType::F64, {4, 4});
      for (int64_t i = 0; i < t.size(); ++i) t.set_float(i, 0.25 + 0.01 * static_cast<double>(i));
      inputs[a] = t;
      wanted.push_back(m.find(intern("d" + std::to_string(k))));
    }
    core::EvalResult all = core::evaluate(m, inputs, wanted);
    EXPECT_FALSE(all.error);
    EXPECT_LE(all.operations, 4 * core::evaluate(m, inputs, value).operations);
    return all.operations;
  };
  size_t short_text = 0, long_text = 0;
  uint64_t short_cost = measure(8, short_text), long_cost = measure(64, long_text);
  EXPECT_LE(long_cost, 9 * short_cost);
  EXPECT_LE(long_text, 10 * short_text);  // longer numbers in names
}

// Which entries belong to a row is data: not every row is asked about every entry.
TEST(Laws, EntriesOfRowsAreVisitedOnce) {
  const std::string source =
      "let row: [i32; r];\nlet col: [i32; nnz];\nlet val: [f64; nnz];\nlet x: [f64; n];\n"
      "let y[i in 0..len(row) - 1] = sum[k in row[i]..row[i + 1]](val[k] * x[col[k]]);\n"
      "let z = sum[i](y[i] ** 2.0);\nlet dval = @z / @val;\nlet dx = @z / @x;\n";
  auto measure = [&](const std::string& text, int64_t rows) {
    fuzz::Subject subject;
    EXPECT_EQ(fuzz::compile_source(text, subject), "");
    core::Module& m = subject.compiled.module;
    Tensor row(DType::I32, {rows + 1}), col(DType::I32, {3 * rows}), val(DType::F64, {3 * rows});
    Tensor x(DType::F64, {rows});
    for (int64_t i = 0; i <= rows; ++i) row.set_int(i, 3 * i);
    for (int64_t i = 0; i < 3 * rows; ++i) {
      col.set_int(i, (i * 7) % rows);
      val.set_float(i, 0.5);
    }
    core::Inputs in{{"row", row}, {"col", col}, {"val", val}, {"x", x}};
    std::vector<core::FamilyId> value{m.find(intern("z"))}, all = value;
    for (const char* name : {"dval", "dx"}) all.push_back(m.find(intern(name)));
    core::EvalResult both = core::evaluate(m, in, all);
    EXPECT_FALSE(both.error);
    EXPECT_LE(both.operations, 4 * core::evaluate(m, in, value).operations) << rows;
  };
  fuzz::Subject subject;
  ASSERT_EQ(fuzz::compile_source(source, subject), "");
  for (const std::string& text : {source, core::print(subject.compiled.module)}) {
    measure(text, 100);
    measure(text, 800);
  }
}

}  // namespace
}  // namespace ein
