// Private: the walk behind `bind`. Names are declared by frame, as in sema/names/names.h.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "ide/bindings.h"

namespace ein::ide {

using Names = std::map<Symbol, uint32_t>;

struct Frame {
  Frame* up = nullptr;
  bool function = false;  // indices further out belong to the caller
  bool scope = false;     // names in types are declared here
  // Coordinates of one name and number meet: the number of the file or the function.
  uint32_t family = 0;
  size_t region = 0;
  Names indices, values, functions, modules, types, extents, packs;
  Names glob_values, glob_functions, glob_types;  // what `use m::*` imports
  std::map<Symbol, size_t> module_of;             // the name of a module → its number
};

// The names that a call binds in its brackets, kept for gates outside of the call (decisions.md, 16
// and 17).
struct Brackets {
  Names names;
  size_t up;  // the call around it, or npos
  static constexpr size_t npos = static_cast<size_t>(-1);
};

struct ModuleFrame {
  Frame frame;
  Names values, functions, types;  // what it exports
};

// The name, if the expression is a name alone; otherwise null.
const ast::Name* lone(const ast::Ast& ast, ast::ExprId e);
Frame nested(Frame& f, size_t region);

struct Binder {
  const sema::Program& program;
  const SourceMap& sources;
  const ast::Ast& ast;
  Bindings out = {};
  std::deque<ModuleFrame> modules = {};
  // → the entity that began the group
  using Groups = std::map<std::pair<uint32_t, Symbol>, uint32_t>;
  Groups groups = {}, pack_groups = {};
  // Values that name an extent, with the coordinates of that name: `let n: i32; let x: [f32; n];`.
  std::set<std::pair<uint32_t, std::pair<uint32_t, Symbol>>> dimensions = {};
  std::map<ast::StmtId, std::vector<uint32_t>> params = {};  // of functions and rules
  std::map<ast::StmtId, uint32_t> families_of = {};          // functions and their rules
  std::map<Symbol, uint32_t> fields = {};
  std::map<Symbol, uint32_t> builtins = {};
  std::vector<Brackets> brackets = {};  // of the definition being walked, in order
  size_t around = Brackets::npos;       // the call whose arguments are being walked
  uint32_t families = 0;
  bool in_result = false;  // in a result type
  bool top = false;        // at the top level of a file

  // -- entities and occurrences
  uint32_t entity(Kind kind, ast::Name name, ast::StmtId stmt = {});
  uint32_t along(Frame& f, Kind kind, ast::Name name);  // an entity that shares its group by name
  void occurs(Span span, uint32_t id, bool defines = false);
  uint32_t declare(Frame& f, Names& names, Kind kind, ast::Name name, ast::StmtId stmt = {});
  void define(Frame& f, Names& names, uint32_t id);
  size_t region(Span span);
  // The function that was just bound to this name, whether it was used or defined here; or null.
  const Entity* function_just_used(Span name) const;
  const std::vector<uint32_t>& params_of(ast::StmtId fn);

  // -- lookup
  const uint32_t* find_value(Frame& f, Symbol name, bool skip_indices);
  const uint32_t* find_extent(Frame& f, Symbol name);
  const uint32_t* find_index(Frame& f, Symbol name);
  bool value_exists(Frame& f, Symbol name);
  const uint32_t* find(Frame& f, Symbol name, Names Frame::*own, Names Frame::*glob);
  bool use_value(Frame& f, ast::Name name, bool skip_indices);
  bool use_function(Frame& f, ast::Name name);
  void use_coordinate(Frame& f, ast::Name name);
  void use_pack(Frame& f, ast::Name name);
  void use_field(ast::Name name, bool defines);
  std::optional<size_t> module_named(Frame& f, const std::vector<ast::Name>& parts, size_t count,
                                     bool mark);
  void use_path(Frame& f, const std::vector<ast::Name>& parts);

  // -- statements (binder.cc), files (binder_modules.cc)
  void module(size_t number);
  void import(Frame& f, ast::StmtId id, ModuleFrame* exports);
  void bring(Frame& f, size_t from, ast::Name name, ast::Name as, bool item, bool pub,
             ModuleFrame* exports);
  void declare_all(Frame& f, const std::vector<ast::StmtId>& stmts, ModuleFrame* exports);
  void statement(Frame& f, ast::StmtId id);
  void let(Frame& f, const ast::Let& l, Span span);
  void function(Frame& f, const ast::Fn& fn, ast::StmtId id);
  void block(Frame& f, const ast::Block& b, Span span, ast::ExprId until = {});
  void type_uses(size_t number);
  void join_dimensions();

  // -- expressions and types (binder_expr.cc), brackets and gates (binder_brackets.cc)
  void expr(Frame& f, ast::ExprId id);
  void slot(Frame& f, ast::ExprId id);
  void index(Frame& f, const ast::Index& n);
  void call(Frame& f, const ast::Call& c, Span span);
  bool shape_of_name(Frame& f, const ast::Call& c);
  void argument_names(const ast::Call& c);
  void comprehension(Frame& f, const ast::Comprehension& c, Span span);
  void match_arms(Frame& f, const ast::Match& n);
  void pattern(Frame& f, ast::ExprId id);
  void where(Frame& f, const ast::Where& n, Span span);
  void place(Frame& f, const ast::Where& n, size_t first, Frame& gate);
  void operand(Frame& f, ast::ExprId id);
  void type(Frame& f, ast::TypeId id);
  void dim(Frame& f, ast::ExprId id);
  bool fixes_extent(uint32_t entity) const;
  bool is_function(Frame& f, uint32_t entity);
};

}  // namespace ein::ide
