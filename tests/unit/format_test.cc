// The formatter: its style on examples, and what must hold for every program.
#include "syntax/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "syntax/dump.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace ein::ast {
namespace {

struct Result {
  bool ok = false;  // no syntax error
  std::string text, tree;
  std::vector<std::string> comments;
};

Result run(const std::string& source) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add("t.ein", source);
  Ast ast = parse(file, sources, diags);
  Result r;
  r.ok = !diags.has_errors();
  r.text = format(ast, sources);
  r.tree = dump(ast);
  Diagnostics ignored;
  for (const Comment& c : lex(file, sources, ignored).comments)
    r.comments.emplace_back(sources.text(c.span));
  return r;
}

// Formatting keeps the meaning and every comment, and is a fixed point.
void check_properties(const std::string& source) {
  Result once = run(source);
  if (!once.ok) {
    EXPECT_EQ(once.text, source);
    return;
  }
  Result twice = run(once.text);
  ASSERT_TRUE(twice.ok) << "source:\n" << source << "\nformatted:\n" << once.text;
  ASSERT_EQ(twice.tree, once.tree) << "source:\n" << source << "\nformatted:\n" << once.text;
  ASSERT_EQ(twice.comments, once.comments) << "source:\n"
                                           << source << "\nformatted:\n"
                                           << once.text;
  ASSERT_EQ(twice.text, once.text) << "source:\n" << source;
}

std::string formatted(const std::string& source) {
  check_properties(source);
  return run(source).text;
}

TEST(Format, Spacing) {
  EXPECT_EQ(formatted("let   x=1+2*3\nlet y : [f32;n,2]=-x**2.0 as f32"),
            "let x = 1 + 2 * 3;\nlet y: [f32; n, 2] = -x ** 2.0 as f32;\n");
  EXPECT_EQ(formatted("let h[ t in 1 .. T,i ]=h[t-1,i]"), "let h[t in 1..T, i] = h[t - 1, i];\n");
  EXPECT_EQ(formatted("let (a,b)=f[k in 0..=n,..b,(h,w)](x,|p,q:f32|p+q)"),
            "let (a, b) = f[k in 0..=n, ..b, (h, w)](x, |p, q: f32| p + q);\n");
  EXPECT_EQ(formatted("let g=W-lr*@loss/@W [s-1]"), "let g = W - lr * @loss / @W[s - 1];\n");
  EXPECT_EQ(formatted("use  a::{b ,c as d};use a::*;use a as b;mod m;pub const N:i32=0x1_0;"),
            "use a::{b, c as d};\nuse a::*;\nuse a as b;\nmod m;\npub const N: i32 = 0x1_0;\n");
  EXPECT_EQ(formatted("fn f(x,k:f32=1.0,p=(0,0)){f(x,p=(1,1),k=2.0)}"),
            "fn f(x, k: f32 = 1.0, p = (0, 0)) { f(x, p = (1, 1), k = 2.0) }\n");
  EXPECT_EQ(formatted("let a=[i*i|i in 0..n,i%2==0];let b=x . len+x.extent( c )"),
            "let a = [i * i | i in 0..n, i % 2 == 0];\nlet b = x.len + x.extent(c);\n");
  EXPECT_EQ(formatted("let c=match x{n@(1|2)=>+n,0 ..=9=>1,_=>x in[1,2]};pub use a::b"),
            "let c = match x { n @ 1 | 2 => +n, 0..=9 => 1, _ => x in [1, 2] };\npub use a::b;\n");
  EXPECT_EQ(formatted("let t=(a,);let u=();let v=t.0.1"),
            "let t = (a,);\nlet u = ();\nlet v = t.0.1;\n");
  EXPECT_EQ(formatted("f(1); // a \r\r \t\r\r\n"), "f(1); // a\n");
}

TEST(Format, KeepsParenthesesAndLiterals) {
  EXPECT_EQ(formatted("let x = ((a*b)) + 1e-5 + 1_000;"), "let x = (a * b) + 1e-5 + 1_000;\n");
  EXPECT_EQ(formatted("let s = \"{x:.4f} {{}} \\n\";"), "let s = \"{x:.4f} {{}} \\n\";\n");
}

TEST(Format, BlocksStayOnTheLineTheyWereOn) {
  EXPECT_EQ(formatted("fn relu(x){if x>0.0{x}else{0.0}}"),
            "fn relu(x) { if x > 0.0 { x } else { 0.0 } }\n");
  EXPECT_EQ(formatted("@fn f[j,..r](x:[f32;..l,j])->f32{\n@x}"),
            "@fn f[j, ..r](x: [f32; ..l, j]) -> f32 {\n    @x\n}\n");
  EXPECT_EQ(formatted("let a = { let b = 1; b };"), "let a = {\n    let b = 1;\n    b\n};\n");
  EXPECT_EQ(formatted("match n { 0 => a, _ => b }"), "match n { 0 => a, _ => b }\n");
  EXPECT_EQ(formatted("match n { 0 => a,\n (_,c) if c => b }"),
            "match n {\n    0 => a,\n    (_, c) if c => b,\n}\n");
  EXPECT_EQ(formatted("fn f() { if a { g() }; }"), "fn f() {\n    if a { g() };\n}\n");
  EXPECT_EQ(formatted("test \"adds\" { assert(1 == 1); }"),
            "test \"adds\" {\n    assert(1 == 1);\n}\n");
}

TEST(Format, BreaksLongLines) {
  EXPECT_EQ(formatted("let conv[b, oc, oh, ow] = sum[ic, kh, kw](input[b, ic, oh + kh, ow + kw] * "
                      "weight[oc, ic, kh, kw] * mask[b]);"),
            "let conv[b, oc, oh, ow] = sum[ic, kh, kw](\n"
            "    input[b, ic, oh + kh, ow + kw] * weight[oc, ic, kh, kw] * mask[b]\n"
            ");\n");
  EXPECT_EQ(
      formatted("let result = first_long_operand_of_the_sum + second_long_operand_of_the_sum + "
                "third_long_operand_of_the_sum;"),
      "let result =\n"
      "    first_long_operand_of_the_sum + second_long_operand_of_the_sum + "
      "third_long_operand_of_the_sum;\n");
  EXPECT_EQ(
      formatted("let result = first_long_operand_of_the_sum + second_long_operand_of_the_sum + "
                "third_long_operand_of_the_sum * fourth_factor;"),
      "let result =\n"
      "    first_long_operand_of_the_sum\n"
      "        + second_long_operand_of_the_sum\n"
      "        + third_long_operand_of_the_sum * fourth_factor;\n");
  EXPECT_EQ(formatted("let probabilities[b, j] = softmax_over_valid[class](logits[b, class]) where "
                      "valid[b, class], class < number;"),
            "let probabilities[b, j] = softmax_over_valid[class](logits[b, class])\n"
            "    where valid[b, class], class < number;\n");
}

TEST(Format, FillsArraysOfNumbers) {
  std::string source = "let a = [";
  for (int i = 0; i < 60; ++i) source += (i ? ", " : "") + std::string("1.25");
  std::string text = formatted(source + "];");
  EXPECT_EQ(text.substr(0, 10), "let a = [\n");
  size_t longest = 0, lines = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  EXPECT_LE(longest, 100u);
  EXPECT_EQ(lines, 6u);
}

TEST(Format, KeepsCommentsAndEmptyLines) {
  const std::string source =
      "#!/usr/bin/env ein\n"
      "// Heading.\n"
      "\n"
      "\n"
      "let a = 1; // behind\n"
      "/// Doc.\n"
      "fn f(x, // first\n"
      "     y) { // open\n"
      "\n"
      "    // own line\n"
      "    let z = x // inner\n"
      "        + y;\n"
      "\n"
      "    z\n"
      "    // last\n"
      "}\n"
      "// end\n";
  EXPECT_EQ(formatted(source),
            "#!/usr/bin/env ein\n"
            "// Heading.\n"
            "\n"
            "let a = 1; // behind\n"
            "/// Doc.\n"
            "fn f(\n"
            "    x, // first\n"
            "    y\n"
            ") { // open\n"
            "    // own line\n"
            "    let z =\n"
            "        x // inner\n"
            "            + y;\n"
            "\n"
            "    z\n"
            "    // last\n"
            "}\n"
            "// end\n");
}

TEST(Format, ReturnsBrokenProgramsUnchanged) {
  EXPECT_EQ(run("let  = 3").text, "let  = 3");
  EXPECT_EQ(run("let x = $").text, "let x = $");
  EXPECT_EQ(run("").text, "");
  EXPECT_EQ(formatted("\n\n// only a comment"), "// only a comment\n");
}

const char* const kProgram =
    "/// Doc.\npub fn softmax[j](x: [f32; ..l, j, ?], k: (f32, fn(f32) -> f32)) -> [f32; ..l, j] "
    "{\n"
    "  let m[..l] = max[j](x[..l, j])\n  exp(x[..l, j] - m[..l]) // c\n}\n"
    "@fn relu(x) { if x > 0.0 { @x } else if x < 1 { 0.0 } else { let y = 2 ; y } }\n"
    "#[checkpoint(4)]\nlet (W, m)[s in 1..S, 0] = step(W[s-1], |a| a ** -2, (1, [2.0, -3.0]), { "
    "print(1); 2 })\n"
    "  where ih = oh + kh, ih < 3 else t.0;\n"
    "let g = @loss / @W[s-1, o] * (a - b) as [f32; n + 1, *];\n"
    "match n { 0 => a, (_, b) if b => { c } _ => \"{x:.2f}\" }\n"
    "let v: f32\ntest \"t\" { assert(!a && b || c != d % 2) }\nuse a::{b, c as d}\nmod q\nif a { "
    "f() }; -x\n"
    "sum[k in 0..=i, ..r, (h, w)](x where k > 0) where q = 1, z\n";

TEST(Format, CommentsAnywhere) {  // a comment between any two tokens
  SourceMap sources;
  Diagnostics diags;
  Lexed tokens = lex(sources.add("t.ein", kProgram), sources, diags);
  std::string program = kProgram;
  check_properties(program);
  int good = 0;
  for (const Token& t : tokens.tokens) {
    for (const char* comment : {" // note\n", "\n// note\n"}) {
      std::string text = program;
      text.insert(t.span.begin, comment);
      check_properties(text);
      good += run(text).ok;
    }
  }
  EXPECT_GT(good, 300);
}

TEST(Format, RandomPrograms) {  // statements of good programs with pieces changed; most parse
  const std::vector<std::string> pieces = {"x",
                                           "f(x, y)",
                                           "a[i, j]",
                                           "sum[k](A[i, k] * B[k, j])",
                                           "(a + b)",
                                           "-x",
                                           "if a { b } else { c }",
                                           "{ x }",
                                           "[1, 2]",
                                           "(a, b)",
                                           "|x| x",
                                           "@y / @x",
                                           "x as f32",
                                           "0..n",
                                           "\"s {x}\"",
                                           "a where b",
                                           "t.0",
                                           "match a { _ => b }"};
  const std::vector<std::string> joints = {
      " + ", " * ", " ** ", " - ", " && ", " == ", " where ", " ", "\n", ", ", ";\n"};
  std::mt19937 random(4);
  int good = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text = random() % 2 ? "let v = " : "";
    for (auto n = 1 + random() % 8; n > 0; --n) {
      text += pieces[random() % pieces.size()];
      if (random() % 8 == 0) text += random() % 2 ? " // c\n" : "\n// d\n";
      if (n > 1) text += joints[random() % joints.size()];
    }
    check_properties(text);
    good += run(text).ok;
  }
  EXPECT_GT(good, 300);
}

TEST(Format, LongChains) {
  std::string sum = "let s = x", ifs = "let i = if a { 1 }", index = "let j = x";
  for (int i = 0; i < 5000; ++i) {
    sum += " + x";
    ifs += " else if a { 1 }";
    index += "[0]";
  }
  for (const std::string& text : {sum, ifs + " else { 2 }", index}) check_properties(text);
}

}  // namespace
}  // namespace ein::ast
