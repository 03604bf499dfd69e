// The plan: how a module is computed, in one printed table. Lowering translates it; what is left
// to lowering is where a loop-invariant value stands and whether a condition is a branch or a
// selection, because both follow from what is known in each scope (lower/lower.h). Any legal plan
// gives the same values (floating-point sums within tolerance), and a test may draw plans at random
// through Choices.
//
// What is decided, family by family:
// - inline or materialise. An inlined family has no buffer: each access becomes the body of the
//   clause it falls into. Legal only where every access is proven to fall into one clause and that
//   clause's body is total (total.h), has no reduction and does not read the family itself;
//   otherwise a wish to inline is not granted. By default trivial families and those that are read
//   once are inlined.
// - for every clause, the axis of every coordinate: seq (a Sequence of the schedule runs it),
//   parallel, or vector (at most one, run in lanes, innermost). Legal: vector on any coordinate
//   that is not seq; in clauses that scatter only on one that is not routed (a routed sum adds to
//   addresses that may collide).
// - for every reduction, how many lanes run its innermost binder. Legal: any number, except for
//   argmax and argmin, whose result would depend on the order of equal candidates, for checked
//   integers, and for an `all` or `any` that stops at the cell that decides, because a later one may
//   fail. (Of two zeros with different signs, a max in lanes may keep the other one.)
// - whether a routed sum scatters: one pass over its binders adds each body to the address it is
//   routed to. Legal only where nothing in the sum needs the routed coordinate. Its cells are set to
//   zero first, in `clear_width` lanes. A routed sum that does not scatter tests every address.
// - the contraction class of a clause whose body is a sum of products of two accesses: which
//   indices are batch (in both operands and the result), m (first and result), n (second and
//   result) and k (both, summed). It is read off the coordinate sets, whatever the operation is
//   called in the source. Inside a recurrence it is plain loops up to `small_contraction`
//   multiplications, which are counted when the program runs.
// - for every recurrence, how many of its steps are stored (steps.h), and whether it runs along the
//   diagonals of two coordinates (wavefront.h; then all steps are stored) or row by row (rows.h;
//   where all steps are stored), how many rows at a time, and how often the caller may stop it; or
//   member by member, many in lanes (ensembles.h); or is left when its further steps only repeat
//   (ends.h).
// - which inputs stream from their files, of those that may (streams.h).
// - groups: families that one nest of loops over their leading coordinates computes together, each
//   iteration in the members' order (group.cc). What only the group reads needs no buffer of its
//   own: a register, or the scratch of one iteration.
// - bands: products, and groups between them, that run for some neighbouring rows at a time
//   (bands.h). What only the band reads is stored for those rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/tuning.h"
#include "core/core.h"
#include "core/groups.h"
#include "core/steps.h"
#include "core/total.h"
#include "optimise/classify.h"
#include "optimise/passes.h"
#include "plan/ends.h"
#include "plan/streams.h"
#include "runtime/device.h"

namespace ein::plan {

enum class AxisKind : uint8_t { Seq, Parallel, Vector };
const char* name_of(AxisKind kind);

using optimise::Contraction;

struct ClausePlan {
  std::vector<AxisKind> axes;  // one per coordinate
  uint32_t width = 1;          // lanes of the vector axis
  bool scatters = false;       // a routed sum, run as one pass over the binders
  uint32_t clear_width = 1;    // lanes of the loop that sets its cells to zero first
  std::optional<Contraction> contraction;
  // Up to this much work the contraction is written as loops: it runs at every step of a sequence,
  // where a call costs more than it saves.
  std::optional<int64_t> small_contraction;
};

// Where the cells of a family are.
enum class Storage : uint8_t {
  Full,      // all of them in a buffer (of a recurrence: the steps that are kept)
  Band,      // those of one band, in scratch
  Row,       // those of one iteration of its group, in scratch
  Register,  // one cell per iteration of its group
};

struct FamilyPlan {
  bool wanted = false;
  bool moved = false;  // cells go between ranks into it or out of it: it lies as it is written
  Storage storage = Storage::Full;
  // The order in which its coordinates lie in memory, the last one fastest; empty: their own.
  std::vector<uint32_t> order;
  std::vector<ClausePlan> clauses;
};

// Computed together: loops over the first `shared` coordinates of the members (of those that no
// Sequence around runs), the members in order inside. They stand next to each other in the
// schedule.
struct Group {
  std::vector<core::FamilyId> members;
  uint32_t shared = 0;
  uint32_t width = 1;  // lanes of the last shared coordinate
};

// Computed together, some neighbouring rows at a time (bands.h).
struct Band {
  std::vector<core::FamilyId> members;  // in order; they stand next to each other in the schedule
  uint32_t outer = 0;                   // coordinates in front of the row
  core::ExprId rows, height;            // the extent of the row; how many rows are a band
  // Sums over the rows of one band: the binder that runs over them, a slot of the clause.
  std::map<core::FamilyId, uint32_t> parts;
  // Their totals, and the same binder of the sum that is computed where a part must be computed
  // again; ~0: there is none.
  std::map<core::FamilyId, uint32_t> totals;
  // Indices that run no further than the end of the band, by slots of clauses.
  std::set<std::pair<core::FamilyId, uint32_t>> cut;
  // Operands that must be finite for that: the access, and the member whose product reads it.
  std::vector<std::pair<core::FamilyId, core::ExprId>> finite;

  bool is_row(core::FamilyId id) const { return !parts.contains(id) && !totals.contains(id); }
};

// A recurrence that runs some rows at a time (rows.h). A part is `together` neighbouring rows.
// Between two moments at which the caller may stop the run there are `parts` parts, and as many more
// as fit into `steps` steps of a part.
struct RowsPlan {
  int64_t together = 1;
  int64_t parts = 1, steps = 0;
};

// A recurrence that runs for many members side by side (ensembles.h). Between two moments at which
// the caller may stop the run, `parts` vectors of members run, and as many more as fit into `steps`
// steps of one.
struct EnsemblePlan {
  std::map<core::FamilyId, uint32_t> along;  // the coordinate that names the member
  uint32_t width = 1;
  int64_t parts = 1, steps = 0;
};

struct Plan {
  core::Module module;  // what is lowered: the input with inlining applied
  core::Schedule schedule;
  std::vector<core::FamilyId> wanted;
  std::vector<core::FamilyId> inlined;                       // in the order of inlining
  std::unordered_map<core::FamilyId, FamilyPlan> families;   // those that are scheduled
  std::unordered_map<core::ExprId, uint32_t> reduce_widths;  // by Reduce node; absent: 1
  std::set<core::ExprId> stops;  // `all` and `any` that stop at the cell that decides
  std::unordered_map<core::FamilyId, core::Ring> rings;  // families that keep few steps
  // Recurrences that may run by diagonals (wavefront.h), and in how many lanes.
  std::unordered_map<core::FamilyId, uint32_t> by_diagonals;
  std::unordered_map<core::FamilyId, RowsPlan> by_rows;  // by the first member of the recurrence
  std::unordered_map<core::FamilyId, EnsemblePlan> ensembles;  // likewise
  // How Sequences end early (ends.h), by their first member and its coordinate.
  std::map<SequenceKey, End> ends;
  std::unordered_map<core::FamilyId, Stream> streams;          // inputs
  std::unordered_map<core::ExprId, core::ExprId> window_rows;  // by access to one of them
  std::map<core::FamilyId, std::string> whole;  // why other inputs that may do not stream
  Tuning tuning;  // every decision that a number makes (base/tuning.def)
  std::vector<Group> groups;
  std::unordered_map<core::FamilyId, uint32_t> group_of;  // by member
  std::vector<Band> bands;
  std::unordered_map<core::FamilyId, uint32_t> band_of;  // by member
  core::Overflow overflow = core::Overflow::Wraps;       // of integers
  DType operands = DType::F32;                           // of contractions (precision.h)
  bool resumable = false;                                // see Choices
  bool trap = false;          // a stored cell that is not finite stops the program
  uint32_t first_made = ~0u;  // families from here on are made by passes: no cell of them stops it
  Device device = Device::Cpu;
  uint64_t mapping = 0;  // see Choices
};

// Overrides; an empty function or answer leaves the decision to the planner. There is none for
// `widen-sums`, `expand-calls` of what must be expanded, `isolate-routes` and `read-extents`: the
// first gives sums the digits that docs/reference.md promises, the others prepare what planning
// relies on.
struct Choices {
  std::function<std::optional<bool>(core::FamilyId)> inlines;
  // Whether calls of a scalar function are expanded where they stand.
  optimise::ExpandWish expands;
  // The vector axis of a clause (by family and clause number); kMaxSlots for none.
  std::function<std::optional<uint32_t>(core::FamilyId, size_t)> vector_axis;
  std::function<std::optional<uint32_t>(core::ExprId)> reduce_width;
  // Whether a family joins a group where it may.
  std::function<std::optional<bool>(core::FamilyId)> joins;
  Tuning tuning;             // every decision that a number makes
  bool contractions = true;  // use the contraction class at all
  bool scatters = true;      // routed sums add to addresses in one pass
  bool unused = true;        // local arrays lose the coordinates that nothing depends on
  bool invariants = true;    // what loops repeat is computed once
  bool scans = true;         // running reductions in linear time
  bool bands = true;         // run products and what lies between them some rows at a time
  bool rings = true;         // keep only the steps that are still read; readers follow step by step
  bool diagonals = true;     // run tables diagonal by diagonal
  // Run recurrences along the last coordinate row by row. Diagonals need this too: neither can be
  // watched step by step.
  bool rows = true;
  // Run many members of a small recurrence side by side, and take sums over its steps along.
  bool ensembles = true;
  bool resumable = false;  // a run may be stopped between two steps and go on later
  bool ends = true;        // leave recurrences whose further steps only repeat
  // Inputs that may stream, because the caller has them in files that can be read row by row.
  std::vector<core::FamilyId> streams;
  core::Overflow overflow = core::Overflow::Wraps;
  DType operands = DType::F32;  // what operands of contractions are rounded to
  // Every family is stored, and a cell of one of the program's own that is not finite stops the run.
  // What passes make may have cells that the program never computes.
  bool trap = false;
  Device device = Device::Cpu;
  // How kernels are laid out on a device is drawn with this seed (0 and 1: it is chosen); where it is
  // odd and the device emulated, threads run in the opposite order.
  uint64_t mapping = 0;

  // Whether something is not as in ordinary runs, as when a test draws plans at random. (An ordinary
  // run sets only `tuning`, `rows`, `resumable`, `streams`, `overflow`, `operands` and `device`, which
  // are part of the cache key.)
  bool drawn() const {
    return inlines || expands || vector_axis || reduce_width || joins || !contractions ||
           !scatters || !unused || !scans || !invariants || !bands || !ensembles || !rings ||
           !diagonals || !ends || trap || mapping != 0;
  }
};

// Lanes of loops over this type. They depend on the element size alone, never on the machine, and
// are not in tuning.def, so that sums have one shape and the same bits everywhere.
uint32_t lanes_for(DType type);
// Moves take place at the same step on every rank, so all ranks run such a recurrence step by step, to
// its end.
bool moves_between_ranks(const Plan& plan, const core::Sequence& q);

Plan make_plan(optimise::Program p, const Choices& choices = {});
std::string print(const Plan& plan);

// Forms groups and puts their members next to each other in the schedule (group.cc).
void form_groups(Plan& plan, const Choices& choices);

}  // namespace ein::plan
