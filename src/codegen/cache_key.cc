#include "codegen/cache_key.h"

#include <elf.h>
#include <link.h>

#include <bit>
#include <cstring>

#include "base/blake2.h"
#include "base/match.h"
#include "codegen/jit.h"

namespace ein::codegen {
namespace {

// Raise this when the contents of an image change, or their meaning.
constexpr uint32_t kFormat = 2;

// The id that the linker gave to the binary that holds this function, a digest of all of it: the
// compiler, LLVM and the standard library.
std::string find_build_id() {
  struct Search {
    uintptr_t inside;
    std::string found;
  } search{reinterpret_cast<uintptr_t>(&find_build_id), {}};
  auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& s = *static_cast<Search*>(data);
    bool holds = false;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& p = object->dlpi_phdr[i];
      uintptr_t begin = object->dlpi_addr + p.p_vaddr;
      holds |= p.p_type == PT_LOAD && s.inside >= begin && s.inside < begin + p.p_memsz;
    }
    if (!holds) return 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& p = object->dlpi_phdr[i];
      if (p.p_type != PT_NOTE) continue;
      const auto* at = reinterpret_cast<const char*>(object->dlpi_addr + p.p_vaddr);
      const char* end = at + p.p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const char* name = at + sizeof note;
        const char* value = name + ((note.n_namesz + 3) & ~3u);
        if (note.n_type == NT_GNU_BUILD_ID &&
            std::string_view(name, note.n_namesz) == std::string_view("GNU\0", 4)) {
          s.found.assign(value, note.n_descsz);
        }
        at = value + ((note.n_descsz + 3) & ~3u);
      }
    }
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.found;
}

struct Description {
  std::string out;

  void number(uint64_t v) { out.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void word(std::string_view s) {
    number(s.size());
    out += s;
  }
  template <class Tag>
  void id(Id<Tag> x) {
    number(x.v);
  }
  void symbol(Symbol s) { word(text(s)); }
  void span(Span s) {
    id(s.file);
    number(uint64_t{s.begin} << 32 | s.end);
  }
  void ids(const std::vector<core::ExprId>& list) {
    number(list.size());
    for (core::ExprId e : list) id(e);
  }
  void range(const core::Range& r) {
    id(r.lo);
    id(r.hi);
  }

  void node(const core::Expr& x) {
    number(x.node.index() << 8 | static_cast<uint64_t>(x.type));
    span(x.span);
    match(
        x.node, [&](const core::FloatLit& n) { number(std::bit_cast<uint64_t>(n.value)); },
        [&](const core::IntLit& n) { number(static_cast<uint64_t>(n.value)); },
        [&](const core::BoolLit& n) { number(n.value); }, [&](const core::Slot& n) { number(n.n); },
        [&](const core::ParamRef& n) { id(n.param); },
        [&](const core::Affine& n) {
          number(n.terms.size());
          for (const auto& t : n.terms) {
            id(t.atom);
            number(static_cast<uint64_t>(t.coef));
          }
          number(static_cast<uint64_t>(n.constant));
        },
        [&](const core::Apply& n) {
          number(static_cast<uint64_t>(n.op));
          ids(n.args);
        },
        [&](const core::Access& n) {
          id(n.family);
          ids(n.at);
        },
        [&](const core::Reduce& n) {
          number(static_cast<uint64_t>(n.op));
          number(n.first);
          number(n.over.size());
          for (const auto& r : n.over) range(r);
          for (Symbol s : n.names) symbol(s);
          id(n.gate);
          number(n.routes.size());
          for (const auto& r : n.routes) {
            number(r.slot);
            id(r.to);
          }
          id(n.body);
        },
        [&](const core::Request& n) {
          id(n.num);
          ids(n.num_at);
          id(n.den);
          ids(n.den_at);
        },
        [&](const core::Call& n) {
          id(n.function);
          ids(n.args);
        },
        [&](const core::Arg& n) { number(n.n); });
  }

  void family(const core::Family& f) {
    symbol(f.name);
    number(static_cast<uint64_t>(f.kind) << 8 | static_cast<uint64_t>(f.dtype));
    number(f.coords.size());
    for (const core::Coord& c : f.coords) {
      symbol(c.name);
      id(c.extent);
    }
    number(f.clauses.size());
    for (const core::Clause& c : f.clauses) {
      for (const core::Range& r : c.box) range(r);
      id(c.body);
      span(c.span);
    }
    ids(f.cells);
    number(f.file != nullptr);
    number(f.generated);
    number(static_cast<uint64_t>(f.checkpoint));
    number(f.with.size());
    for (core::FamilyId w : f.with) id(w);
    span(f.span);
  }

  // The front end numbers nodes in a fixed order. So the whole arena is hashed rather than the
  // nodes that are reached: that is faster and simpler.
  void module(const core::Module& m) {
    number(m.arena->size());
    for (uint32_t i = 0; i < m.arena->size(); ++i) node(m[core::ExprId(i)]);
    number(m.families.size());
    for (const core::Family& f : m.families) family(f);
    number(m.params.size());
    for (const core::Param& p : m.params) {
      symbol(p.name);
      id(p.source);
      number(p.position);
    }
    number(m.functions.size());
    for (const core::Function& f : m.functions) {
      symbol(f.name);
      number(f.params.size());
      for (const auto& p : f.params) {
        symbol(p.name);
        number(static_cast<uint64_t>(p.type));
      }
      number(static_cast<uint64_t>(f.result));
      id(f.body);
      span(f.span);
    }
    number(m.constraints.size());
    for (const core::Constraint& c : m.constraints) {
      id(c.cond);
      word(c.message);
      span(c.first);
    }
    number(m.locksteps.size());
    for (const core::Lockstep& l : m.locksteps) {
      number(l.members.size() << 1 | l.downward);
      for (const auto& member : l.members) {
        id(member.family);
        number(member.position);
      }
    }
  }
};

}  // namespace

std::optional<std::string> cache_key(const core::Module& m,
                                     const std::vector<core::FamilyId>& wanted,
                                     const NativeOptions& options) {
  const plan::Choices& own = options.choices;
  if (own.drawn()) return std::nullopt;
  static const std::string build_id = find_build_id();
  if (build_id.empty()) return std::nullopt;
  Description d;
  d.number(kFormat);
  d.word(build_id);
  d.word(processor_text(options.processor));
  d.number(static_cast<uint64_t>(own.overflow));
  d.number(static_cast<uint64_t>(own.operands));
  d.number(options.opt_level > 0);  // the levels above 0 give the same code
  d.number(options.check_bounds);
  d.number(static_cast<uint64_t>(own.device));
  d.number(own.rows);
  d.number(own.resumable);
  d.number(own.streams.size());
  for (core::FamilyId f : own.streams) d.id(f);
  for (const Tunable& t : tunables()) d.number(static_cast<uint64_t>(own.tuning.*t.field));
  d.number(wanted.size());
  for (core::FamilyId f : wanted) d.id(f);
  d.module(m);
  return hex(blake2(d.out));
}

}  // namespace ein::codegen
