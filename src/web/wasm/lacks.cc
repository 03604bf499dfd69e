// What WebAssembly in a page lacks, in one place: threads, files, machine code of our own, LAPACK.
// Each function here is a replacement for one that is defined in another file on ordinary machines
// (the headings name these files). cmake/wasm.cmake leaves those files out.
#include <cstdlib>
#include <new>

#include "base/check.h"
#include "base/deep_stack.h"
#include "base/fork_mutex.h"
#include "driver/ranks.h"
#include "driver/streams.h"
#include "lsp/disk.h"
#include "runtime/block.h"
#include "runtime/device_run.h"
#include "runtime/files.h"
#include "runtime/lapack.h"
#include "runtime/members.h"
#include "runtime/paths.h"
#include "runtime/pool.h"
#include "runtime/sink.h"
#include "runtime/streams.h"

namespace ein {

namespace {

RuntimeError no_file(const std::string& path) {
  return {Code::E0808, "`" + path + "`: there are no files in a page"};
}

}  // namespace

// ---- one thread, one process (base/deep_stack.cc, base/fork_mutex.cc, runtime/pool.cc) ------------------------------

void on_deep_stack(const std::function<void()>& body) { body(); }
ForkMutex::ForkMutex() = default;
ForkMutex::~ForkMutex() = default;

void for_each_chunk(int64_t count, ChunkFunction chunk, int64_t) {
  for (int64_t i = 0; i < count; ++i) chunk(i, 0);
}

// ---- memory (runtime/block.cc) -----------------------------------------------------------------------------------------

Block::Block(size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  bytes_ = (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
  at_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes_));
  if (!at_) throw std::bad_alloc();
}
Block::~Block() { std::free(at_); }

// ---- matrices: our own loops are used (runtime/lapack.cc) ----------------------------------------------------------------

template <class T>
bool factor_lapack(Factor, int64_t, int64_t, const T*, int64_t, bool, T*) {
  return false;
}
template bool factor_lapack(Factor, int64_t, int64_t, const float*, int64_t, bool, float*);
template bool factor_lapack(Factor, int64_t, int64_t, const double*, int64_t, bool, double*);

// ---- output: always into the answer (runtime/streams.cc) -------------------------------------------------------------------

void put(std::string_view text) {
  if (const Sink* sink = current_sink()) sink->write(text, false);
}
void put_error(std::string_view text) {
  if (const Sink* sink = current_sink()) sink->write(text, true);
}

// ---- graphics cards (runtime/device_run.cc) --------------------------------------------------------------------------------

std::string gpu_missing() { return "a page computes on the processor"; }

// ---- several ranks: a request of a page has no mesh (driver/ranks.cc) ----------------------------------------------------

RankRun run_on_ranks(core::Module&, const std::vector<core::FamilyId>&, const core::Inputs&,
                     const RunOptions&) {
  EIN_UNREACHABLE("ranks in a page");
}
std::variant<shard::Sharded, RuntimeError> for_ranks(core::Module&,
                                                     const std::vector<core::FamilyId>&,
                                                     const shard::Spec&, Trace*) {
  EIN_UNREACHABLE("ranks in a page");
}
std::optional<RuntimeError> refuse_on_ranks(const core::Module&, const RunOptions&) {
  EIN_UNREACHABLE("ranks in a page");
}

// ---- files: there are none (runtime/files.cc, runtime/paths.cc, lsp/disk.cc) ------------------------------------------------

std::variant<FileHeader, RuntimeError> inspect_file(const std::string& path, const std::string&) {
  return no_file(path);
}
std::variant<Tensor, RuntimeError> read_tensor(const std::string& path, const std::string&,
                                               std::optional<Wanted>) {
  return no_file(path);
}
std::variant<std::monostate, RuntimeError> write_tensors(const std::string& path,
                                                         const std::vector<NamedTensor>&) {
  return no_file(path);
}
std::variant<std::monostate, RuntimeError> write_text(const std::string& path, const std::string&) {
  return no_file(path);
}
// A program that loads something was already refused when it was compiled (web/program.cc).
std::optional<RuntimeError> read_others(const core::Module&, const std::vector<core::FamilyId>&,
                                        const RunOptions&, const std::map<std::string, RowFile>&,
                                        core::Inputs&) {
  return std::nullopt;
}
std::optional<RuntimeError> refuse_write(const FileAccess&, const std::string& path) {
  return no_file(path);
}

namespace lsp {
std::optional<std::string> text_on_disk(const std::string&) { return std::nullopt; }
std::vector<std::string> files_below(const std::vector<std::string>&) { return {}; }
std::string library_folder(const std::string&) { return ""; }
sema::FileLookup files_for(const std::string&, const SourceMap&) {
  return [](FileId, const std::string& path,
            const std::string&) -> std::variant<sema::FoundFile, RuntimeError> {
    return no_file(path);
  };
}
}  // namespace lsp

}  // namespace ein
