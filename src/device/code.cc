#include "device/code.h"

#include "base/match.h"
#include "loops/walk.h"

namespace ein::device {

using core::Op;
using loops::Block;
using loops::ExprId;
using loops::Program;
using loops::VarId;

namespace {

// Operations for which machine code may call the C library, at least for some arguments.
bool needs_library(Op op, DType from) {
  bool wide = from == DType::F64;
  switch (op) {
    case Op::Sin:  // for large arguments
    case Op::Cos:
    case Op::Tan:
    case Op::Normal: return true;
    case Op::Sinh:
    case Op::Cosh:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Atan2: return wide;
    case Op::Mod: return is_float(from);
    case Op::Pow: return !is_float(from);
    default: return false;
  }
}

}  // namespace

std::string not_on_device(const Program& p, ExprId e) {
  std::string why;
  loops::for_each_node(p, e, [&](const loops::Node& node) {
    const auto* n = std::get_if<loops::Apply>(&node);
    if (n && why.empty() && needs_library(n->op, p.exprs[n->args[0]].type)) {
      why = core::info(n->op).name;
    }
    if (std::holds_alternative<loops::Overflows>(node)) why = "checked integers";
  });
  return why;
}

std::string not_on_device(const Program& p, const Block& body, const std::set<VarId>& own) {
  std::string why;
  std::set<VarId> changeable = own;
  auto no = [&](const std::string& reason) {
    if (why.empty()) why = reason;
  };
  auto changes = [&](VarId v) {
    if (!changeable.contains(v)) no("a value that steps leave to each other");
  };
  loops::for_each_stmt(body, [&](const loops::Stmt& s) {
    loops::for_each_expr(s, [&](ExprId e) {
      if (std::string reason = not_on_device(p, e); !reason.empty()) no(reason);
    });
    match(
        s.node, [](const loops::Let&) {},
        [&](const loops::Declare& n) { changeable.insert(n.var); },
        [&](const loops::Assign& n) { changes(n.var); }, [](const loops::Store&) {},
        [](const loops::Update&) {},
        [&](const loops::Fold& n) {
          changes(n.acc);
          if (n.arg) changes(n.arg);
        },
        [](const loops::If&) {},
        [&](const loops::Loop& n) {
          for (VarId v : n.folds) changes(v);
        },
        [](const loops::Check&) {},
        [&](const loops::Contract& n) { no(n.factor < 0 ? "a product" : "a matrix function"); },
        [&](const loops::Invoke&) { no("a function that calls itself"); },
        [&](const loops::Fetch&) { no("rows of a file"); },
        [&](const loops::Launch&) { no("a launch"); }, [&](const loops::Barrier&) {},
        [&](const loops::Combine&) {}, [&](const loops::Touch&) { no("the host"); });
  });
  return why;
}

}  // namespace ein::device
