// Definitions and their clauses while they are elaborated, and the place where that happens.
#pragma once

#include <set>

#include "sema/state/value.h"

namespace ein::sema {

struct Definition;
struct Ending;
struct Scope;
struct Site;

// A coordinate of the clause being elaborated, its enclosing clauses' included.
struct SiteSlot {
  Symbol name;
  core::Range range;  // of this clause
  CoreId extent;      // of the family
};

// A pack is a list of coordinates from the moment its rank is known; nothing after sema sees one.
struct PackCoord {
  Symbol name;    // generated, of its index here; it cannot occur in the source
  Symbol label;   // its name in the value it was taken from; invalid when it has none there
  CoreId extent;  // invalid for a pack of a statement, whose ranges are inferred
};
struct Pack {
  Symbol name;
  std::vector<PackCoord> coords;
  Span span;
};

// One slot of a left side.
struct Left {
  Index* index = nullptr;  // null for a literal
  Span span;
};

// A coordinate of the right side that a left index took over: it has that extent.
struct Hint {
  size_t left = 0;
  CoreId extent;
  Span span;
};

// One elaborated clause: every left slot and trailing coordinate is a slot of its body.
struct ClauseOut {
  bool bad = false;
  std::vector<core::Coord> coords;  // own coordinates (without the enclosing prefix)
  std::vector<core::Range> box;     // the same
  std::vector<Left> left;           // what was written on the left
  std::vector<Hint> hints;
  Value body;  // scalar
  CoreId gate;
  std::optional<Value> otherwise;
  Span span;
  Site* site = nullptr;
  std::vector<core::Clause> siblings;  // the other values of a tuple clause share its ranges
  // Of a clause whose value is a record: one for each leaf. `body` is then the record.
  std::vector<ClauseOut> leaves;
  // A clause of a recurrence with `until`: whether the steps have ended before this one, and the
  // left slot that runs the steps. Made at depth `ended_depth`.
  CoreId ended;
  uint32_t ended_depth = 0;
  size_t step = 0;
  CoreId until;  // the condition itself, in the clause that has it
};

// The `until` of a recurrence (definitions/until.cc). All definitions of the group share it.
struct Ending {
  Definition* owner = nullptr;  // one of its clauses has the condition
  ast::StmtId clause;
  size_t step = 0;  // which left slot of that clause runs the steps
  Symbol name;      // of its index
  bool downward = false;
  std::vector<size_t> named;      // further left slots that the condition depends on
  std::vector<core::Range> box;   // what that clause covers: the steps, then the named slots
  Definition* flag = nullptr;     // bool: has the condition held by this step?
  Definition* counter = nullptr;  // i32: how many steps ran by this one; made for `ran`
};

// Several clauses of one name in one scope.
struct Definition {
  enum class State : uint8_t { Todo, Busy, Header, Done, Bad };
  ast::Name name;
  std::vector<ast::StmtId> clauses;
  Scope* scope = nullptr;
  State state = State::Todo;
  int group = -1;  // definitions with the same number read each other
  bool recurrent = false;
  FamilyId family;
  std::vector<uint32_t> carries;  // slots of the enclosing clause: the first coordinates
  std::optional<Value> inlined;   // a local that is not a family
  CoreId constant;                // the i64 value, if it is an integer over literals and extents
  std::vector<CoreId> extents;    // placeholders of the slots' extents
  bool input = false;
  bool exported = false;  // `pub const`
  bool finishing = false;
  Ending* ending = nullptr;  // of its recurrence group; null: no clause has `until`
  std::vector<std::optional<ClauseOut>> outs;  // elaborated clauses, in source order
  // An array of records is a record of arrays: one definition for each leaf, in `leaves`, which
  // `shape` puts together. A leaf takes its clauses apart from those of `whole`.
  Definition* whole = nullptr;
  size_t leaf = 0;  // which one of `whole`
  std::vector<Definition*> leaves;
  Value shape;  // a record whose parts are empty values
  // What type_of found, and among how many clauses: each clause asks for it, and there may be many.
  struct WrittenType {
    ast::TypeId type;
    size_t clauses = 0;
  };
  mutable WrittenType written;
};

// The left side of a clause with its packs expanded.
struct LeftSlot {
  const ast::Slot* slot = nullptr;
  Symbol name;  // of the index; invalid for a literal
};
struct LeftSide {
  bool bad = false;
  std::vector<LeftSlot> slots;
  std::vector<Pack> packs;  // those that this statement itself brings
};

// An access as written. For labels, because a Core node is shared by all accesses that are equal.
struct Use {
  FamilyId family;
  std::vector<TreeId> at;
  std::vector<CoreId> indices;  // the same, elaborated
  Span span;
};

// An operand as written, for warnings about indices at the wrong coordinate (axes.cc).
struct AxisSlot {
  Symbol coordinate;       // the name of the coordinate; invalid when it has none
  CoreId extent;           // of the coordinate
  Index* own = nullptr;    // the index in scope that has this name
  Index* index = nullptr;  // the index in the slot; null when it holds anything else
  int64_t offset = 0;      // the constant that is added to it
  Span span;
};
struct AxisRead {
  Symbol base;
  std::vector<AxisSlot> slots;
  bool self = false;          // of a family that the statement defines
  std::vector<Symbol> names;  // of all coordinates of the operand
  Span span;
  ast::StmtId function;  // the one being inlined
};

// The clause being elaborated.
struct Site {
  Site* outer = nullptr;
  Definition* definition = nullptr;
  std::string name;             // prefix of generated names
  std::vector<SiteSlot> slots;  // slots 0 …
  uint64_t steps = 0;           // those that run the steps of a recurrence, a bit for each slot
  std::vector<Use> uses;
  std::vector<AxisRead> axes;
  std::vector<core::Clause> lifted;  // locals made into families, while a range in them is sought
  std::set<Symbol> reported;         // names already complained about
  Span span;                         // the left side
  Span statement;
  Span value;   // the right side, without its `where`
  TreeId tree;  // the same
};

}  // namespace ein::sema
