// The lexer and the parser: every construct, as s-expressions (syntax/dump.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "base/render.h"
#include "syntax/dump.h"
#include "syntax/graft.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace ein::ast {
namespace {

// The dump of a program without mistakes, without its last newline.
std::string tree(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  Ast ast = parse(sources.add("t.ein", text), sources, diags);
  std::string out = dump(ast);
  EXPECT_EQ(render(diags, sources, {ErrorFormat::Short, false, 20}), "") << text;
  if (!out.empty()) out.pop_back();
  return out;
}

// The dump of an expression, as the value of a `let`.
std::string expr(const std::string& text) {
  std::string out = tree("let v = " + text + ";");
  EXPECT_EQ(out.substr(0, 7), "(let v ") << out;
  return out.size() > 8 ? out.substr(7, out.size() - 8) : out;
}

std::string type(const std::string& text) {
  std::string out = tree("let v: " + text + ";");
  return out.substr(12, out.size() - 14);  // (input v (: …))
}

std::vector<Tok> kinds(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  std::vector<Tok> out;
  for (const Token& t : lex(sources.add("t.ein", text), sources, diags).tokens)
    out.push_back(t.kind);
  return out;
}

TEST(Lexer, LongestOperatorWins) {
  EXPECT_EQ(kinds("<< <<= <= & &= && >> ^ ~"),
            (std::vector<Tok>{Tok::LtLt, Tok::AssignOp, Tok::LtEq, Tok::Amp, Tok::AssignOp,
                              Tok::AmpAmp, Tok::GtGt, Tok::Caret, Tok::Tilde, Tok::End}));
  EXPECT_EQ(kinds("** * *= ..= .. . == = => -> - || |"),
            (std::vector<Tok>{Tok::StarStar, Tok::Star, Tok::AssignOp, Tok::DotDotEq, Tok::DotDot,
                              Tok::Dot, Tok::EqEq, Tok::Eq, Tok::FatArrow, Tok::Arrow, Tok::Minus,
                              Tok::PipePipe, Tok::Pipe, Tok::End}));
}

TEST(Lexer, DotsBetweenNumbers) {
  EXPECT_EQ(kinds("1..2"), (std::vector<Tok>{Tok::Int, Tok::DotDot, Tok::Int, Tok::End}));
  EXPECT_EQ(kinds("1.5..=2"), (std::vector<Tok>{Tok::Float, Tok::DotDotEq, Tok::Int, Tok::End}));
  EXPECT_EQ(kinds("t.0.1"),
            (std::vector<Tok>{Tok::Name, Tok::Dot, Tok::Int, Tok::Dot, Tok::Int, Tok::End}));
}

TEST(Lexer, KnowsNewlinesCommentsAndDelimiters) {
  SourceMap sources;
  Diagnostics diags;
  Lexed out = lex(sources.add("t.ein", "f( // one\n  /// two\n  a)\n"), sources, diags);
  ASSERT_EQ(out.tokens.size(), 5u);
  EXPECT_FALSE(out.tokens[1].newline_before);
  EXPECT_TRUE(out.tokens[2].newline_before);
  EXPECT_EQ(out.tokens[1].close, 3u);
  ASSERT_EQ(out.comments.size(), 2u);
  EXPECT_FALSE(out.comments[0].own_line);
  EXPECT_TRUE(out.comments[1].own_line);
  EXPECT_TRUE(out.comments[1].doc);
  EXPECT_EQ(out.comments[1].token, 2u);
  EXPECT_EQ(sources.text(out.comments[0].span), "// one");
}

TEST(Lexer, SkipsByteOrderMarkAndScriptLine) {
  EXPECT_EQ(kinds("\xEF\xBB\xBF#!/usr/bin/env ein\nx"), (std::vector<Tok>{Tok::Name, Tok::End}));
}

TEST(Lexer, ListsItsWords) {
  EXPECT_TRUE(is_keyword("where"));
  EXPECT_FALSE(is_keyword("in"));
  EXPECT_EQ(soft_keywords(), (std::vector<std::string_view>{"in", "mod", "test", "type", "until"}));
  EXPECT_EQ(describe(Tok::LParen), "`(`");
  EXPECT_EQ(describe(Tok::Name), "a name");
}

TEST(Parse, Literals) {
  EXPECT_EQ(expr("1_000"), "1000");
  EXPECT_EQ(expr("0x10"), "16");
  EXPECT_EQ(expr("0b101"), "5");
  EXPECT_EQ(expr("1e-5"), "1e-05");
  EXPECT_EQ(expr("2.0"), "2.0");
  EXPECT_EQ(expr("1.5e3"), "1500.0");
  EXPECT_EQ(expr("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(expr("true"), "true");
  EXPECT_EQ(expr("false"), "false");
  EXPECT_EQ(expr("1e-400"), "0.0");
}

TEST(Parse, NamesInOtherScripts) {
  EXPECT_EQ(expr("\xCE\xB1 * x\xE2\x82\x80"), "(* \xCE\xB1 x\xE2\x82\x80)");  // α * x₀
}

TEST(Parse, Strings) {
  EXPECT_EQ(expr("\"\""), "\"\"");
  EXPECT_EQ(expr(R"("a\n\t\"\\ \u{3b1}")"), "\"a\\n\\t\\\"\\\\ \xCE\xB1\"");
  EXPECT_EQ(expr("\"{{x}}\""), "\"{x}\"");
  EXPECT_EQ(expr("\"loss {loss[s - 1]:.4f} at {s}\""),
            "(str \"loss \" (fmt (index loss (- s 1)) \".4f\") \" at \" s)");
  EXPECT_EQ(expr("\"{m::x}\""), "(str m::x)");
  EXPECT_EQ(expr("\"{if a { 1 } else { 2 }}\""), "(str (if a (block => 1) (block => 2)))");
  EXPECT_EQ(expr("\"{f(|x: f32| x)}\""), "(str (call f (lambda (x (: f32)) x)))");
  EXPECT_EQ(expr("\"{@y}\""), "(str (tangent y))");
}

TEST(Parse, PlaceholderSpansPointIntoTheString) {
  SourceMap sources;
  Diagnostics diags;
  std::string text = "print(\"a {b + c:.2f}\");";
  Ast ast = parse(sources.add("t.ein", text), sources, diags);
  auto& call = std::get<Call>(ast[std::get<ExprStmt>(ast[ast.items[0]].node).value].node);
  auto& str = std::get<StrLit>(ast[call.args[0]].node);
  EXPECT_EQ(sources.text(ast[str.pieces[1].value].span), "b + c");
}

TEST(Parse, Precedence) {
  EXPECT_EQ(expr("a + b * c"), "(+ a (* b c))");
  EXPECT_EQ(expr("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(expr("a / b % c"), "(% (/ a b) c)");
  EXPECT_EQ(expr("a | b ^ c & d << e + f"), "(| a (^ b (& c (<< d (+ e f)))))");
  EXPECT_EQ(expr("a << b >> c & d & e"), "(& (& (>> (<< a b) c) d) e)");
  EXPECT_EQ(expr("a & 1 == 0 && ~b < c"), "(&& (== (& a 1) 0) (< (bitnot b) c))");
  EXPECT_EQ(expr("|p, q| p | q"), "(lambda (p q) (| p q))");
  EXPECT_EQ(expr("-x ** 2.0"), "(neg (** x 2.0))");
  EXPECT_EQ(expr("a ** b ** c"), "(** a (** b c))");
  EXPECT_EQ(expr("2.0 ** -x ** 3"), "(** 2.0 (neg (** x 3)))");
  EXPECT_EQ(expr("-a * b"), "(* (neg a) b)");
  EXPECT_EQ(expr("- -a"), "(neg (neg a))");
  EXPECT_EQ(expr("!a && b || c"), "(|| (&& (not a) b) c)");
  EXPECT_EQ(expr("!a == b"), "(== (not a) b)");
  EXPECT_EQ(expr("a + 1 < b && c >= d"), "(&& (< (+ a 1) b) (>= c d))");
  EXPECT_EQ(expr("a != b"), "(!= a b)");
  EXPECT_EQ(expr("a <= b || a > b"), "(|| (<= a b) (> a b))");
  EXPECT_EQ(expr("0..n + 1"), "(.. 0 (+ n 1))");
  EXPECT_EQ(expr("i - 1..=n"), "(..= (- i 1) n)");
  EXPECT_EQ(expr("x as f32 ** 2.0"), "(** (as x f32) 2.0)");
  EXPECT_EQ(expr("-1 as f64"), "(neg (as 1 f64))");
  EXPECT_EQ(expr("x as i32 as f64"), "(as (as x i32) f64)");
  EXPECT_EQ(expr("(a + b) * c"), "(* (+ a b) c)");
}

TEST(Parse, IndexAndCall) {
  EXPECT_EQ(expr("x[i, 2 * j, ..b]"), "(index x i (* 2 j) ..b)");
  EXPECT_EQ(expr("x[]"), "(index x)");
  EXPECT_EQ(expr("m[idx[k], col[k]]"), "(index m (index idx k) (index col k))");
  EXPECT_EQ(expr("f(x, y,)"), "(call f x y)");
  EXPECT_EQ(expr("f()"), "(call f)");
  EXPECT_EQ(expr("x.len + y.shape[0]"), "(+ (call .len x) (index (call .shape y) 0))");
  EXPECT_EQ(expr("f(x).extent(c)"), "(call .extent (call f x) c)");
  EXPECT_EQ(expr("[i * i | i in 0..n]"), "(each (* i i) (in i (.. 0 n)))");
  EXPECT_EQ(expr("[v | v in xs, j in 1..=2, v > j]"),
            "(each v (in v xs) (in j (..= 1 2)) (> v j))");
  EXPECT_EQ(expr("+x - +-2"), "(- (plus x) (plus (neg 2)))");
  EXPECT_EQ(expr("a + 1 in 0..10 && in in [1]"), "(&& (in (+ a 1) (.. 0 10)) (in in (array 1)))");
  EXPECT_EQ(expr("match x { n @ 1 | -2 => 0, 0..=9 | 10 => 1, (1 | 2, _) => 2 }"),
            "(match x (arm (@ n (or 1 (neg 2))) 0) (arm (or (..= 0 9) 10) 1) "
            "(arm (tuple (or 1 2) _) 2))");
  EXPECT_EQ(tree("pub use a::{b, c as d}; pub use e::*;"), "(pub-use a b (as c d))\n(pub-use e *)");
  EXPECT_EQ(expr("f(x, k = 1, c = a == b)"), "(call f x (= k 1) (= c (== a b)))");
  EXPECT_EQ(expr("f[i](k = x where a = 1)"), "(call f [i] (= k (where x (bind a 1))))");
  EXPECT_EQ(tree("fn f(x, k: f32 = 1.0, p = (0, 0)) { x }"),
            "(fn f (x k (: f32) (= 1.0) p (= (tuple 0 0))) (block => x))");
  EXPECT_EQ(expr("std::math::exp(x)"), "(call std::math::exp x)");
  EXPECT_EQ(expr("f(x)[i]"), "(index (call f x) i)");
  EXPECT_EQ(expr("t.0.1"), "(field (field t 0) 1)");
  EXPECT_EQ(expr("f(x).0[i]"), "(index (field (call f x) 0) i)");
  EXPECT_EQ(expr("(g)[i](x)"), "(call (index g i) x)");
}

TEST(Parse, Records) {
  EXPECT_EQ(expr("{ a: 1, b: x + 1 }"), "(record (a 1) (b (+ x 1)))");
  EXPECT_EQ(expr("{ a, b }"), "(record (a a) (b b))");
  EXPECT_EQ(expr("{ a }"), "(block => a)");
  EXPECT_EQ(expr("{ a, }"), "(record (a a))");
  EXPECT_EQ(expr("{ ..p, a: 1 }"), "(record (.. p) (a 1))");
  EXPECT_EQ(expr("{ ..p }"), "(record (.. p))");
  EXPECT_EQ(expr("s[t - 1].p.w[i]"), "(index (field (field (index s (- t 1)) p) w) i)");
  EXPECT_EQ(expr("if c { a: 1 } else { b }"), "(if c (block => (record (a 1))) (block => b))");
  EXPECT_EQ(expr("|w| { a: w }"), "(lambda (w) (record (a w)))");
  EXPECT_EQ(expr("@loss / @p.w[i]"), "(request loss (index (field p w) i))");
  EXPECT_EQ(type("{ a: f32, b: { c: [f32; n] } }"),
            "(record (a f32) (b (record (c (tensor f32 n)))))");
  EXPECT_EQ(tree("let { a, b } = p;"), "(let {a b} p)");
  EXPECT_EQ(tree("pub type P = { a: f32 };\ntype Q = P"),
            "(pub-type P (record (a f32)))\n(type Q P)");
  EXPECT_EQ(tree("let type = 1; print(type);"), "(let type 1)\n(do (call print type))");
}

TEST(Parse, BracketCalls) {
  EXPECT_EQ(expr("sum[in](x[b, in] * W[out, in])"),
            "(call sum [in] (* (index x b in) (index W out in)))");
  EXPECT_EQ(expr("sum[in in 0..n](x[in])"), "(call sum [(in in (.. 0 n))] (index x in))");
  EXPECT_EQ(expr("sum[k in 0..=i](x[k])"), "(call sum [(in k (..= 0 i))] (index x k))");
  EXPECT_EQ(expr("sum[..b, t in 1..T](x)"), "(call sum [..b (in t (.. 1 T))] x)");
  EXPECT_EQ(expr("pool[(h, w)](x)"), "(call pool [(group h w)] x)");
  EXPECT_EQ(expr("nn::softmax[class](logits[b, class])"),
            "(call nn::softmax [class] (index logits b class))");
  EXPECT_EQ(expr("f[i, j](x)"), "(call f [i j] x)");
  EXPECT_EQ(expr("sum[row, col](x ** 2.0)"), "(call sum [row col] (** x 2.0))");
  EXPECT_EQ(expr("f[](x)"), "(call f [] x)");
}

TEST(Parse, SoftKeywordsAreNames) {
  EXPECT_EQ(tree("let in[mod, test] = out[test] + mod(in);"),
            "(let in [mod test] (+ (index out test) (call mod in)))");
  EXPECT_EQ(tree("test(3);\nmod + 1;"), "(do (call test 3))\n(do (+ mod 1))");
  EXPECT_EQ(tree("fn f[in](test: [f32; in]) { test }"),
            "(fn f [in] (test (: (tensor f32 in))) (block => test))");
}

TEST(Parse, TuplesAndArrays) {
  EXPECT_EQ(expr("()"), "(tuple)");
  EXPECT_EQ(expr("(a)"), "a");
  EXPECT_EQ(expr("(a,)"), "(tuple a)");
  EXPECT_EQ(expr("(a, b + 1)"), "(tuple a (+ b 1))");
  EXPECT_EQ(expr("[[1.0, 2.0], [3.0, 4.0],]"), "(array (array 1.0 2.0) (array 3.0 4.0))");
  EXPECT_EQ(expr("[]"), "(array)");
}

TEST(Parse, ParenthesesBelongToTheSpan) {
  SourceMap sources;
  Diagnostics diags;
  Ast ast = parse(sources.add("t.ein", "(a + b) * c;"), sources, diags);
  ExprId id = std::get<ExprStmt>(ast[ast.items[0]].node).value;
  auto& product = std::get<Binary>(ast[id].node);
  EXPECT_EQ(sources.text(ast[id].span), "(a + b) * c");
  EXPECT_EQ(sources.text(ast[product.lhs].span), "(a + b)");
  EXPECT_EQ(sources.text(product.op_span), "*");
  EXPECT_TRUE(ast.parenthesised.count(product.lhs));
}

TEST(Parse, IfAndMatch) {
  EXPECT_EQ(expr("if x > 0.0 { x } else { 0.0 }"), "(if (> x 0.0) (block => x) (block => 0.0))");
  EXPECT_EQ(expr("if a { 1 } else if b { 2 } else { 3 }"),
            "(if a (block => 1) (if b (block => 2) (block => 3)))");
  EXPECT_EQ(expr("if a { 1 }"), "(if a (block => 1))");
  EXPECT_EQ(expr("dy[i] * if x[i] > 0 { 1 } else { 0 }"),
            "(* (index dy i) (if (> (index x i) 0) (block => 1) (block => 0)))");
  EXPECT_EQ(expr("if a { 1 } else { 2 } + 3"), "(+ (if a (block => 1) (block => 2)) 3)");
  EXPECT_EQ(expr("match n { 0 => a, -1 => b, 1.5 => c, true => d, _ => e, }"),
            "(match n (arm 0 a) (arm (neg 1) b) (arm 1.5 c) (arm true d) (arm _ e))");
  EXPECT_EQ(expr("match (a, b) { (0, x) if x > 1 => x, (_, (y, _)) => { y } _ => 0 }"),
            "(match (tuple a b) (arm (tuple 0 x) (when (> x 1)) x) "
            "(arm (tuple _ (tuple y _)) (block => y)) (arm _ 0))");
  EXPECT_EQ(expr("match n {\n 0 => a\n _ => b\n}"), "(match n (arm 0 a) (arm _ b))");
  EXPECT_EQ(expr("match s { \"a\" => 1, _ => 2 }"), "(match s (arm \"a\" 1) (arm _ 2))");
}

TEST(Parse, BlocksAndLambdas) {
  EXPECT_EQ(expr("{ let a = 1; a + 1 }"), "(block (let a 1) => (+ a 1))");
  EXPECT_EQ(expr("{ let a = 1 }"), "(block (let a 1))");
  EXPECT_EQ(expr("{ print(a); }"), "(block (do (call print a)))");
  EXPECT_EQ(expr("{}"), "(block)");
  EXPECT_EQ(expr("{ print(a)\n a }"), "(block (do (call print a)) => a)");
  EXPECT_EQ(expr("|x| x * 2"), "(lambda (x) (* x 2))");
  EXPECT_EQ(expr("|x, y: f32| x + y"), "(lambda (x y (: f32)) (+ x y))");
  EXPECT_EQ(expr("|| 3"), "(lambda () 3)");
  EXPECT_EQ(expr("map(|x| x + 1, v)"), "(call map (lambda (x) (+ x 1)) v)");
  EXPECT_EQ(expr("|x| |y| x"), "(lambda (x) (lambda (y) x))");
}

TEST(Parse, Where) {
  EXPECT_EQ(expr("sum[i](x[i] where x[i] > 0)"),
            "(call sum [i] (where (index x i) (> (index x i) 0)))");
  EXPECT_EQ(expr("sum[i](x[i]) where x[i] > 0, i < 3"),
            "(where (call sum [i] (index x i)) (> (index x i) 0) (< i 3))");
  EXPECT_EQ(expr("x[ih] where ih = oh + kh, ih < H else 1.0"),
            "(where (index x ih) (bind ih (+ oh kh)) (< ih H) (else 1.0))");
  EXPECT_EQ(expr("a where b || c where d"), "(where (where a (|| b c)) d)");
  EXPECT_EQ(expr("(a where b, c)"), "(tuple (where a b) c)");
  EXPECT_EQ(expr("[a where b, c]"), "(array (where a b) c)");
  EXPECT_EQ(expr("f(a where z = 1, c)"), "(call f (where a (bind z 1)) c)");
  EXPECT_EQ(expr("f(a)\n    where b,\n          c"), "(where (call f a) b c)");
  EXPECT_EQ(expr("f({ a where b, c })"), "(call f (block => (where a b c)))");
  EXPECT_EQ(expr("|x| x where x > 0"), "(lambda (x) (where x (> x 0)))");
}

TEST(Parse, Requests) {
  EXPECT_EQ(expr("@loss / @W"), "(request loss W)");
  EXPECT_EQ(expr("W - lr * @loss / @W"), "(- W (* lr (request loss W)))");
  EXPECT_EQ(expr("@y[i] / @x[i]"), "(request (index y i) (index x i))");
  EXPECT_EQ(expr("@loss[s-1] / @W[s-1, o, h]"),
            "(request (index loss (- s 1)) (index W (- s 1) o h))");
  EXPECT_EQ(expr("@(x * x) / @x"), "(request (* x x) x)");
  EXPECT_EQ(expr("@(@loss / @x) / @x"), "(request (request loss x) x)");
  EXPECT_EQ(expr("(@loss / @W)[i, j]"), "(index (request loss W) i j)");
  EXPECT_EQ(expr("@x"), "(tangent x)");
  EXPECT_EQ(expr("softmax_tangent[j](x, @x)"), "(call softmax_tangent [j] x (tangent x))");
  EXPECT_EQ(expr("@x * 2.0 / y"), "(/ (* (tangent x) 2.0) y)");
  EXPECT_EQ(expr("@loss / @in ** 2.0"), "(** (request loss in) 2.0)");
  EXPECT_EQ(expr("-@a / @b"), "(neg (request a b))");
}

TEST(Parse, Types) {
  EXPECT_EQ(type("f32"), "f32");
  EXPECT_EQ(type("[f32; 2, 3]"), "(tensor f32 2 3)");
  EXPECT_EQ(type("[f32; ..left, j, ?, *]"), "(tensor f32 ..left j ? *)");
  EXPECT_EQ(type("[f32; n + 1, 2 * m]"), "(tensor f32 (+ n 1) (* 2 m))");
  EXPECT_EQ(type("[f32;]"), "(tensor f32)");
  EXPECT_EQ(type("(f32, [f32; n])"), "(tuple f32 (tensor f32 n))");
  EXPECT_EQ(type("(f32)"), "f32");
  EXPECT_EQ(type("()"), "(tuple)");
  EXPECT_EQ(type("fn(f32, [f32; n]) -> f32"), "(fn (f32 (tensor f32 n)) f32)");
  EXPECT_EQ(expr("load(\"w.npy\") as [f32; 128, 10]"),
            "(as (call load \"w.npy\") (tensor f32 128 10))");
}

TEST(Parse, Lets) {
  EXPECT_EQ(tree("let x: f32 = 1;"), "(let x (: f32) 1)");
  EXPECT_EQ(tree("let x: [f32; b, in];"), "(input x (: (tensor f32 b in)))");
  EXPECT_EQ(tree("let C[i, j] = 0;"), "(let C [i j] 0)");
  EXPECT_EQ(tree("let h[t in 1..T, i] = 0;"), "(let h [(in t (.. 1 T)) i] 0)");
  EXPECT_EQ(tree("let h[t in 1..T, i]: f32 = 0;"), "(let h [(in t (.. 1 T)) i] (: f32) 0)");
  EXPECT_EQ(tree("let fib[0] = 0;"), "(let fib [0] 0)");
  EXPECT_EQ(tree("let h[T - 1] = 0;"), "(let h [(- T 1)] 0)");
  EXPECT_EQ(tree("let y[..batch, i,] = 0;"), "(let y [..batch i] 0)");
  EXPECT_EQ(tree("let (a, _) = f();"), "(let (a _) (call f))");
  EXPECT_EQ(tree("let x[t in 1..9] = x[t - 1] until x[t] < 1;"),
            "(let x [(in t (.. 1 9))] (index x (- t 1)) (until (< (index x t) 1)))");
  EXPECT_EQ(tree("let until = until;"), "(let until until)");
  EXPECT_EQ(tree("let (W, m)[s in 1..S] = step(W[s-1], m[s-1]);"),
            "(let (W m) [(in s (.. 1 S))] (call step (index W (- s 1)) (index m (- s 1))))");
}

TEST(Parse, Items) {
  EXPECT_EQ(tree("const N: i32 = 3; pub const M = 4;"), "(const N (: i32) 3)\n(pub-const M 4)");
  EXPECT_EQ(tree("fn relu(x) { if x > 0.0 { x } else { 0.0 } }"),
            "(fn relu (x) (block => (if (> x 0.0) (block => x) (block => 0.0))))");
  EXPECT_EQ(
      tree("pub fn softmax[j](x: [f32; ..left, j, ..right])\n -> [f32; ..left, j, ..right]\n{ x }"),
      "(pub-fn softmax [j] (x (: (tensor f32 ..left j ..right))) "
      "(-> (tensor f32 ..left j ..right)) (block => x))");
  EXPECT_EQ(tree("@fn relu(x) { @x }"), "(@fn relu (x) (block => (tangent x)))");
  EXPECT_EQ(tree("fn pool[..spatial, c](x, y: f32,) {}"),
            "(fn pool [..spatial c] (x y (: f32)) (block))");
  EXPECT_EQ(tree("fn apply(f: fn(f32) -> f32, x) { f(x) }"),
            "(fn apply (f (: (fn (f32) f32)) x) (block => (call f x)))");
  EXPECT_EQ(tree("use std::math::exp;"), "(use std::math::exp)");
  EXPECT_EQ(tree("use a::{b, c as d};"), "(use a b (as c d))");
  EXPECT_EQ(tree("use a::b::*;"), "(use a::b *)");
  EXPECT_EQ(tree("use a::b as c;"), "(use a::b (as c))");
  EXPECT_EQ(tree("mod layers;"), "(mod layers)");
  EXPECT_EQ(tree("test \"adds {{}}\" { assert(1 + 1 == 2); }"),
            "(test \"adds {}\" (block (do (call assert (== (+ 1 1) 2)))))");
}

TEST(Parse, AttributesAndDocs) {
  EXPECT_EQ(tree("#[checkpoint(4)]\n#[surrogate]\nlet x = 1;"),
            "#(checkpoint 4) #(surrogate) (let x 1)");
  EXPECT_EQ(tree("/// First.\n///   second\n// plain\n//// rule\nlet x = 1;"),
            "(doc \"First.\\n  second\") (let x 1)");
  EXPECT_EQ(tree("/// Doc.\n#[a]\nfn f() {}"), "(doc \"Doc.\") #(a) (fn f () (block))");
  EXPECT_EQ(tree("fn f() {\n /// inner\n let a = 1;\n a }"),
            "(fn f () (block (doc \"inner\") (let a 1) => a))");
}

TEST(Parse, SemicolonsAreOptional) {
  EXPECT_EQ(tree("let a = 1\nlet b = a + 1"), "(let a 1)\n(let b (+ a 1))");
  EXPECT_EQ(tree("let a = 1 let b = 2"), "(let a 1)\n(let b 2)");
  EXPECT_EQ(tree("let a = b\n    + c\n    * d\nprint(a)"),
            "(let a (+ b (* c d)))\n(do (call print a))");
  EXPECT_EQ(tree("let a = b\n(c, d)"), "(let a b)\n(do (tuple c d))");
  EXPECT_EQ(tree("let a = b\n[c, d]"), "(let a b)\n(do (array c d))");
  EXPECT_EQ(tree("let a = x[i]\n(c)"), "(let a (index x i))\n(do c)");
  EXPECT_EQ(tree("let g = @y\n/ @x"), "(let g (request y x))");
  EXPECT_EQ(tree("let a: f32\nlet b: f32"), "(input a (: f32))\n(input b (: f32))");
  EXPECT_EQ(tree("if a { f() } if b { g() }"),
            "(do (if a (block => (call f))))\n(do (if b (block => (call g))))");
  EXPECT_EQ(tree(";;let a = 1;;"), "(let a 1)");
  EXPECT_EQ(tree("use a::b\nmod c\nconst N = 1\nfn f() { 1 }\nprint(1)"),
            "(use a::b)\n(mod c)\n(const N 1)\n(fn f () (block => 1))\n(do (call print 1))");
  EXPECT_EQ(tree(""), "");
}

TEST(Parse, SeedPrograms) {
  EXPECT_EQ(tree("let conv[b, oc, oh, ow] = sum[ic, kh, kw](\n"
                 "    input[b, ic, oh + kh, ow + kw] * weight[oc, ic, kh, kw]\n);"),
            "(let conv [b oc oh ow] (call sum [ic kh kw] (* (index input b ic (+ oh kh) (+ ow kw)) "
            "(index weight oc ic kh kw))))");
  EXPECT_EQ(tree("let probs[b, j] = softmax_over_valid[class](logits[b, class])\n    where "
                 "valid[b, class];"),
            "(let probs [b j] (where (call softmax_over_valid [class] (index logits b class)) "
            "(index valid b class)))");
  EXPECT_EQ(tree("let C[..batch, i, j] =\n    sum[k](A[..batch, i, k] * B[..batch, k, j])"),
            "(let C [..batch i j] (call sum [k] (* (index A ..batch i k) (index B ..batch k j))))");
}

TEST(Parse, LongChainsAreNotNesting) {
  std::string sum = "x", ifs = "if a { 1 }", index = "x", gates = "x";
  for (int i = 0; i < 2000; ++i) sum += " + x";
  for (int i = 0; i < 1999; ++i) ifs += " else if a { 1 }";
  for (int i = 0; i < 250; ++i) {
    index += "[0]";
    gates += " where a";
  }
  EXPECT_EQ(expr(sum).size(), 2000 * (3 + 3) + 1u);
  EXPECT_NE(expr(ifs).size(), 0u);
  EXPECT_NE(expr(index).size(), 0u);
  EXPECT_NE(expr(gates).size(), 0u);
}

// Everything that a tree consists of, with its places: the dump, and the spans of all nodes in order.
std::string whole(const Ast& ast, const std::vector<StmtId>& items) {
  std::string out;
  auto place = [&](Span s) {
    out += std::to_string(s.file.v) + ":" + std::to_string(s.begin) + "-" + std::to_string(s.end);
  };
  for (StmtId id : items) out += dump(ast, id) + "\n";
  for (const Expr& e : ast.exprs) {
    place(e.span);
    if (const auto* path = std::get_if<Path>(&e.node)) {
      for (const Name& part : path->parts) place(part.span);
    }
    if (const auto* where = std::get_if<Where>(&e.node)) place(where->where_span);
    if (const auto* binary = std::get_if<Binary>(&e.node)) place(binary->op_span);
    if (const auto* call = std::get_if<Call>(&e.node)) {
      for (const Bracket& b : call->brackets) place(b.span);
    }
    out += " ";
  }
  for (const Type& t : ast.types) place(t.span), out += " ";
  for (const Stmt& s : ast.stmts) {
    place(s.span);
    for (const Attribute& a : s.attributes) place(a.span);
    if (const auto* fn = std::get_if<Fn>(&s.node)) place(fn->signature);
    if (const auto* let = std::get_if<Let>(&s.node)) {
      for (const Slot& slot : let->slots) place(slot.span);
    }
    out += s.doc + " ";
  }
  std::vector<uint32_t> marked;
  for (ExprId id : ast.parenthesised) marked.push_back(id.v);
  std::sort(marked.begin(), marked.end());
  for (uint32_t id : marked) out += std::to_string(id) + " ";
  return out;
}

// A module that was parsed alone and then put into a program is what parsing it there gives.
TEST(Graft, EqualsParsingInPlace) {
  const std::string first =
      "let before[i in 0..3] = (i as f32) * 2.0;\nfn f(x: f32) -> f32 { x }\n";
  const std::string second = R"(
use std::math::{erf, abs as a};
use std::nn::*;
mod other;
/// A record.
pub type Net = { w: [f32; n, m], b: ([f32; n], fn(f32) -> f32) };
pub const n: i64 = 4;
#[checkpoint(n)]
let h[0, ..b] = 0.0;
let h[t in 1..n + 1, ..b]: f32 = (h[t - 1, ..b] + 1.0) * 2.0 until h[t, ..b] > 3.0;
let (p, q) = (1.0, { w: 2.0, ..r });
let { u, v } = { u: 1.0, v };
let x: [f32; n, ?, ..b];
pub fn softmax[..k, j](x: [f32; j], rate = 0.1) -> [f32; j] {
  let e[j] = exp(x[j]) where x[j] > 0.0, y = x[j] else 0.0;
  if e[0] > 1.0 { e } else if !true { -e } else { match e[0] { 0 | 1 => e, z @ 2..=3 if z > 2 => e, _ => e } }
}
@fn softmax(x) { @x / @rate }
let c = [i * j | i in 0..n, j in 0..=i, i % 2 == 0];
let s = sum[(i, j) in 0..3, ..b](A[i, 2 * j, ..b] as f64) + t.0.w + x.len;
print("a {s:.3f} b {softmax[k in 0..2](x, rate = 1.0)}");
let g = @loss / @(A);
let l = |a: f32, b| a + b;
test "one" { assert(1 == 1); }
let = 3;
)";
  auto with = [&](bool grafted) {
    SourceMap sources;
    Diagnostics diags;
    FileId one = sources.add("one.ein", first), two = sources.add("two.ein", second);
    Ast ast;
    parse_into(ast, one, sources, diags);
    if (!grafted) return whole(ast, parse_into(ast, two, sources, diags));
    SourceMap alone;
    Diagnostics other;
    Ast tree = parse(alone.add("two.ein", second), alone, other);
    EXPECT_FALSE(other.all().empty());  // the last `let`: broken statements are moved too
    return whole(ast, graft(ast, tree, two));
  };
  EXPECT_EQ(with(true), with(false));
}

}  // namespace
}  // namespace ein::ast
