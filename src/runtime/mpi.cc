#include "runtime/mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>

#include "base/check.h"

namespace ein {
namespace {

std::optional<int64_t> number_in(const char* name) {
  const char* text = std::getenv(name);
  int64_t out = 0;
  if (!text) return std::nullopt;
  auto [end, wrong] = std::from_chars(text, text + std::strlen(text), out);
  return wrong == std::errc() && *end == 0 ? std::optional(out) : std::nullopt;
}

// Tags of messages. End: no more cells; Gone: no more messages at all.
constexpr int kCellsTag = 7, kWordsTag = 8, kEndTag = 9, kGoneTag = 10;
constexpr int kAnyTag = -1;

// Only what differs between the two implementations; they agree on the order of arguments, and on
// tags and ranks being int.
struct OpenMpi {
  using Handle = void*;
  struct Status {
    int source, tag, error;
    int cancelled;
    size_t count;
    size_t room[4];
  };
  static constexpr const char* kLibraries[] = {"libmpi.so.40", "libmpi.so"};
  static constexpr const char* kName = "Open MPI";
  static Handle world(void* library) { return dlsym(library, "ompi_mpi_comm_world"); }
  static Handle bytes(void* library) { return dlsym(library, "ompi_mpi_byte"); }
};
struct Mpich {
  using Handle = int;
  struct Status {
    int count_lo, count_hi;
    int source, tag, error;
    int room[8];
  };
  static constexpr const char* kLibraries[] = {"libmpich.so.12", "libmpi.so.12", "libmpich.so"};
  static constexpr const char* kName = "MPICH";
  static Handle world(void*) { return 0x44000000; }
  static Handle bytes(void*) { return 0x4c00010d; }
};

template <class Api>
class Mpi : public MpiTransport {
  using Handle = typename Api::Handle;
  using Status = typename Api::Status;

 public:
  // Why the library cannot be opened; empty if it is open.
  std::string open(const MpiPlace& place) {
    for (const char* name : Api::kLibraries) {
      // Open MPI's own plug-ins look for its symbols among those of the process.
      if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    }
    if (!library_)
      return fmt::format("{} started this process, but its library cannot be opened: {}",
                         Api::kName, dlerror());
    bool all = find("MPI_Init_thread", init_) && find("MPI_Comm_rank", comm_rank_) &&
               find("MPI_Comm_size", comm_size_) && find("MPI_Isend", isend_) &&
               find("MPI_Test", test_) && find("MPI_Recv", receive_) &&
               find("MPI_Iprobe", probe_) && find("MPI_Get_count", count_) &&
               find("MPI_Finalize", finalize_) && find("MPI_Barrier", barrier_);
    if (!all) return fmt::format("the library of {} lacks a function", Api::kName);
    world_ = Api::world(library_);
    bytes_ = Api::bytes(library_);
    int provided = 0, rank = 0, ranks = 1;
    constexpr int kFunneled = 1;
    if (init_(nullptr, nullptr, kFunneled, &provided) != 0) return "MPI did not start";
    comm_rank_(world_, &rank);
    comm_size_(world_, &ranks);
    rank_ = rank;
    ranks_ = ranks;
    if (rank_ != place.rank || ranks_ != place.ranks)
      return fmt::format("{} says that this is rank {} of {}, its starter said {} of {}",
                         Api::kName, rank_, ranks_, place.rank, place.ranks);
    silent_.resize(static_cast<size_t>(ranks_));
    words_.resize(static_cast<size_t>(ranks_));
    return "";
  }
  ~Mpi() override {
    if (ranks_ == 0) return;
    post_all(kGoneTag);
    constexpr int kPatience = 10'000;  // 2 s
    for (int k = 0; !sending_.empty(); ++k) {
      progress();
      // A rank that failed no longer receives cells. After this time, MPI ends all ranks as it sees
      // fit.
      if (k == kPatience) return;
      if (k > 100) usleep(200);
    }
    barrier_(world_);
    finalize_();
  }

  int64_t rank() const override { return rank_; }
  int64_t ranks() const override { return ranks_; }

  void send(int64_t to, const void* bytes, size_t count) override {
    post(to, kCellsTag, bytes, count);
    sent += count;
  }
  void end() override { post_all(kEndTag); }
  void tell(int64_t to, const std::string& words) override {
    post(to, kWordsTag, words.data(), words.size());
  }

  bool receive(int64_t from, void* bytes, size_t count) override {
    auto* at = static_cast<char*>(bytes);
    for (size_t done = 0; done < count || count == 0;) {
      Status status = {};
      if (!wait(from, kCellsTag, status)) return false;
      done += take(from, kCellsTag, status, at + done, count - done);
      if (count == 0) break;
    }
    return true;
  }
  std::optional<std::string> hear(int64_t from) override {
    auto& known = words_[static_cast<size_t>(from)];
    Status status = {};
    if (known.empty() && !wait(from, kWordsTag, status)) return std::nullopt;
    std::string out = std::move(known.front());
    known.pop_front();
    return out;
  }

 private:
  template <class F>
  bool find(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    return function != nullptr;
  }

  struct Sending {
    std::string bytes;
    Handle request = {};
  };
  // An MPI message has at most 2³¹ − 1 bytes; longer ones are sent in pieces.
  static constexpr size_t kMost = size_t{1} << 30;
  void post(int64_t to, int tag, const void* bytes, size_t count) {
    const auto* at = static_cast<const char*>(bytes);
    do {
      size_t piece = std::min(count, kMost);
      Sending& out = sending_.emplace_back();
      if (piece > 0) out.bytes.assign(at, piece);
      isend_(out.bytes.data(), static_cast<int>(piece), bytes_, static_cast<int>(to), tag, world_,
             &out.request);
      at += piece;
      count -= piece;
    } while (count > 0);
    progress();
  }
  void post_all(int tag) {
    for (int64_t r = 0; r < ranks_; ++r) {
      if (r != rank_) post(r, tag, nullptr, 0);
    }
  }
  void progress() {
    for (auto it = sending_.begin(); it != sending_.end();) {
      int done = 0;
      Status status = {};
      test_(&it->request, &done, &status);
      it = done ? sending_.erase(it) : std::next(it);
    }
  }

  // The next message from a rank, in the order in which it was sent. Notes ends and keeps words
  // that arrive before it.
  bool wait(int64_t from, int tag, Status& status) {
    if (tag == kWordsTag && !words_[static_cast<size_t>(from)].empty()) return true;
    for (int idle = 0;; ++idle) {
      if (silent_[static_cast<size_t>(from)] >= (tag == kCellsTag ? kEndTag : kGoneTag))
        return false;
      int there = 0;
      probe_(static_cast<int>(from), kAnyTag, world_, &there, &status);
      if (!there) {
        progress();
        if (idle > 2000) usleep(idle > 20000 ? 200 : 10);
        continue;
      }
      idle = 0;
      if (status.tag == kCellsTag && tag == kCellsTag) return true;
      if (status.tag == kEndTag || status.tag == kGoneTag) {
        take(from, status.tag, status, nullptr, 0);
        silent_[static_cast<size_t>(from)] = status.tag;
        continue;
      }
      int count = 0;
      count_(&status, bytes_, &count);
      std::string message(static_cast<size_t>(count), 0);
      take(from, status.tag, status, message.data(), message.size());
      // Cells that nobody waits for any more, because this rank failed before it needed them.
      if (status.tag != kWordsTag) continue;
      words_[static_cast<size_t>(from)].push_back(std::move(message));
      if (tag == kWordsTag) return true;
    }
  }
  size_t take(int64_t from, int tag, const Status& status, char* bytes, size_t room) {
    int count = 0;
    count_(&status, bytes_, &count);
    EIN_CHECK(static_cast<size_t>(count) <= room, "ranks disagree about a message");
    Status done = {};
    receive_(bytes, count, bytes_, static_cast<int>(from), tag, world_, &done);
    return static_cast<size_t>(count);
  }

  void* library_ = nullptr;
  Handle world_ = {}, bytes_ = {};
  int64_t rank_ = 0, ranks_ = 0;
  std::list<Sending> sending_;
  std::vector<int> silent_;  // by rank: kEndTag or kGoneTag, once received
  std::vector<std::deque<std::string>> words_;
  int (*init_)(int*, char***, int, int*) = nullptr;
  int (*comm_rank_)(Handle, int*) = nullptr;
  int (*comm_size_)(Handle, int*) = nullptr;
  int (*isend_)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*test_)(Handle*, int*, Status*) = nullptr;
  int (*receive_)(void*, int, Handle, int, int, Handle, Status*) = nullptr;
  int (*probe_)(int, int, Handle, int*, Status*) = nullptr;
  int (*count_)(const Status*, Handle, int*) = nullptr;
  int (*barrier_)(Handle) = nullptr;
  int (*finalize_)() = nullptr;
};

template <class Api>
std::variant<std::unique_ptr<MpiTransport>, std::string> open_as(const MpiPlace& place) {
  auto out = std::make_unique<Mpi<Api>>();
  std::string why = out->open(place);
  if (why.empty()) return std::unique_ptr<MpiTransport>(std::move(out));
  return why;
}

}  // namespace

std::optional<MpiPlace> mpi_place() {
  struct Names {
    const char *rank, *ranks, *beside;
    bool open_mpi;
  };
  constexpr Names kNames[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", true},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", false}};
  for (const Names& n : kNames) {
    auto rank = number_in(n.rank), ranks = number_in(n.ranks);
    if (rank && ranks) return MpiPlace{*rank, *ranks, number_in(n.beside).value_or(1), n.open_mpi};
  }
  return std::nullopt;
}

std::variant<std::unique_ptr<MpiTransport>, std::string> open_mpi(const MpiPlace& place) {
  return place.open_mpi ? open_as<OpenMpi>(place) : open_as<Mpich>(place);
}

}  // namespace ein
