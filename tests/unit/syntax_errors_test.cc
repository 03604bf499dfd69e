// What the parser says about broken programs: every code of block 01, recovery, and robustness.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/render.h"
#include "syntax/dump.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace ein::ast {
namespace {

struct Parsed {
  SourceMap sources;
  Diagnostics diags;
  Ast ast;
  explicit Parsed(const std::string& text) {
    FileId file = sources.add("t.ein", text);
    ast = parse(file, sources, diags);
  }
};

// "E0101@1:5 E0103@2:1": codes and places, in source order.
std::string codes(const std::string& text) {
  Parsed p(text);
  std::string out;
  for (const Diagnostic* d : p.diags.sorted()) {
    Span span = d->labels.at(0).span;
    LineCol at = p.sources.position(span.file, span.begin);
    out += (out.empty() ? "" : " ") + std::string(info(d->code).name) + "@" +
           std::to_string(at.line) + ":" + std::to_string(at.col);
  }
  return out;
}

std::string rendered(const std::string& text) {
  Parsed p(text);
  EXPECT_EQ(p.diags.all().size(), 1u) << text;
  return render_human(p.diags.all().front(), p.sources);
}

// The program after its only diagnostic's first fix.
std::string fixed(const std::string& text) {
  Parsed p(text);
  EXPECT_EQ(p.diags.all().size(), 1u) << text;
  if (p.diags.all().empty() || p.diags.all().front().fixes.empty()) return "no fix";
  auto edits = p.diags.all().front().fixes.front().edits;
  std::string out = text;
  for (size_t i = edits.size(); i-- > 0;) {
    out.replace(edits[i].span.begin, edits[i].span.end - edits[i].span.begin, edits[i].replacement);
  }
  return out;
}

TEST(SyntaxErrors, UnexpectedToken) {
  EXPECT_EQ(codes("let a = x + ;"), "E0101@1:13");
  EXPECT_EQ(codes("let x 5;"), "E0101@1:7");
  EXPECT_EQ(codes("if a { 1 } else 3;"), "E0101@1:17");
  EXPECT_EQ(codes("let x: 3 = 1;"), "E0101@1:8");
  EXPECT_EQ(codes("let x: [f32] = 1;"), "E0101@1:12");
  EXPECT_EQ(codes("let f: fn f32 = 1;"), "E0101@1:11");
  EXPECT_EQ(codes("sum[3](x);"), "E0101@1:5");
  EXPECT_EQ(codes("let x = a.(3);"), "E0101@1:10");
  EXPECT_EQ(codes("use a::;"), "E0101@1:8");
  EXPECT_EQ(codes("fn f(x);"), "E0101@1:8");
  EXPECT_EQ(codes("fn (x) {}"), "E0101@1:4");
  EXPECT_EQ(codes("let v = |x y;"), "E0101@1:12");
  EXPECT_EQ(codes("match x"), "E0101@1:8");
  EXPECT_EQ(codes("0..1..2;"), "E0101@1:5");
  EXPECT_EQ(codes("# x"), "E0101@1:3");
  EXPECT_EQ(codes("const N;"), "E0101@1:8");
  EXPECT_EQ(fixed("let x == 5;"), "let x = 5;");
}

TEST(SyntaxErrors, BadCharacter) {
  EXPECT_EQ(codes("let z = a $ b;"), "E0102@1:11");
  EXPECT_EQ(codes("let z = \x01\x02 1;\nlet y = *;"), "E0102@1:9 E0101@2:9");
  EXPECT_EQ(codes("let a = 1 /* no */ + 2;"), "E0102@1:11");
  EXPECT_EQ(fixed("let x = a \xC3\x97 b;"), "let x = a * b;");
  EXPECT_EQ(dump(Parsed("let x = a \xE2\x89\xA4 b;").ast), "(let x (<= a b))\n");
}

TEST(SyntaxErrors, UnclosedDelimiter) {
  EXPECT_EQ(codes("let a = f(x;\nlet b = *;"), "E0103@1:10 E0101@2:9");
  EXPECT_EQ(codes("let a = f(x\nlet b = 3;"), "E0103@1:10");
  EXPECT_EQ(codes("let a = (x[i);"), "E0103@1:11");
  EXPECT_EQ(codes("let a = (x[i)];"), "E0103@1:11");
  EXPECT_EQ(codes("fn f(x {\n  let a = 1;\n  a\n}\nlet b = 2;"), "E0103@1:5");
  EXPECT_EQ(codes("fn f() { let x = 1;"), "E0103@1:8");
  EXPECT_EQ(codes("let t: [f32; n"), "E0103@1:8");
  EXPECT_EQ(dump(Parsed("let a = f(x;\nlet b = 3;").ast), "(let a (call f x))\n(let b 3)\n");
}

TEST(SyntaxErrors, StrayDelimiter) {
  EXPECT_EQ(codes("}\nlet x = 1;"), "E0104@1:1");
  EXPECT_EQ(codes("let b = ];"), "E0104@1:9");
  EXPECT_EQ(codes("let b = (x];"), "E0104@1:11");
  EXPECT_EQ(codes("let b = f(x));"), "E0104@1:13");
}

TEST(SyntaxErrors, Strings) {
  EXPECT_EQ(codes("let s = \"abc;\nlet t = *;"), "E0105@1:9 E0101@2:9");
  EXPECT_EQ(codes(R"(let s = "a\q";)"), "E0106@1:11");
  EXPECT_EQ(codes(R"(let s = "\u{110000}";)"), "E0106@1:10");
  EXPECT_EQ(codes("let s = \"{}\";"), "E0106@1:10");
  EXPECT_EQ(codes("let s = \"{x y}\";"), "E0106@1:13");
  EXPECT_EQ(codes("let s = \"{x +}\";"), "E0101@1:14");
  EXPECT_EQ(codes("let s = \"{x\";"), "E0106@1:10");
  EXPECT_EQ(codes("let s = \"{x:q}\";"), "E0106@1:13");
  EXPECT_EQ(codes("let s = \"{x:.f}\";"), "E0106@1:13");
  EXPECT_EQ(codes("test \"a {b}\" { 1 }"), "E0106@1:10");
  EXPECT_EQ(fixed("let s = \"a}\";"), "let s = \"a}}\";");
}

TEST(SyntaxErrors, Numbers) {
  for (const char* bad : {"1.0f", "10px", "0x", "1e+", "99999999999999999999", "1e999", "0b12"}) {
    EXPECT_EQ(codes(std::string("let x = ") + bad + ";"), "E0107@1:9") << bad;
  }
  EXPECT_EQ(fixed("let x = 1.;"), "let x = 1.0;");
  EXPECT_EQ(fixed("let x = .5;"), "let x = 0.5;");
}

TEST(SyntaxErrors, StatementNotEnded) {
  EXPECT_EQ(codes("let a = 3 4;\nlet b = *;"), "E0108@1:11 E0101@2:9");
  EXPECT_EQ(fixed("print(a) print(b)"), "print(a); print(b)");
  EXPECT_NE(rendered("fn f(x) {\n    return x + 1\n}").find("remove `return`"), std::string::npos);
  EXPECT_NE(rendered("for i in 0..3 { print(i) }").find("there are no loops"), std::string::npos);
  EXPECT_NE(rendered("let c = a and b;").find("write `&&`"), std::string::npos);
}

TEST(SyntaxErrors, ChainedComparison) {
  EXPECT_EQ(codes("a < b < c < d;"), "E0109@1:7");
  EXPECT_EQ(codes("a == b != c;"), "E0109@1:8");
  EXPECT_EQ(fixed("let x = 0 <= i + 1 < n;"), "let x = 0 <= i + 1 && i + 1 < n;");
}

TEST(SyntaxErrors, RequestOperand) {
  EXPECT_EQ(fixed("let y = @f(x) / @x;"), "let y = @(f(x)) / @x;");
  EXPECT_EQ(fixed("let y = @y / @softmax[j](x);"), "let y = @y / @(softmax[j](x));");
  EXPECT_EQ(codes("let y = @t.0 / @x;"), "");
  EXPECT_EQ(fixed("let y = @m::x;"), "let y = @(m::x);");
  EXPECT_EQ(codes("let y = @(x)[i] / @z;"), "E0110@1:10");
  EXPECT_EQ(codes("let y = @3;"), "E0110@1:10");
}

TEST(SyntaxErrors, NestingTooDeep) {
  auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  int n = 100000;
  for (const std::string& text :
       {"let x = " + repeat("(", n) + "1" + repeat(")", n),
        "let x = " + repeat("[", n) + repeat("]", n), "let x = " + repeat("-", n) + "1",
        "let x = " + repeat("a ** ", n) + "a", "let x = " + repeat("|x| ", n) + "x",
        "let x = " + repeat("{", n) + repeat("}", n),
        "let x: " + repeat("(", n) + "f32" + repeat(")", n),
        "match x { " + repeat("(", n) + repeat(")", n) + " => 1 }",
        repeat("fn f() { ", n) + repeat("}", n)}) {
    Parsed p(text);
    EXPECT_EQ(p.diags.errors(), 1u) << text.substr(0, 20);
    EXPECT_EQ(p.diags.all().front().code, Code::E0111) << text.substr(0, 20);
  }
  EXPECT_EQ(codes("let x = " + repeat("(", 200) + "1" + repeat(")", 200)), "");
}

TEST(SyntaxErrors, LeftSides) {
  EXPECT_EQ(codes("let [i] = 3;"), "E0112@1:5");
  EXPECT_EQ(codes("let mut x = 3;"), "E0112@1:5");
  EXPECT_EQ(codes("let match = 3;"), "E0112@1:5");
  EXPECT_EQ(codes("let h[1..T] = 0;"), "E0112@1:7");
  EXPECT_EQ(codes("let g[t = 0] = 1;"), "E0112@1:9");
}

TEST(SyntaxErrors, PatternsModifiersEmptyLetsAssignments) {
  EXPECT_EQ(codes("match x { [a] => 5, 1 => 2 }"), "E0113@1:11");
  EXPECT_EQ(codes("pub let x = 1;"), "E0114@1:1");
  EXPECT_EQ(codes("pub @fn f(x) { x }"), "E0114@1:1");
  EXPECT_EQ(codes("let a = 1;\n#[foo]"), "E0114@2:1");
  EXPECT_EQ(codes("let x;\nlet y[i]\nlet z = 1;"), "E0115@1:1 E0115@2:1");
  EXPECT_EQ(fixed("C[i, j] = sum[k](A[i, k]);"), "let C[i, j] = sum[k](A[i, k]);");
  EXPECT_EQ(codes("x += 1;\ny **= 2;"), "E0116@1:3 E0116@2:3");
  EXPECT_EQ(codes("x = (1 + );"), "E0116@1:3 E0101@1:10");
}

TEST(SyntaxErrors, LostDocComment) {
  EXPECT_EQ(codes("let a = 1;\n/// lost"), "W0101@2:1");
  EXPECT_EQ(codes("f(/// why\n 3);"), "W0101@1:3");
}

TEST(SyntaxErrors, SwallowedStatement) {
  EXPECT_EQ(codes("let w = 7 // 2;\nlet b = 1;"), "W0102@1:11");
  EXPECT_EQ(codes("let w = 7; // 2;\nlet b = 1;"), "");
}

TEST(SyntaxErrors, EveryCodeOfTheBlockIsTested) {
  // Each code above is named in this file; this is the list it must cover.
  const std::set<std::string> tested = {"E0101", "E0102", "E0103", "E0104", "E0105", "E0106",
                                        "E0107", "E0108", "E0109", "E0110", "E0111", "E0112",
                                        "E0113", "E0114", "E0115", "E0116", "W0101", "W0102"};
  for (const CodeInfo& code : all_codes()) {
    bool here = std::string(code.name).substr(1, 2) == "01";
    EXPECT_EQ(tested.count(code.name) > 0, here) << code.name;
  }
}

TEST(Recovery, IndependentMistakesAreAllFound) {
  EXPECT_EQ(codes("let a = f(a +, b) + g(c c);\n"
                  "fn g(x) -> { x * }\n"
                  "let ok = 1;\n"
                  "let b = ;\n"
                  "match a { 1 => , 2 => 3 }\n"
                  "let c = \"{*}\";\n"),
            "E0101@1:14 E0101@1:25 E0101@2:12 E0101@2:18 E0101@4:9 E0101@5:16 E0101@6:11");
}

TEST(Recovery, GoodStatementsSurvive) {
  EXPECT_EQ(
      dump(Parsed("let a = 1;\nlet = 2;\nlet b = 3;\n}\nfn f(x) { let y = ; y }\nprint(a);").ast),
      "(let a 1)\n<error>\n(let b 3)\n(fn f (x) (block (let y <error>) => y))\n(do (call print "
      "a))\n");
}

TEST(Recovery, RenderedText) {
  EXPECT_EQ(rendered("let y = f(a b);\n"),
            "error[E0101]: expected `,` or `)`, found `b`\n"
            " --> t.ein:1:13\n"
            "  |\n"
            "1 | let y = f(a b);\n"
            "  |             ^ not expected here\n");
  EXPECT_EQ(rendered("let y = a +\n"),
            "error[E0101]: expected an expression, found the end of the file\n"
            " --> t.ein:1:12\n"
            "  |\n"
            "1 | let y = a +\n"
            "  |            ^ expected here\n");
  EXPECT_EQ(rendered("let x = 0 < i < n;\n"),
            "error[E0109]: comparisons cannot be chained\n"
            " --> t.ein:1:15\n"
            "  |\n"
            "1 | let x = 0 < i < n;\n"
            "  |           -   ^ second comparison\n"
            "  |           |\n"
            "  |           first comparison\n"
            "  |\n"
            "  = help: compare twice and join with `&&`\n"
            "fix: compare twice\n"
            "  |\n"
            "1 | let x = 0 < i && i < n;\n"
            "  |               +++++\n");
}

// Every span of the tree and of the diagnostics lies in the file, and everything can be shown.
void check_robust(const std::string& text) {
  Parsed p(text);
  auto inside = [&](Span s) { return s.valid() && s.begin <= s.end && s.end <= text.size(); };
  for (const Expr& e : p.ast.exprs) ASSERT_TRUE(inside(e.span)) << text;
  for (const Stmt& s : p.ast.stmts) ASSERT_TRUE(inside(s.span)) << text;
  for (const Diagnostic& d : p.diags.all()) {
    ASSERT_FALSE(d.labels.empty()) << text;
    for (const Label& l : d.labels) ASSERT_TRUE(inside(l.span)) << text;
    for (const Fix& f : d.fixes) {
      for (const Edit& e : f.edits) ASSERT_TRUE(inside(e.span)) << text;
    }
  }
  ASSERT_FALSE(dump(p.ast).empty() && p.diags.all().empty() &&
               text.find("let") != std::string::npos);
  render(p.diags, p.sources, {});
  render(p.diags, p.sources, {ErrorFormat::Json, false, 20});
}

TEST(Robustness, RandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = static_cast<char>(random() % (round % 2 ? 256 : 128));
    check_robust(text);
  }
}

TEST(Robustness,
     EveryCharacterIsConsumed) {  // a character that no rule took once hung the lexer
  for (uint32_t c = 0; c < 0x30000; c += c < 0x10000 ? 1 : 97) {
    std::string text;
    if (c < 0x80) {
      text = static_cast<char>(c);
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text = {static_cast<char>(0xF0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 0x3F)),
              static_cast<char>(0x80 | ((c >> 6) & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
    SourceMap sources;
    Diagnostics diags;
    FileId file = sources.add("t.ein", text + "x");
    Lexed lexed = lex(file, sources, diags);
    ASSERT_FALSE(lexed.tokens.empty()) << c;
  }
}

TEST(Robustness, TokenSoup) {
  std::vector<std::string> words = {"x",  "i", "sum",    "1",       "2.5", "\"a{x}\"", "\"{", "\n",
                                    "\n", " ", "// c\n", "/// d\n", "mut", "return",   "0..n"};
#define EIN_TOKEN(kind, text) words.push_back(text);
#define EIN_KEYWORD(kind, text) words.push_back(text);
#define EIN_SOFT(kind, text) words.push_back(text);
#include "syntax/tokens.def"
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto n = random() % 60; n > 0; --n)
      text += words[random() % words.size()] + (random() % 3 ? " " : "");
    check_robust(text);
  }
}

TEST(Robustness, BrokenPrograms) {  // a good program with pieces removed, doubled or swapped
  const std::string good =
      "/// Doc.\nfn softmax[j](x: [f32; ..l, j]) -> [f32; ..l, j] {\n"
      "  let m[..l] = max[j](x[..l, j]);\n  exp(x[..l, j] - m[..l]) // c\n}\n"
      "@fn relu(x) { if x > 0.0 { @x } else { 0.0 } }\n"
      "let (W, m)[s in 1..S] = step(W[s-1], |a| a ** -2, (1, [2.0, 3.0]))\n"
      "  where ih = oh + kh, ih < 3 else t.0;\n"
      "let g = @loss / @W[s-1, o];\nmatch n { 0 => a, (_, b) if b => { c } _ => \"{x:.2f}\" }\n";
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    for (auto n = 1 + random() % 4; n > 0; --n) {
      size_t at = random() % text.size(), size = random() % 6;
      if (random() % 2) {
        text.erase(at, size);
      } else {
        text.insert(at, good.substr(random() % good.size(), size));
      }
      if (text.empty()) text = "x";
    }
    check_robust(text);
  }
}

}  // namespace
}  // namespace ein::ast
