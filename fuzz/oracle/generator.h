// The generator's state and what its files share. A statement method draws one kind of statement
// and adds it to the program; an expression method returns a tree over the indices in scope.
#pragma once

#include <functional>
#include <map>
#include <random>

#include "build.h"
#include "generate.h"

namespace oracle {

struct Index {
  int var;
  int extent;  // it runs within 0..extent
};

// What surrounds an expression.
struct Scope {
  std::vector<Index> indices;
  std::vector<int> vars;    // all variables, those without an extent too
  std::vector<int> blocks;  // of definitions made here
  void bind(const Index& i) {
    indices.push_back(i);
    vars.push_back(i.var);
  }
};

struct Value {
  int def;
  std::vector<int> extents;
};

struct Gather {
  int def, over, target;
  bool inside;  // every value is a valid address; otherwise it must be guarded
};

class Generator {
 public:
  Generator(uint64_t seed, const std::set<std::string>& without) : without_(without), rng_(seed) {}
  Program run();

 private:
  // ---- drawing (generate.cc) -------------------------------------------------------------------
  int pick(int low, int high) {  // inclusive
    return low + static_cast<int>((rng_() >> 16) % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T>
  const T& any(const std::vector<T>& v) {
    return v[static_cast<size_t>(pick(0, static_cast<int>(v.size()) - 1))];
  }
  double datum();  // representable in the element type
  Node constant() { return literal(coarse()); }
  double coarse();
  bool allowed(const char* name) const { return !without_.count(name); }
  void drew(const char* name) { p_.classes.push_back(name); }

  // ---- names and definitions -------------------------------------------------------------------
  std::string fresh(const char* base) { return base + std::to_string(counter_++); }
  int new_var(const char* base) {
    p_.vars.push_back(fresh(base));
    return static_cast<int>(p_.vars.size()) - 1;
  }
  Index new_index(const char* base, int extent) { return {new_var(base), extent}; }
  // Another variable of the same name: clauses of a family name its coordinates alike.
  Index again(const Index& i) {
    p_.vars.push_back(p_.vars[static_cast<size_t>(i.var)]);
    return {static_cast<int>(p_.vars.size()) - 1, i.extent};
  }
  int new_extent(int64_t size) {
    p_.extents.push_back({"", size});
    return static_cast<int>(p_.extents.size()) - 1;
  }
  int64_t size(int extent) const { return p_.extents[static_cast<size_t>(extent)].size; }
  int some_extent() { return any(named_); }
  int define(const std::string& name, Type type, const std::vector<int>& extents);
  int local(const Scope& s, const std::string& name, const std::vector<int>& extents);
  Clause& clause(int def, const std::vector<Slot>& slots, Node body);
  Slot slot(const Index& i) { return {i.var, integer(0), extent_node(i.extent), false}; }
  Slot at(int64_t k) { return {-1, integer(k), {}, false}; }
  Slot ranged(int var, Node low, Node high) {
    return {var, std::move(low), std::move(high), false};
  }
  int input(const std::string& name, Type type, const std::vector<int>& extents,
            const std::function<double()>& cell);
  void add_value(int def, const std::vector<int>& extents) { floats_.push_back({def, extents}); }
  Scope scope_of(const std::vector<Index>& indices) {
    Scope s;
    for (const Index& i : indices) s.bind(i);
    return s;
  }
  std::vector<Index> left(int least, int most);
  std::vector<Slot> slots_of(const std::vector<Index>& indices) {
    std::vector<Slot> out;
    for (const Index& i : indices) out.push_back(slot(i));
    return out;
  }
  std::vector<int> extents_of(const std::vector<Index>& indices) {
    std::vector<int> out;
    for (const Index& i : indices) out.push_back(i.extent);
    return out;
  }
  Node cell(int def, const std::vector<Index>& indices) {
    std::vector<Node> at;
    for (const Index& i : indices) at.push_back(variable(i.var));
    return oracle::read(def, at);
  }

  // ---- expressions (expressions.cc) ------------------------------------------------------------
  Node expr(const Scope& s, int depth);
  Node leaf(const Scope& s);
  Node certain(const Scope& s);
  Node smooth(const Scope& s, int depth);  // bounded, for states
  const Index* index_over(const Scope& s, int extent);
  bool read_some(const Scope& s, Node& out);
  Node grounded(const Scope& s, const Index& i);
  Node condition(const Scope& s);
  Node reduction(const Scope& s, int depth);
  Node reduction_along(const Scope& s, int depth, int extent, const Index* outer);
  Node guarded(const Scope& s, int depth);
  Node neighbour(const Scope& s, int depth);
  Node gathered(const Scope& s, int depth);
  Node window(const Scope& s, int depth);
  Node matched(const Scope& s, int depth);
  Node block(const Scope& s, int depth);
  Node recursive(const Scope& s, int depth);
  Node bounded(Node n) { return call(chance(50) ? Function::Tanh : Function::Sin, std::move(n)); }

  // ---- statements (statements.cc, steps.cc) ----------------------------------------------------
  void inputs();
  void statement();
  void pointwise();
  void contraction();
  void whole_value();
  void dependent();
  void triangular();
  void selection();
  void clauses();
  void rows();
  void coordinate_call();
  void scalar_call();
  std::string arguments_of(std::vector<std::pair<std::string, std::string>> given);
  void ties();
  void empty();
  void huge();
  void recurrence();
  void sum_of_steps(int steps, int extent, const std::vector<Index>& rest);
  void history();
  void tree();
  void grid();
  void coupled();
  Node objective(const Scope& s, const Value& w);
  void training();
  void meta();
  void constant_local();
  void penalty();
  void loss();
  void requests();
  void second_order(int64_t budget, const std::map<int, int>& gradients);
  int64_t cells(int def) const;
  std::vector<Index> indices_of(const Value& v, const char* base);

  std::set<std::string> without_;
  std::mt19937_64 rng_;
  Program p_;
  int counter_ = 0;
  std::vector<int> named_;     // extents with names
  std::vector<Value> floats_;  // what expressions may read
  std::vector<Value> coarse_;  // inputs with ties and zeros
  std::vector<int> by_;        // inputs that derivatives are taken by
  std::vector<Gather> gathers_;
  std::vector<std::pair<int, int>> masks_;
  int loss_ = -1;
};

}  // namespace oracle
