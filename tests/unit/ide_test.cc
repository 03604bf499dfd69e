// The engine behind editors: what scopes alone say of names is what elaboration says.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ide/features.h"
#include "ide/position.h"
#include "sema/builtins.h"

namespace ein::ide {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> read(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string place(const Analysis& a, Span span) {
  LineCol at = a.sources.position(span.file, span.begin);
  return a.sources.name(span.file) + ":" + std::to_string(at.line) + ":" + std::to_string(at.col);
}

// How many names sema resolved in the program; each must be bound to the same definition.
size_t compare(const std::string& path) {
  auto a = analyse(path, *read(path), Depth::Full, {read});
  size_t compared = 0;
  for (const Occurrence& o : a->bindings.occurrences) {
    auto it = a->meanings.definitions.find(sema::Meanings::place(o.span));
    if (it == a->meanings.definitions.end()) continue;
    ++compared;
    const Entity& e = entity_of(*a, o);
    // A coordinate may be met first in brackets, and an extent in any of the types that name it: each
    // of these defines it, as long as they are renamed together.
    const Occurrence* other = occurrence_at(a->bindings, it->second.file, it->second.begin);
    bool together = other && other->span == it->second && entity_of(*a, *other).group == e.group;
    bool meets = together && (e.kind == Kind::Extent || e.kind == Kind::Coordinate);
    EXPECT_TRUE(meets || (it->second.file == e.span.file && it->second.begin == e.span.begin))
        << place(*a, o.span) << ": `" << a->sources.text(o.span) << "` is defined at "
        << place(*a, it->second) << ", not at " << (e.span.valid() ? place(*a, e.span) : "none");
  }
  // And what sema resolves is a name for us too.
  for (const auto& [at, definition] : a->meanings.definitions) {
    Span span{FileId(static_cast<uint32_t>(at >> 32)), static_cast<uint32_t>(at), 0};
    const Occurrence* o = occurrence_at(a->bindings, span.file, span.begin);
    EXPECT_TRUE(o && o->span.begin == span.begin) << place(*a, span) << " is bound to nothing";
  }
  return compared;
}

TEST(Ide, ScopesSayWhatElaborationSays) {
  size_t compared = 0, programs = 0;
  for (const char* folder : {"tests/run", "tests/grad", "examples", "tests/ide"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(EIN_SOURCE_DIR) + "/" + folder)) {
      if (entry.path().extension() != ".ein") continue;
      compared += compare(entry.path().string());
      ++programs;
    }
  }
  EXPECT_GT(programs, 100u);
  EXPECT_GT(compared, 10'000u);
}

TEST(Ide, EveryBuiltinHasALine) {
  for (const sema::Builtin& b : sema::builtins()) {
    EXPECT_TRUE(builtin_doc(b.spelling)) << b.spelling;
  }
}

TEST(Ide, NothingIsNotedWhenNobodyAsks) {
  auto a = analyse("a.ein", "let x: f32;\nlet y = x + 1.0;\n", Depth::Names, {});
  EXPECT_TRUE(a->meanings.values.empty());
}

TEST(Ide, PositionsCountAsEditorsDo) {
  std::string text = "a\U0001D6FCb\r\nc\rd\n\xFFz";
  Lines lines(text);
  EXPECT_EQ(lines.position(5, Units::Utf16), (Position{0, 3}));
  EXPECT_EQ(lines.position(5, Units::Utf8), (Position{0, 5}));
  EXPECT_EQ(lines.offset({0, 3}, Units::Utf16), 5u);
  EXPECT_EQ(lines.offset({0, 2}, Units::Utf16), 1u);  // inside a pair: before it
  EXPECT_EQ(lines.offset({0, 99}, Units::Utf16), 6u);
  EXPECT_EQ(lines.position(8, Units::Utf16), (Position{1, 0}));
  EXPECT_EQ(lines.position(10, Units::Utf16), (Position{2, 0}));
  EXPECT_EQ(lines.offset({3, 1}, Units::Utf16), 13u);
  EXPECT_EQ(lines.offset({9, 0}, Units::Utf16), text.size());
  EXPECT_EQ(valid_utf8("a\xFF\xE2\x82"), "a\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(whole_pairs(R"("\ud83d\ude00 \ud83d \ude00 \\ud83d \u00e9")"),
            R"("\ud83d\ude00 \ufffd \ufffd \\ud83d \u00e9")");
}

TEST(Ide, ACancelledAnalysisIsNone) {
  EXPECT_EQ(analyse("a.ein", "let x = 1.0;\n", Depth::Full, {}, [] { return true; }), nullptr);
}

}  // namespace
}  // namespace ein::ide
