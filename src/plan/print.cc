// The plan as a table, as `--emit plan` shows it.
#include <fmt/format.h>

#include "base/match.h"
#include "core/rewrite.h"
#include "optimise/precision.h"
#include "plan/plan.h"
#include "runtime/factor.h"

namespace ein::plan {
namespace {

using namespace core;

struct Printer {
  const Plan& plan;
  std::string out;

  std::string coordinate(const Family& f, uint32_t slot) {
    if (slot < f.rank() && f.coords[slot].name) return text(f.coords[slot].name);
    return fmt::format("#{}", slot);
  }

  std::string set(const Family& f, const std::vector<uint32_t>& slots) {
    std::string s;
    for (uint32_t slot : slots) s += (s.empty() ? "" : " ") + coordinate(f, slot);
    return "{" + s + "}";
  }

  void family(FamilyId id, int depth) {
    const Family& f = plan.module[id];
    const FamilyPlan& p = plan.families.at(id);
    std::string indent(static_cast<size_t>(2 * depth), ' ');
    const char* how = f.file                          ? "file"
                      : f.kind == Family::Kind::Input ? "input"
                      : f.kind == Family::Kind::Table ? "literal"
                      : p.wanted                      ? "result"
                                                      : "materialise";
    out += fmt::format("{}{:<16} {:<12} {}, rank {}\n", indent, text(f.name), how, name_of(f.dtype),
                       f.rank());
    if (p.storage != Storage::Full) {
      out += fmt::format("{}  keeps {}\n", indent,
                         p.storage == Storage::Band  ? "one band"
                         : p.storage == Storage::Row ? "one iteration"
                                                     : "one cell in a register");
    }
    if (!p.order.empty()) out += fmt::format("{}  in memory {}\n", indent, set(f, p.order));
    if (auto in = plan.band_of.find(id); in != plan.band_of.end()) {
      const Band& b = plan.bands[in->second];
      if (b.parts.contains(id)) out += fmt::format("{}  sums over the rows of a band\n", indent);
      if (b.totals.contains(id)) out += fmt::format("{}  adds the bands up\n", indent);
      for (uint32_t k = 0; k < kMaxSlots; ++k) {
        if (!b.cut.contains({id, k})) continue;
        out += fmt::format("{}  {} ends with the band\n", indent, coordinate(f, k));
      }
    }
    if (auto ring = plan.rings.find(id); ring != plan.rings.end()) {
      out += fmt::format("{}  keeps {} of {}\n", indent, ring->second.kept,
                         coordinate(f, ring->second.position));
    }
    if (auto stream = plan.streams.find(id); stream != plan.streams.end()) {
      out += fmt::format("{}  streams, {} in memory\n", indent, stream->second.window);
    }
    for (size_t c = 0; c < p.clauses.size(); ++c) {
      const ClausePlan& cp = p.clauses[c];
      std::string axes;
      for (uint32_t k = 0; k < cp.axes.size(); ++k) {
        axes += fmt::format(" {}:{}", coordinate(f, k), name_of(cp.axes[k]));
        if (cp.axes[k] == AxisKind::Vector) axes += fmt::format("({})", cp.width);
      }
      out += fmt::format("{}  clause {}:{}{}\n", indent, c, axes.empty() ? " scalar" : axes,
                         cp.scatters ? ", scatters" : "");
      bool rounds = false;
      for_each_node(plan.module, f.clauses[c].body, [&](ExprId e) {
        if (auto lanes = plan.reduce_widths.find(e); lanes != plan.reduce_widths.end()) {
          const auto& r = std::get<Reduce>(plan.module[e].node);
          out += fmt::format("{}    {} in {} lanes\n", indent, name_of(r.op), lanes->second);
        }
        if (plan.stops.contains(e)) {
          const auto& r = std::get<Reduce>(plan.module[e].node);
          out += fmt::format("{}    {} stops at the cell that decides\n", indent, name_of(r.op));
        }
        rounds |=
            plan.operands != DType::F32 && optimise::is_rounded(plan.module, e, plan.operands);
      });
      if (rounds) {
        out += fmt::format("{}    rounds operands to {}\n", indent, name_of(plan.operands));
      }
      if (cp.contraction) {
        const Contraction& x = *cp.contraction;
        if (x.moved >= 0) {
          out += fmt::format("{}    move {}\n", indent, x.moved);
          continue;
        }
        if (x.factor >= 0)
          out += fmt::format("{}    {}\n", indent, ein::name_of(static_cast<Factor>(x.factor)));
        DType operands = plan.module[x.a].type;
        std::string of = operands == f.dtype ? "" : fmt::format(" {}", name_of(operands));
        out += fmt::format("{}    contract{} batch {} m {} n {} k {}\n", indent, of,
                           set(f, x.batch), set(f, x.m), set(f, x.n), set(f, x.k));
        if (cp.small_contraction) {
          out += fmt::format("{}    as loops up to {} products\n", indent, *cp.small_contraction);
        }
      }
    }
  }

  void group(const Group& g, int depth) {
    const Family& first = plan.module[g.members[0]];
    std::string shared;
    const ClausePlan& axes = plan.families.at(g.members[0]).clauses[0];
    uint32_t found = 0;
    for (uint32_t k = 0; k < first.rank() && found < g.shared; ++k) {
      if (axes.axes[k] == AxisKind::Seq) continue;
      shared += " " + coordinate(first, k);
      if (++found == g.shared && g.width > 1) shared += fmt::format(":vector({})", g.width);
    }
    out +=
        fmt::format("{}group over{}\n", std::string(static_cast<size_t>(2 * depth), ' '), shared);
    for (FamilyId id : g.members) family(id, depth + 1);
  }

  // The first member of a group stands for the whole group.
  void member(FamilyId id, int depth) {
    auto in = plan.group_of.find(id);
    if (in == plan.group_of.end()) return family(id, depth);
    const Group& g = plan.groups[in->second];
    if (g.members[0] == id) group(g, depth);
  }

  void band(const Band& b, int depth) {
    const Family& first = plan.module[b.members[0]];
    std::string front;
    for (uint32_t k = 0; k < b.outer; ++k) front += " " + coordinate(first, k);
    out += fmt::format("{}band over{}, rows {}\n", std::string(static_cast<size_t>(2 * depth), ' '),
                       front, coordinate(first, b.outer));
    for (FamilyId id : b.members) member(id, depth + 1);
  }

  void steps(const std::vector<core::Step>& list, int depth) {
    for (const core::Step& s : list) {
      match(
          s,
          [&](const Compute& c) {
            auto in = plan.band_of.find(c.family);
            if (in == plan.band_of.end()) return member(c.family, depth);
            const Band& b = plan.bands[in->second];
            if (b.members[0] == c.family) band(b, depth);
          },
          [&](const Sequence& q) {
            std::string members;
            for (const auto& member : q.members) {
              const Family& f = plan.module[member.family];
              members += fmt::format(" {}.{}", text(f.name), coordinate(f, member.position));
            }
            bool diagonals = depth == 0 && plan.by_diagonals.contains(q.members[0].family);
            auto rows = plan.by_rows.find(q.members[0].family);
            bool by_rows = depth == 0 && rows != plan.by_rows.end();
            auto ensemble = plan.ensembles.find(q.members[0].family);
            bool many = depth == 0 && ensemble != plan.ensembles.end();
            out +=
                fmt::format("{}sequence{}{}{}\n", std::string(static_cast<size_t>(2 * depth), ' '),
                            q.downward ? " downward" : "",
                            diagonals ? " by diagonals"
                            : by_rows ? fmt::format(" by rows({})", rows->second.together)
                            : many    ? fmt::format(" by members({})", ensemble->second.width)
                                      : "",
                            members);
            auto end = plan.ends.find({q.members[0].family, q.members[0].position});
            if (end != plan.ends.end()) {
              std::string later =
                  end->second.delay == 0 ? "" : fmt::format(", {} later", end->second.delay);
              out += fmt::format("{}ends with {}{}\n",
                                 std::string(static_cast<size_t>(2 * depth + 2), ' '),
                                 text(plan.module[end->second.flag].name), later);
            }
            steps(q.body, depth + 1);
          });
    }
  }
};

}  // namespace

std::string print(const Plan& plan) {
  Printer p{plan, {}};
  p.steps(plan.schedule.steps, 0);
  for (FamilyId id : plan.inlined) {
    p.out += fmt::format("{:<16} inline\n", text(plan.module[id].name));
  }
  return p.out;
}

}  // namespace ein::plan
