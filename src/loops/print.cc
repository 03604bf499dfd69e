// Loops as text, one statement per line, for --emit loops and for messages of verify.
#include <fmt/format.h>

#include "base/check.h"
#include "base/match.h"
#include "loops/loops.h"
#include "runtime/factor.h"

namespace ein::loops {
namespace {

struct Printer {
  const Program& p;
  std::string out;
  int depth = 0;

  std::string list(const std::vector<ExprId>& es) {
    std::string s;
    for (size_t i = 0; i < es.size(); ++i) s += (i ? ", " : "") + expr(es[i]);
    return s;
  }

  std::string apply(const Apply& a, DType type) {
    const core::OpInfo& o = core::info(a.op);
    if (a.op == core::Op::Cast) return fmt::format("{}({})", name_of(type), expr(a.args[0]));
    bool symbol = !std::isalpha(static_cast<unsigned char>(o.spelling[0]));
    if (symbol && a.args.size() == 2) {
      return fmt::format("({} {} {})", expr(a.args[0]), o.spelling, expr(a.args[1]));
    }
    if (a.op == core::Op::Select) return fmt::format("select({})", list(a.args));
    if (symbol) return fmt::format("{}{}", o.spelling, expr(a.args[0]));
    return fmt::format("{}({})", o.spelling, list(a.args));
  }

  std::string expr(ExprId id) {
    const Expr& e = p.exprs[id];
    return match(
        e.node, [&](const FloatConst& n) { return fmt::format("{}", n.value); },
        [&](const IntConst& n) {
          if (e.type == DType::Bool) return std::string(n.value ? "true" : "false");
          return fmt::format("{}", n.value);
        },
        [&](const Param& n) { return fmt::format("n{}", n.index); },
        [&](const Get& n) { return var(n.var); }, [&](const Apply& n) { return apply(n, e.type); },
        [&](const Overflows& n) {
          return fmt::format("overflows({} {})", core::info(n.op).name, list(n.args));
        },
        [&](const Load& n) { return fmt::format("{}[{}]", p.buffers[n.buffer].name, list(n.at)); });
  }

  std::string names(const std::vector<BufferId>& ids) {
    std::string s;
    for (BufferId b : ids) s += (s.empty() ? "" : ", ") + p.buffers[b].name;
    return s;
  }

  std::string var(VarId v) { return fmt::format("{}.{}", p.vars[v].name, v.v); }

  void line(const std::string& s) {
    out.append(2 * static_cast<size_t>(depth), ' ');
    out += s + "\n";
  }

  std::string index(const Contract::Index& i) {
    auto step = [&](ExprId e) { return e ? expr(e) : std::string("0"); };
    return fmt::format("({}: {}, {}, {})", expr(i.extent), step(i.a), step(i.b), step(i.out));
  }

  void contract(const Contract& c) {
    auto set = [&](const char* name, const std::vector<Contract::Index>& is) {
      std::string s = std::string(name) + "=";
      for (const auto& i : is) s += index(i);
      return s;
    };
    auto operand = [&](const Contract::Operand& o) {
      return fmt::format("{}[{}]", p.buffers[o.buffer].name, list(o.at));
    };
    std::string what = c.factor < 0 ? "contract" : ein::name_of(static_cast<Factor>(c.factor));
    if (c.operands != c.type) what += fmt::format(" {}", name_of(c.operands));
    line(fmt::format("{} = {}({}, {}; {} {} {} {})", operand(c.out), what, operand(c.a),
                     operand(c.b), set("batch", c.batch), set("m", c.m), set("n", c.n),
                     set("k", c.k)));
  }

  void loop(const Loop& s) {
    std::string axis = name_of(s.axis.kind);
    if (s.axis.width > 1) axis += fmt::format("({})", s.axis.width);
    std::string folds;
    for (VarId v : s.folds) folds += " folds " + var(v);
    if (s.leave) folds += fmt::format(" until {}", expr(s.leave));
    if (s.grain) folds += fmt::format(" shared by {}", expr(s.grain));
    if (s.team) folds += fmt::format(" by a team of {}", expr(s.team));
    line(fmt::format("{} {} in {}..{}{}{} {{", axis, var(s.var), expr(s.lo), expr(s.hi),
                     s.downward ? " downward" : "", folds));
    block(s.body);
    if (!s.state.empty()) {
      line("} leaves {");
      block(s.state);
    }
    line("}");
  }

  void stmt(const Stmt& s) {
    match(
        s.node, [&](const Let& n) { line(fmt::format("let {} = {}", var(n.var), expr(n.value))); },
        [&](const Declare& n) {
          line(fmt::format("var {}: {} = {}", var(n.var), name_of(p.vars[n.var].type),
                           expr(n.init)));
        },
        [&](const Assign& n) { line(fmt::format("{} = {}", var(n.var), expr(n.value))); },
        [&](const Store& n) {
          line(fmt::format("{}[{}] = {}", p.buffers[n.buffer].name, list(n.at), expr(n.value)));
        },
        [&](const Update& n) {
          line(fmt::format("{}[{}] += {}", p.buffers[n.buffer].name, list(n.at), expr(n.value)));
        },
        [&](const Fold& n) {
          std::string at = n.arg ? fmt::format(" at {} into {}", expr(n.index), var(n.arg)) : "";
          line(fmt::format("fold {} {} {}{}", core::name_of(n.op), var(n.acc), expr(n.value), at));
        },
        [&](const If& n) {
          line(fmt::format("if {} {{", expr(n.cond)));
          block(n.then);
          if (!n.otherwise.empty()) {
            line("} else {");
            block(n.otherwise);
          }
          line("}");
        },
        [&](const Loop& n) { loop(n); },
        [&](const Check& n) {
          line(fmt::format("check {} else stop {} ({})", expr(n.ok), n.site.v, list(n.values)));
        },
        [&](const Contract& n) { contract(n); },
        [&](const Invoke& n) {
          line(fmt::format("let {} = call {}({})", var(n.var), p.functions[n.function].name,
                           list(n.args)));
        },
        [&](const Fetch& n) {
          if (n.from.valid()) {
            line(fmt::format("move {} to {} at {}", p.buffers[n.from].name,
                             p.buffers[n.buffer].name, expr(n.first)));
          } else {
            line(fmt::format("fetch {} from {}", p.buffers[n.buffer].name, expr(n.first)));
          }
        },
        [&](const Launch& n) {
          line(fmt::format("launch {}, {} in 0..{}, {} threads{} {{", n.name, var(n.index),
                           expr(n.blocks), n.threads, n.warps ? " in warps" : ""));
          block(n.body);
          line("}");
        },
        [&](const Barrier& n) { line(fmt::format("barrier {}", name_of(n.scope))); },
        [&](const Combine& n) {
          line(fmt::format("combine {} {} {} over {}", core::name_of(n.op), var(n.acc),
                           p.buffers[n.parts].name, name_of(n.scope)));
        },
        [&](const Touch& n) {
          line(fmt::format("touch ({}) ({})", names(n.loads), names(n.stores)));
        });
  }

  void block(const Block& b) {
    ++depth;
    for (const Stmt& s : b) stmt(s);
    --depth;
  }
};

}  // namespace

const char* name_of(Axis::Kind kind) {
  switch (kind) {
    case Axis::Kind::Seq: return "seq";
    case Axis::Kind::Parallel: return "parallel";
    case Axis::Kind::Vector: return "vector";
    case Axis::Kind::Reduce: return "reduce";
    case Axis::Kind::Thread: return "block";
    case Axis::Kind::Lane: return "lane";
  }
  EIN_UNREACHABLE("axis kind");
}

const char* name_of(Buffer::Space space) {
  switch (space) {
    case Buffer::Space::Input: return "input";
    case Buffer::Space::Constant: return "constant";
    case Buffer::Space::Output: return "output";
    case Buffer::Space::Row: return "row";
    case Buffer::Space::Temp: return "temp";
    case Buffer::Space::Shared: return "shared";
    case Buffer::Space::Local: return "local";
  }
  EIN_UNREACHABLE("memory space");
}

const char* name_of(Scope scope) {
  switch (scope) {
    case Scope::Lane: return "lane";
    case Scope::Threads: return "block";
  }
  EIN_UNREACHABLE("scope");
}

std::string print(const Program& p) {
  Printer printer{p, {}};
  for (const Buffer& b : p.buffers) {
    printer.line(fmt::format("{} {}: {}, rank {}", name_of(b.space), b.name, name_of(b.dtype),
                             b.dims.size()));
  }
  for (const Function& f : p.functions) {
    std::string params;
    for (VarId v : f.params) params += (params.empty() ? "" : ", ") + printer.var(v);
    printer.line(fmt::format("function {}({}) {{", f.name, params));
    printer.block(f.body);
    printer.line(fmt::format("  return {}", printer.expr(f.result)));
    printer.line("}");
  }
  for (const Kernel& k : p.kernels) {
    printer.line(fmt::format("kernel {}{} {{", k.name, k.continues ? ", continued" : ""));
    printer.block(k.body);
    printer.line("}");
  }
  return printer.out;
}

}  // namespace ein::loops
