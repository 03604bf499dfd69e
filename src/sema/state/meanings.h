// What elaboration finds out about the names of a program, for tools that show it: where a name is
// defined, which values it stands for, how far an index runs. Written while sema resolves, only
// when asked to (Sema::meanings), and put into words when elaboration ends, because extents are not
// known before. A body is elaborated once per call, so a place may have several values.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sema/state/value.h"

namespace ein::sema {

struct Sema;

// A value as it was at one place.
struct Shown {
  struct Coordinate {
    std::string name, extent;  // the name is empty where the coordinate has none
    friend bool operator==(const Coordinate&, const Coordinate&) = default;
  };
  std::string type;      // "f32", "{ w, b }", "str"
  bool literal = false;  // a number that adapts to the type it meets
  std::vector<Coordinate> coords;
  std::vector<std::string> fields;  // of a record
  std::vector<Shown> items;         // of a record or a tuple
  friend bool operator==(const Shown&, const Shown&) = default;
};
struct ShownRange {
  std::string lo, hi;
  bool inferred = false;
  friend bool operator==(const ShownRange&, const ShownRange&) = default;
};

struct Meanings {
  // Places are those of names and of trees: file and first byte.
  using Place = uint64_t;
  static Place place(Span span) { return uint64_t{span.file.v} << 32 | span.begin; }

  bool uses = true;  // false: of names only what stands where they are defined

  std::unordered_map<Place, Span> definitions;                  // by use: the name that defines it
  std::unordered_map<Place, std::vector<Shown>> values;         // of names, at uses and definitions
  std::unordered_map<TreeId, std::vector<Shown>> trees;         // of calls, fields and requests
  std::unordered_map<Place, std::vector<ShownRange>> ranges;    // of indices, by definition
  std::unordered_map<Place, std::vector<std::string>> extents;  // of names in types, by definition

  // Until elaboration ends: the same, not yet in words.
  std::unordered_map<Place, std::vector<Value>> seen;
  std::unordered_map<TreeId, std::vector<Value>> seen_trees;
};

// Each does nothing unless somebody asked, and nothing about names that the parser made up.
void note_definition(Sema& s, const ast::Name& use, Span definition);
void note_value(Sema& s, const ast::Name& name, const Value& v);    // at a use
void note_defined(Sema& s, const ast::Name& name, const Value& v);  // at the definition
void note_tree(Sema& s, TreeId tree, const Value& v);

}  // namespace ein::sema
