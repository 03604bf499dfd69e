#include "codegen/image.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "codegen/launches.h"
#include "codegen/memory.h"
#include "core/eval.h"
#include "core/eval_call.h"
#include "core/rewrite.h"
#include "loops/walk.h"

namespace ein::codegen {
namespace {

using Op = Formula::Op;

struct Unsupported {
  std::string why;
};

Op op_of(core::Op op) {
  switch (op) {
    case core::Op::Add: return Op::Add;
    case core::Op::Mul: return Op::Mul;
    case core::Op::Div: return Op::Div;
    case core::Op::Mod: return Op::Mod;
    case core::Op::Pow: return Op::Pow;
    case core::Op::Min: return Op::Min;
    case core::Op::Max: return Op::Max;
    case core::Op::Abs: return Op::Abs;
    case core::Op::Sign: return Op::Sign;
    case core::Op::Lt: return Op::Lt;
    case core::Op::Le: return Op::Le;
    case core::Op::Gt: return Op::Gt;
    case core::Op::Ge: return Op::Ge;
    case core::Op::Eq: return Op::Eq;
    case core::Op::Ne: return Op::Ne;
    case core::Op::And: return Op::And;
    case core::Op::Or: return Op::Or;
    case core::Op::Not: return Op::Not;
    case core::Op::Select: return Op::Select;
    case core::Op::BitAnd: return Op::BitAnd;
    case core::Op::BitOr: return Op::BitOr;
    case core::Op::BitXor: return Op::BitXor;
    case core::Op::BitNot: return Op::BitNot;
    case core::Op::BitLength: return Op::BitLength;
    case core::Op::Shl: return Op::Shl;
    case core::Op::Shr: return Op::Shr;
    default:
      throw Unsupported{fmt::format("an extent uses `{}`, which native code does not support",
                                    info(op).spelling)};
  }
}

void append(const core::Module& m, core::ExprId e, std::vector<Formula::Part>& out) {
  const core::Expr& x = m[e];
  if (const auto* n = std::get_if<core::IntLit>(&x.node)) {
    out.push_back({Op::Const, n->value});
  } else if (const auto* b = std::get_if<core::BoolLit>(&x.node)) {
    out.push_back({Op::Const, b->value});
  } else if (const auto* p = std::get_if<core::ParamRef>(&x.node)) {
    out.push_back({Op::Param, p->param.v});
  } else if (const auto* affine = std::get_if<core::Affine>(&x.node)) {
    out.push_back({Op::Const, affine->constant});
    for (const auto& term : affine->terms) {
      append(m, term.atom, out);
      out.insert(out.end(), {{Op::Const, term.coef}, {Op::Mul, 0}, {Op::Add, 0}});
    }
  } else {
    const auto* n2 = std::get_if<core::Apply>(&x.node);
    EIN_CHECK(n2, "an extent reads a value");
    DType from = m[n2->args[0]].type;
    if (is_float(from) || is_float(x.type)) {
      throw Unsupported{"an extent is computed from floats, which native code does not support"};
    }
    for (core::ExprId a : n2->args) append(m, a, out);
    switch (n2->op) {  // sums and products of i64 are Affine, so these are narrow ones, which wrap
      case core::Op::Stop:
      case core::Op::Cast: break;
      case core::Op::Neg: out.insert(out.end(), {{Op::Const, -1}, {Op::Mul, 0}}); break;
      case core::Op::Sub:
        out.insert(out.end(), {{Op::Const, -1}, {Op::Mul, 0}, {Op::Add, 0}});
        break;
      case core::Op::Shl:
      case core::Op::Shr:
        out.push_back({op_of(n2->op), 8 * static_cast<int64_t>(size_of(x.type))});
        break;
      default: out.push_back({op_of(n2->op), 0});
    }
    bool wraps = is_int(x.type) && x.type != DType::I64;
    if (wraps || n2->op == core::Op::Cast) {
      out.push_back({Op::Wrap, static_cast<int64_t>(x.type)});
    }
  }
}

Formula formula(const core::Module& m, core::ExprId e) {
  Formula out;
  if (m[e].free == 0) {
    bool closed = true;  // it has no params, so it is a number
    core::for_each_node(
        m, e, [&](core::ExprId x) { closed &= core::get_if<core::ParamRef>(m, x) == nullptr; });
    if (closed) {
      try {
        out.parts.push_back({Op::Const, core::eval_extent(m, e, {})});
        return out;
      } catch (const RuntimeError&) {}  // then it fails when the program runs
    }
  }
  append(m, e, out.parts);
  return out;
}

Tensor constant_table(const core::Module& m, const core::Family& f) {
  std::vector<int64_t> shape;
  for (const core::Coord& c : f.coords) shape.push_back(core::eval_extent(m, c.extent, {}));
  Tensor out(f.dtype, std::move(shape));
  for (size_t i = 0; i < f.cells.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    if (const auto* x = core::get_if<core::FloatLit>(m, f.cells[i])) out.set_float(at, x->value);
    if (const auto* x = core::get_if<core::IntLit>(m, f.cells[i])) out.set_int(at, x->value);
    if (const auto* x = core::get_if<core::BoolLit>(m, f.cells[i])) out.set_int(at, x->value);
  }
  return out;
}

std::string param_name(const core::Module& m, const core::Param& p) {
  return p.name ? text(p.name) : fmt::format("extent({}, {})", text(m[p.source].name), p.position);
}

void add_buffers(const plan::Plan& plan, const loops::Program& program, Image& out) {
  const core::Module& m = plan.module;
  std::unordered_map<core::FamilyId, uint32_t> step;
  for (uint32_t i = 0; i < plan.schedule.steps.size(); ++i) {
    for (core::FamilyId f : core::families_of({plan.schedule.steps[i]})) step[f] = i;
  }
  std::set<core::FamilyId> found;
  for (const loops::Buffer& b : program.buffers) {
    const core::Family& f = m[b.family];
    Image::Buffer to;
    switch (b.space) {
      case loops::Buffer::Space::Input: to.space = Image::Buffer::Space::Input; break;
      case loops::Buffer::Space::Constant: to.space = Image::Buffer::Space::Constant; break;
      case loops::Buffer::Space::Output: to.space = Image::Buffer::Space::Output; break;
      case loops::Buffer::Space::Row:
      case loops::Buffer::Space::Shared:
      case loops::Buffer::Space::Local: to.space = Image::Buffer::Space::Row; break;
      case loops::Buffer::Space::Temp: to.space = Image::Buffer::Space::Temp; break;
    }
    to.name = b.name;
    to.path = f.path;
    to.dtype = b.dtype;
    for (size_t k = 0; k < b.dims.size(); ++k) {
      to.dims.push_back(b.known[k] ? Formula{{{Op::Const, *b.known[k]}}} : formula(m, b.dims[k]));
    }
    for (const core::Coord& c : f.coords) to.coords.push_back(text(c.name));
    to.family = b.family.v;
    to.step = step.contains(b.family) ? step[b.family] : 0;
    // Scratch of a Launch bears the name of a family that has a buffer of its own.
    to.wanted = plan.families.at(b.family).wanted && found.insert(b.family).second;
    to.span = f.span;
    if (b.space == loops::Buffer::Space::Constant) to.constant = constant_table(m, f);
    if (b.space == loops::Buffer::Space::Input) {
      to.input = static_cast<uint32_t>(out.inputs.size());
      Image::Input input{text(f.name), f.path, f.dtype, {}, f.span};
      if (auto it = plan.streams.find(b.family); it != plan.streams.end()) {
        input.window = it->second.window;
      }
      for (const core::Coord& c : f.coords) {
        input.coords.push_back({text(c.name), formula(m, c.extent)});
      }
      out.inputs.push_back(std::move(input));
    }
    out.buffers.push_back(std::move(to));
  }
}

void add_entry(const core::Module& m, Image& out) {
  std::unordered_map<std::string, uint32_t> inputs;
  for (uint32_t i = 0; i < out.inputs.size(); ++i) inputs[out.inputs[i].name] = i;
  for (const core::Param& p : m.params) {
    Image::Param to{param_name(m, p), Image::Param::kNone, p.position};
    if (auto it = inputs.find(text(m[p.source].name)); it != inputs.end()) to.input = it->second;
    out.params.push_back(std::move(to));
  }
  for (const core::Constraint& c : m.constraints) {
    Image::Constraint to{formula(m, c.cond), c.message, {}, c.first};
    std::map<std::string, uint32_t> read;
    core::for_each_node(m, c.cond, [&](core::ExprId e) {
      if (const auto* p = core::get_if<core::ParamRef>(m, e)) {
        read[param_name(m, m.params[p->param])] = p->param.v;
      }
    });
    for (const auto& [name, param] : read) to.params.push_back(param);
    out.constraints.push_back(std::move(to));
  }
}

void add_sites(const plan::Plan& plan, const loops::Program& program, Image& out) {
  const core::Module& m = plan.module;
  std::unordered_map<std::string, core::FamilyId> families;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    families.emplace(text(m[core::FamilyId(i)].name), core::FamilyId(i));
  }
  std::unordered_map<uint32_t, uint32_t> buffer_of;  // a family has one, the first
  for (uint32_t i = 0; i < out.buffers.size(); ++i) buffer_of.emplace(out.buffers[i].family, i);
  for (const loops::Site& s : program.sites) {
    Image::Site to;
    to.name = s.name;
    to.span = s.span;
    to.statement = s.statement;
    to.step = s.step;
    switch (s.kind) {
      case loops::Site::Kind::Bounds:
        to.kind = Image::Site::Kind::Bounds;
        for (const core::Coord& c : m[families.at(s.name)].coords) {
          to.extents.push_back(formula(m, c.extent));
        }
        break;
      case loops::Site::Kind::DivideByZero: to.kind = Image::Site::Kind::DivideByZero; break;
      case loops::Site::Kind::Shift:
        to.kind = Image::Site::Kind::Shift;
        to.type = s.type;
        break;
      case loops::Site::Kind::Overflow:
        to.kind = Image::Site::Kind::Overflow;
        to.name = s.op == core::Op::Abs ? "abs" : info(s.op).spelling;
        to.arity = info(s.op).arity;
        to.type = s.type;
        break;
      case loops::Site::Kind::TooDeep:
        to.kind = Image::Site::Kind::TooDeep;
        to.name = core::too_deep_text(s.name);
        break;
      case loops::Site::Kind::Call: to.kind = Image::Site::Kind::Call; break;
      case loops::Site::Kind::NotFinite:
        to.kind = Image::Site::Kind::NotFinite;
        to.arity = m[families.at(s.name)].rank();
        break;
      case loops::Site::Kind::Rows: to.kind = Image::Site::Kind::Rows; break;
      case loops::Site::Kind::Fetch:
        to.kind = Image::Site::Kind::Fetch;
        to.members.push_back({buffer_of.at(families.at(s.name).v), 0});
        break;
      case loops::Site::Kind::Move:
        to.kind = Image::Site::Kind::Move;
        to.move = s.move.number;
        to.members.push_back({buffer_of.at(s.move.from.v), s.move.from_step});
        to.members.push_back({buffer_of.at(families.at(s.name).v), s.move.to_step});
        break;
      case loops::Site::Kind::Step: {
        to.kind = Image::Site::Kind::Step;
        const auto& q = std::get<core::Sequence>(plan.schedule.steps[s.step]);
        to.coordinate = text(m[q.members[0].family].coords[s.position].name);
        to.downward = q.downward;
        std::vector<core::Sequence::Member> members = q.members;
        for (uint32_t step_number : s.also) {
          const auto& other = std::get<core::Sequence>(plan.schedule.steps[step_number]).members;
          members.insert(members.end(), other.begin(), other.end());
        }
        std::map<uint32_t, uint32_t> by_buffer;
        for (const auto& member : members) {
          auto it = buffer_of.find(member.family.v);
          if (it != buffer_of.end()) by_buffer.emplace(it->second, member.position);
        }
        if (s.by_diagonals) break;  // its steps are not those of one coordinate
        for (const auto& [buffer, position] : by_buffer) {
          const core::Family& f = m[core::FamilyId(out.buffers[buffer].family)];
          to.members.push_back({buffer, position, formula(m, f.coords[position].extent)});
        }
        break;
      }
    }
    out.sites.push_back(std::move(to));
  }
}

void add_launches(const loops::Program& program, Image& out) {
  std::vector<uint32_t> first;  // by buffer: where its extents begin
  uint32_t dims = 0;
  for (const loops::Buffer& b : program.buffers) {
    first.push_back(dims);
    dims += static_cast<uint32_t>(b.dims.size());
  }
  for (const loops::Launch* n : launches_of(program)) {
    LaunchArguments args = arguments_of(program, *n);
    Image::Launch to{launch_name(*n), n->threads};
    for (loops::BufferId b : args.buffers) to.buffers.push_back(b.v);
    for (loops::BufferId b : args.written) to.written.push_back(b.v);
    for (const auto& [b, axis] : args.extents) to.extents.push_back(first[b.v] + axis);
    to.words = static_cast<uint32_t>(args.params.size() + args.vars.size());
    EIN_CHECK(n->number == out.launches.size(), "launches are numbered in order");
    out.launches.push_back(std::move(to));
  }
}

}  // namespace

std::variant<Image, std::string> make_image(const plan::Plan& plan, const loops::Program& program,
                                            Processor processor) {
  Image out;
  out.processor = processor;
  try {
    add_buffers(plan, program, out);
    add_entry(plan.module, out);
    add_sites(plan, program, out);
    for (uint32_t k = 0; k < program.kernels.size(); ++k) {
      loops::for_each_stmt(program.kernels[k].body, [&](const loops::Stmt& stmt) {
        const auto* loop = std::get_if<loops::Loop>(&stmt.node);
        if (loop && loop->poll.valid()) out.sites[loop->poll.v].kernel = k;
      });
    }
    out.kernels =
        static_cast<uint32_t>(std::count_if(program.kernels.begin(), program.kernels.end(),
                                            [](const loops::Kernel& k) { return !k.continues; }));
    add_launches(program, out);
    std::vector<Lifetime> lives = lifetimes(program);
    for (size_t i = 0; i < lives.size(); ++i) out.buffers[i].lives = lives[i];
  } catch (const Unsupported& u) { return u.why; }
  return out;
}

}  // namespace ein::codegen
