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
//   otherwise a request to inline is ignored. By default trivial families and those that are read
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
  uint32_t width = 1;          // how many lanes the vector axis has
  bool scatters = false;       // the clause is a routed sum that runs as one pass over the binders
  uint32_t clear_width = 1;    // how many lanes first set its cells to zero
  std::optional<Contraction> contraction;
  // Up to this many multiplications the contraction is written as loops. It runs at every step of a
  // sequence, where a call costs more than it saves.
  std::optional<int64_t> small_contraction;
};

// How many cells of a family are in memory at a time.
enum class Storage : uint8_t {
  Full,      // all, in a buffer (for a recurrence: the steps that are kept)
  Band,      // those of one band, in scratch
  Row,       // those of one iteration of its group, in scratch
  Register,  // one, in a register
};

struct FamilyPlan {
  bool wanted = false;
  // Its cells move between ranks, so they must be stored as the program orders them.
  bool moved = false;
  Storage storage = Storage::Full;
  // The order of its coordinates in memory, the last one fastest. Empty: as declared.
  std::vector<uint32_t> order;
  std::vector<ClausePlan> clauses;
};

// Families computed together: loops over the first `shared` coordinates of the members (not
// counting steps of Sequences around), and inside them the members in order. They are adjacent in
// the schedule.
struct Group {
  std::vector<core::FamilyId> members;
  uint32_t shared = 0;
  uint32_t width = 1;  // lanes of the last shared coordinate
};

// Families computed together for some neighbouring rows at a time (bands.h).
struct Band {
  std::vector<core::FamilyId> members;  // in order; adjacent in the schedule
  uint32_t outer = 0;                   // how many coordinates precede the row
  core::ExprId rows, height;            // the extent of the row; how many rows a band has
  // Sums over the rows of one band, each with the binder that runs over the rows (a slot of the
  // clause).
  std::map<core::FamilyId, uint32_t> parts;
  // Their totals, each with the corresponding binder of the sum that is computed if a part must be
  // computed again; ~0 if there is no such sum.
  std::map<core::FamilyId, uint32_t> totals;
  // Indices that stop at the end of the band, as slots of clauses.
  std::set<std::pair<core::FamilyId, uint32_t>> cut;
  // Operands that must be finite for that: the access, and the member whose product reads it.
  std::vector<std::pair<core::FamilyId, core::ExprId>> finite;

  bool is_row(core::FamilyId id) const { return !parts.contains(id) && !totals.contains(id); }
};

// A recurrence that runs some rows at a time (rows.h). A part is `together` neighbouring rows.
// Between two points where the caller may stop the run there are `parts` parts, plus as many as
// `steps` steps make up.
struct RowsPlan {
  int64_t together = 1;
  int64_t parts = 1, steps = 0;
};

// A recurrence that runs for many members side by side (ensembles.h). Between two points where the
// caller may stop the run, `parts` vectors of members run, plus as many as `steps` steps make up.
struct EnsemblePlan {
  // For each family, the coordinate that distinguishes the members.
  std::map<core::FamilyId, uint32_t> along;
  uint32_t width = 1;
  int64_t parts = 1, steps = 0;
};

struct Plan {
  core::Module module;  // what is lowered: the input after inlining
  core::Schedule schedule;
  std::vector<core::FamilyId> wanted;
  std::vector<core::FamilyId> inlined;  // in the order in which they were inlined
  std::unordered_map<core::FamilyId, FamilyPlan> families;   // the scheduled ones
  std::unordered_map<core::ExprId, uint32_t> reduce_widths;  // by Reduce node; 1 if absent
  std::set<core::ExprId> stops;  // each `all` and `any` that must stop at the cell that decides
  std::unordered_map<core::FamilyId, core::Ring> rings;  // families that keep few steps
  // Recurrences that may run by diagonals (wavefront.h), and with how many lanes.
  std::unordered_map<core::FamilyId, uint32_t> by_diagonals;
  std::unordered_map<core::FamilyId, RowsPlan> by_rows;  // by the first member of the recurrence
  std::unordered_map<core::FamilyId, EnsemblePlan> ensembles;  // likewise
  // How Sequences end early (ends.h), keyed by their first member and its coordinate.
  std::map<SequenceKey, End> ends;
  std::unordered_map<core::FamilyId, Stream> streams;          // inputs
  std::unordered_map<core::ExprId, core::ExprId> window_rows;  // by access to such an input
  std::map<core::FamilyId, std::string> whole;  // inputs that could stream but do not, and why
  Tuning tuning;  // the numbers behind the decisions (base/tuning.def)
  std::vector<Group> groups;
  std::unordered_map<core::FamilyId, uint32_t> group_of;  // by member
  std::vector<Band> bands;
  std::unordered_map<core::FamilyId, uint32_t> band_of;  // by member
  core::Overflow overflow = core::Overflow::Wraps;       // of integer operations
  // The type to which operands of contractions are rounded (precision.h).
  DType operands = DType::F32;
  bool resumable = false;  // see Choices
  bool trap = false;       // the program stops if a stored cell is not finite
  // Families from this number on are made by passes. Their cells do not stop the program.
  uint32_t first_made = ~0u;
  Device device = Device::Cpu;
  uint64_t mapping = 0;  // see Choices
};

// Overrides of decisions. An empty function or answer leaves the decision to the planner. Some
// passes cannot be overridden: `widen-sums`, which gives sums the precision that docs/reference.md
// promises, and `isolate-routes`, `read-extents` and the required part of `expand-calls`, which
// planning relies on.
struct Choices {
  std::function<std::optional<bool>(core::FamilyId)> inlines;
  // Whether calls of a scalar function are replaced by its body.
  optimise::ExpandWish expands;
  // The vector axis of a clause (by family and clause number), or kMaxSlots for none.
  std::function<std::optional<uint32_t>(core::FamilyId, size_t)> vector_axis;
  std::function<std::optional<uint32_t>(core::ExprId)> reduce_width;
  // Whether a family joins a group that it could join.
  std::function<std::optional<bool>(core::FamilyId)> joins;
  Tuning tuning;             // the numbers behind the decisions
  bool contractions = true;  // whether contractions are recognised at all
  bool scatters = true;      // compute routed sums in one pass that adds to addresses
  bool unused = true;        // drop coordinates of local arrays that nothing depends on
  bool invariants = true;    // compute once what loops would repeat
  bool scans = true;         // compute running reductions in linear time
  bool bands = true;         // run products, and what lies between them, some rows at a time
  // Keep only the steps that are still read, and let readers follow step by step.
  bool rings = true;
  bool diagonals = true;  // run tables diagonal by diagonal
  // Run recurrences along the last coordinate row by row. Also required for diagonals: in neither
  // case can the steps be watched one by one.
  bool rows = true;
  // Run many members of a small recurrence side by side, and add up sums over its steps while they
  // run.
  bool ensembles = true;
  bool resumable = false;  // a run may be stopped between two steps and resumed later
  bool ends = true;        // stop recurrences whose further steps only repeat
  // Inputs that may stream, because the caller has them in files that can be read row by row.
  std::vector<core::FamilyId> streams;
  core::Overflow overflow = core::Overflow::Wraps;
  DType operands = DType::F32;  // the type to which operands of contractions are rounded
  // Store every family, and stop the run if a cell of one of the program's own is not finite.
  // Families made by passes may have cells that the program never computes.
  bool trap = false;
  Device device = Device::Cpu;
  // Seed for drawing at random how kernels are laid out on a device; 0 and 1: chosen normally. If
  // it is odd and the device is emulated, threads run in reverse order.
  uint64_t mapping = 0;

  // Whether a choice was made that ordinary runs never make, as when a test draws plans at random.
  // (Ordinary runs set only `tuning`, `rows`, `resumable`, `streams`, `overflow`, `operands` and
  // `device`, which are part of the cache key.)
  bool drawn() const {
    return inlines || expands || vector_axis || reduce_width || joins || !contractions ||
           !scatters || !unused || !scans || !invariants || !bands || !ensembles || !rings ||
           !diagonals || !ends || trap || mapping != 0;
  }
};

// How many lanes loops over this type have. That depends only on the element size, never on the
// machine, and is not in tuning.def, so that sums have the same shape and the same bits everywhere.
uint32_t lanes_for(DType type);
// Ranks exchange cells at the same step, so all of them run such a recurrence step by step to its
// end.
bool moves_between_ranks(const Plan& plan, const core::Sequence& q);

Plan make_plan(optimise::Program p, const Choices& choices = {});
std::string print(const Plan& plan);

// Forms groups and makes their members adjacent in the schedule (group.cc).
void form_groups(Plan& plan, const Choices& choices);

}  // namespace ein::plan
