// Diagnostics: the sink, the suggestions, and the three renderings.
#include "base/diag.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/render.h"

namespace ein {
namespace {

struct Sources {
  SourceMap map;
  FileId file;
  explicit Sources(std::string text, std::string name = "a.ein")
      : file(map.add(std::move(name), std::move(text))) {}

  // The n-th occurrence (from 0) of a piece of the text.
  Span at(const std::string& piece, int n = 0) const {
    size_t from = map.text(file).find(piece);
    while (n-- > 0) from = map.text(file).find(piece, from + 1);
    auto begin = static_cast<uint32_t>(from);
    return {file, begin, begin + static_cast<uint32_t>(piece.size())};
  }
};

TEST(Codes, TableMatchesTheEnum) {
  const auto& codes = all_codes();
  ASSERT_FALSE(codes.empty());
  for (const CodeInfo& code : codes) {
    EXPECT_EQ(&info(code.code), &code);
    EXPECT_EQ(code.name[0] == 'E', code.severity == Severity::Error) << code.name;
    EXPECT_EQ(std::string(code.slug).find('_'), std::string::npos) << code.slug;
  }
  EXPECT_STREQ(info(Code::E0301).name, "E0301");
  EXPECT_STREQ(info(Code::E0301).slug, "extent-conflict");
}

TEST(Codes, AreInOrderAndUnique) {
  const auto& codes = all_codes();
  for (size_t i = 1; i < codes.size(); ++i) {
    EXPECT_LT(std::string(codes[i - 1].name), std::string(codes[i].name));
  }
}

TEST(Diagnostics, CountErrorsButNotWarningsAndSortByPlace) {
  Sources s("first second");
  Diagnostics diags;
  diags.error(Code::E0201, "late").primary(s.at("second"));
  diags.warning(Code::W0302, "early").primary(s.at("first"));
  diags.error(Code::E0801, "nowhere");
  EXPECT_EQ(diags.errors(), 2u);
  auto sorted = diags.sorted();
  ASSERT_EQ(sorted.size(), 3u);
  EXPECT_EQ(sorted[0]->message, "early");
  EXPECT_EQ(sorted[1]->message, "late");
  EXPECT_EQ(sorted[2]->message, "nowhere");
}

TEST(Diagnostics, PrimaryLabelComesFirst) {
  Sources s("a b");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0201, "m").label(s.at("a"), "x").primary(s.at("b"), "y");
  EXPECT_TRUE(d.labels[0].primary);
  EXPECT_EQ(d.labels[0].text, "y");
}

TEST(Check, NamesTheFileWithinTheProject) {
  EXPECT_EQ(within_project("/home/somebody/src/einlang/src/core/eval.cc"), "src/core/eval.cc");
  EXPECT_EQ(within_project("src/core/eval.cc"), "src/core/eval.cc");
  try {
    internal_error("/build/here/src/core/eval.cc", 7, "a slot is not bound");
  } catch (const InternalError& e) {
    EXPECT_STREQ(e.what(), "src/core/eval.cc:7: a slot is not bound");
  }
}

TEST(DidYouMean, FindsNearNamesOnly) {
  EXPECT_EQ(did_you_mean("softmx", {"sum", "softmax", "relu"}), "softmax");
  EXPECT_EQ(did_you_mean("clas", {"class", "batch"}), "class");
  EXPECT_EQ(did_you_mean("lgoits", {"logits"}), "logits");  // a swap counts once
  EXPECT_EQ(did_you_mean("hidden", {"batch", "class"}), "");
  EXPECT_EQ(did_you_mean("i", {"j", "k"}), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
  EXPECT_EQ(did_you_mean("b1", {"w1", "b2"}), "b2");  // in whichever order they come
  EXPECT_EQ(did_you_mean("b1", {"b2", "w1"}), "b2");
}

TEST(RenderHuman, TwoLabelsOnOneLine) {
  Sources s("let A = 1;\n\nlet C[i, j] = sum[k](A[i, k] * B[k, j]);\n", "matmul.ein");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0301, "index `k` has two different extents")
                      .primary(s.at("B[k, j]"), "here `k` is coordinate 0 of `B`: 0..4")
                      .label(s.at("A[i, k]"), "here `k` is coordinate 1 of `A`: 0..3")
                      .note("`A` is declared above")
                      .help("give both the same extent");
  EXPECT_EQ(render_human(d, s.map),
            "error[E0301]: index `k` has two different extents\n"
            " --> matmul.ein:3:32\n"
            "  |\n"
            "3 | let C[i, j] = sum[k](A[i, k] * B[k, j]);\n"
            "  |                      -------   ^^^^^^^ here `k` is coordinate 0 of `B`: 0..4\n"
            "  |                      |\n"
            "  |                      here `k` is coordinate 1 of `A`: 0..3\n"
            "  |\n"
            "  = note: `A` is declared above\n"
            "  = help: give both the same extent\n");
}

TEST(RenderHuman, ThreeLabelsHangInOrder) {
  Sources s("let y = a + b + c;\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0404, "shapes differ")
                      .primary(s.at("b"), "second")
                      .label(s.at("a +"), "first and more")
                      .label(s.at("c"), "third");
  EXPECT_EQ(render_human(d, s.map),
            "error[E0404]: shapes differ\n"
            " --> a.ein:1:13\n"
            "  |\n"
            "1 | let y = a + b + c;\n"
            "  |         --- ^   - third\n"
            "  |         |   |\n"
            "  |         |   second\n"
            "  |         first and more\n");
}

TEST(RenderHuman, LabelsOnDistantLinesAreElided) {
  Sources s("let a = 1;\n\n\n\nlet b = 2;\nlet x = 0;\nlet a = 3;\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0202, "`a` is defined twice")
                      .primary(s.at("a", 1), "again here")
                      .label(s.at("a"), "first here")
                      .label(s.at("b"), "unrelated");
  EXPECT_EQ(render_human(d, s.map),
            "error[E0202]: `a` is defined twice\n"
            " --> a.ein:7:5\n"
            "  |\n"
            "1 | let a = 1;\n"
            "  |     - first here\n"
            "...\n"
            "5 | let b = 2;\n"
            "  |     - unrelated\n"
            "6 | let x = 0;\n"
            "7 | let a = 3;\n"
            "  |     ^ again here\n");
}

TEST(RenderHuman, SpanOverSeveralLines) {
  Sources s("let x = f(\n    a,\n    b\n);\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0205, "wrong number of arguments")
                      .primary(s.at("f(\n    a,\n    b\n)"), "this call has two")
                      .label(s.at("a,"), "one");
  EXPECT_EQ(render_human(d, s.map),
            "error[E0205]: wrong number of arguments\n"
            " --> a.ein:1:9\n"
            "  |\n"
            "1 |   let x = f(\n"
            "  |  _________^\n"
            "2 | |     a,\n"
            "  | |     -- one\n"
            "3 | |     b\n"
            "4 | | );\n"
            "  | |_^ this call has two\n");
}

TEST(RenderHuman, ColumnsCountCharactersNotBytes) {
  Sources s("let \xCE\xB1 = \xCE\xB2\xCE\xB3;\n\tlet z = w;\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0201, "unknown").primary(s.at("\xCE\xB2\xCE\xB3"), "here");
  EXPECT_EQ(render_human(d, s.map),
            "error[E0201]: unknown\n"
            " --> a.ein:1:9\n"
            "  |\n"
            "1 | let \xCE\xB1 = \xCE\xB2\xCE\xB3;\n"
            "  |         ^^ here\n");
  Diagnostic& tab = diags.error(Code::E0201, "unknown").primary(s.at("w"), "here");
  EXPECT_EQ(render_human(tab, s.map),
            "error[E0201]: unknown\n"
            " --> a.ein:2:10\n"
            "  |\n"
            "2 |     let z = w;\n"
            "  |             ^ here\n");
}

TEST(RenderHuman, WideCharactersTakeTwoColumns) {
  Sources s("print(\"\xE6\xBC\xA2\xE5\xAD\x97\", q);\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0201, "unknown").primary(s.at("q"));
  EXPECT_NE(render_human(d, s.map).find("\n  |               ^\n"), std::string::npos);
}

TEST(RenderHuman, EndOfFileAndInvalidBytesDoNotDisturb) {
  Sources s("let \xFF\x01 = ");
  Diagnostics diags;
  auto end = static_cast<uint32_t>(s.map.text(s.file).size());
  Diagnostic& d = diags.error(Code::E0101, "expected an expression").primary({s.file, end, end});
  EXPECT_EQ(render_human(d, s.map),
            "error[E0101]: expected an expression\n"
            " --> a.ein:1:10\n"
            "  |\n"
            "1 | let \xEF\xBF\xBD\xEF\xBF\xBD =\n"
            "  |          ^\n");
}

TEST(RenderHuman, TwoFiles) {
  Sources s("use m::f;\n");
  FileId other = s.map.add("m.ein", "fn f() { 1 }\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0201, "`f` is private")
                      .primary(s.at("f"), "imported here")
                      .label({other, 3, 4}, "defined here");
  EXPECT_EQ(render_human(d, s.map),
            "error[E0201]: `f` is private\n"
            " --> a.ein:1:8\n"
            "  |\n"
            "1 | use m::f;\n"
            "  |        ^ imported here\n"
            " ::: m.ein:1:4\n"
            "  |\n"
            "1 | fn f() { 1 }\n"
            "  |    - defined here\n");
}

TEST(RenderHuman, FixShowsTheNewText) {
  Sources s("let y = @f(x) / @x;\n");
  Diagnostics diags;
  Span call = s.at("f(x)");
  Diagnostic& d =
      diags.error(Code::E0110, "`@` takes a name")
          .primary(call)
          .fix({"put the call in parentheses",
                {{{s.file, call.begin, call.begin}, "("}, {{s.file, call.end, call.end}, ")"}}});
  EXPECT_EQ(render_human(d, s.map),
            "error[E0110]: `@` takes a name\n"
            " --> a.ein:1:10\n"
            "  |\n"
            "1 | let y = @f(x) / @x;\n"
            "  |          ^^^^\n"
            "fix: put the call in parentheses\n"
            "  |\n"
            "1 | let y = @(f(x)) / @x;\n"
            "  |          +    +\n");
}

TEST(RenderHuman, ColoursOnlyWhenAsked) {
  Sources s("x\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0201, "unknown name `x`").primary(s.at("x"), "here");
  EXPECT_EQ(render_human(d, s.map, false).find('\x1b'), std::string::npos);
  std::string colored = render_human(d, s.map, true);
  EXPECT_NE(colored.find("\x1b[1;31merror[E0201]\x1b[0m"), std::string::npos);
  EXPECT_NE(colored.find("\x1b[1;31m^"), std::string::npos);
}

TEST(RenderShort, OneLine) {
  Sources s("a\nbb\n");
  Diagnostics diags;
  Diagnostic& d = diags.warning(Code::W0302, "`x[0]` is never read").primary(s.at("bb"));
  EXPECT_EQ(render_short(d, s.map), "a.ein:2:1: warning[W0302]: `x[0]` is never read\n");
  EXPECT_EQ(render_short(diags.error(Code::E0801, "input `x` is missing"), s.map),
            "error[E0801]: input `x` is missing\n");
}

TEST(RenderJson, HasEveryField) {
  Sources s("let x = y;\n");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0201, "unknown name `y`")
                      .primary(s.at("y"), "here")
                      .label(s.at("x"), "while defining `x`")
                      .note("a note")
                      .help("define it")
                      .fix({"write `x`", {{s.at("y"), "x"}}, false});
  auto j = nlohmann::json::parse(render_json(d, s.map));
  EXPECT_EQ(j["code"], "E0201");
  EXPECT_EQ(j["severity"], "error");
  EXPECT_EQ(j["file"], "a.ein");
  EXPECT_EQ(j["labels"][0]["start"], 8);
  EXPECT_EQ(j["labels"][0]["end"], 9);
  EXPECT_EQ(j["labels"][0]["line"], 1);
  EXPECT_EQ(j["labels"][0]["col"], 9);
  EXPECT_EQ(j["labels"][0]["primary"], true);
  EXPECT_EQ(j["labels"][1]["text"], "while defining `x`");
  EXPECT_EQ(j["notes"][0], "a note");
  EXPECT_EQ(j["help"], "define it");
  EXPECT_EQ(j["fixes"][0]["edits"][0]["replacement"], "x");
  EXPECT_EQ(j["fixes"][0]["safe"], false);
  EXPECT_EQ(j["rendered"], render_human(d, s.map));
}

TEST(RenderJson, SurvivesBytesThatAreNotUtf8) {
  Sources s("\xFF\xFE");
  Diagnostics diags;
  Diagnostic& d = diags.error(Code::E0102, "bad \xFF").primary({s.file, 0, 1});
  EXPECT_NO_THROW(EXPECT_FALSE(nlohmann::json::parse(render_json(d, s.map)).empty()));
}

TEST(Render, ShowsAtMostTwentyErrorsAndCounts) {
  Sources s("x");
  Diagnostics diags;
  for (int i = 0; i < 25; ++i) diags.error(Code::E0201, "unknown").primary(s.at("x"));
  diags.warning(Code::W0302, "unread").primary(s.at("x"));
  RenderOptions options;
  options.format = ErrorFormat::Short;
  std::string text = render(diags, s.map, options);
  size_t shown = 0;
  for (size_t at = text.find("error["); at != std::string::npos; at = text.find("error[", at + 1))
    ++shown;
  EXPECT_EQ(shown, 20u);
  EXPECT_NE(text.find("5 more errors not shown; 25 errors, 1 warning\n"), std::string::npos);
  EXPECT_EQ(render(Diagnostics{}, s.map, options), "");
}

}  // namespace
}  // namespace ein
