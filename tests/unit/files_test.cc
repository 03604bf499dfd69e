// Files at the level of the library: what happens if a file changes after compiling, and that
// damage to any byte of a file gives a message and nothing worse.
#include "runtime/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "driver/compile.h"
#include "driver/files.h"
#include "driver/run.h"
#include "runtime/row_file.h"

namespace ein {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ein_files_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  static Tensor counted(std::vector<int64_t> shape) {
    Tensor t(DType::F32, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set_float(i, static_cast<double>(i));
    return t;
  }
  void write(const std::string& name, const Tensor& t) const {
    auto done = write_tensors(path(name), {{"x", &t}});
    ASSERT_TRUE(std::holds_alternative<std::monostate>(done));
  }
  // The message of running `print(x)` after `change` was done to the file that x is loaded from.
  std::string after(const std::string& name, const std::function<void()>& change) const {
    SourceMap sources;
    Diagnostics diags;
    FileId file = sources.add(path("a.ein"), "let x = load(\"" + name + "\");\nprint(x);\n");
    CompileOptions options;
    options.files = files_on_disk(sources);
    Compiled compiled = compile(file, sources, options, diags);
    if (!compiled.ok) return "does not compile";
    change();
    RunOptions run_options;
    run_options.backend = Backend::Reference;
    RunResult result = run(compiled.module, {}, run_options, [](const std::string&) {});
    return result.error ? result.error->message : "";
  }

  std::filesystem::path folder_;
};

TEST_F(FilesTest, ChangedSinceCompiling) {
  for (const char* name : {"x.npy", "x.npz", "x.csv", "x.safetensors"}) {
    SCOPED_TRACE(name);
    auto fresh = [&] { write(name, counted({2, 3})); };
    auto expect = [&](const std::string& want, const std::function<void()>& change) {
      fresh();
      std::string message = after(name, change);
      EXPECT_NE(message.find(want), std::string::npos) << message;
      EXPECT_NE(message.find(path(name)), std::string::npos) << message;
    };
    EXPECT_EQ((fresh(), after(name, [] {})), "");
    expect("it contained [f32; 2, 3], now [f32; 3, 3]", [&] { write(name, counted({3, 3})); });
    expect("there is no such file", [&] { std::filesystem::remove(path(name)); });
    expect("overwritten", [&] {
      auto then = std::filesystem::last_write_time(path(name));
      std::filesystem::last_write_time(path(name), then + std::chrono::seconds(5));
    });
    expect("", [&] { std::filesystem::resize_file(path(name), 12); });
  }
}

TEST_F(FilesTest, NoDamageDoesMoreThanAMessage) {
  for (const std::string name : {"x.npy", "x.npz", "x.csv", "x.safetensors"}) {
    SCOPED_TRACE(name);
    write(name, counted({2, 3}));
    std::ifstream in(path(name), std::ios::binary);
    std::string whole(std::istreambuf_iterator<char>(in), {});
    auto look = [&](const std::string& bytes) {
      std::string damaged = "damaged" + name.substr(1);
      std::ofstream(path(damaged), std::ios::binary) << bytes;
      for (const char* member : {"", "x"}) {
        auto header = inspect_file(path(damaged), member);
        auto tensor = read_tensor(path(damaged), member);
        // What reads as a tensor has the shape that its header says.
        if (auto* t = std::get_if<Tensor>(&tensor)) {
          ASSERT_TRUE(std::holds_alternative<FileHeader>(header));
          EXPECT_EQ(t->shape(), std::get<FileHeader>(header).shape);
          EXPECT_LE(t->size(), 1000);
        }
      }
    };
    for (size_t n = 0; n <= whole.size(); ++n) look(whole.substr(0, n));
    for (size_t i = 0; i < whole.size(); ++i) {
      for (int bit : {0, 3, 5, 7}) {
        std::string flipped = whole;
        flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
        look(flipped);
      }
    }
  }
}

// The rows that a window shows, against those of the whole.
void expect_rows(RowReader& reader, const Tensor& whole, int64_t first, int64_t rows) {
  int64_t length = whole.size() / whole.shape()[0];
  ASSERT_FALSE(reader.fetch(first).has_value());
  for (int64_t r = 0; r < rows; ++r) {
    if (first + r < 0 || first + r >= whole.shape()[0]) continue;
    for (int64_t k = 0; k < length; ++k) {
      EXPECT_EQ(static_cast<const float*>(reader.window())[r * length + k],
                whole.get_float((first + r) * length + k))
          << "row " << first + r;
    }
  }
}

RowFile rows_of(const std::string& path, const std::string& member = "") {
  std::string why;
  auto rows = find_rows(path, member, why);
  EXPECT_TRUE(rows) << why;
  return rows.value_or(RowFile{});
}

std::unique_ptr<RowReader> reader_of(const RowFile& file, int64_t window) {
  auto opened = RowReader::open(file, window);
  EXPECT_TRUE(std::holds_alternative<std::unique_ptr<RowReader>>(opened));
  return std::move(std::get<std::unique_ptr<RowReader>>(opened));
}

// Short rows are read in blocks, long ones by themselves; windows move up, down, by leaps, and over
// both ends.
TEST_F(FilesTest, WindowsOverRows) {
  for (int64_t length : {3, 1000, 100'000}) {
    Tensor whole = counted({40, length});
    for (const char* name : {"x.npy", "x.safetensors", "x.idx"}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(length));
      write(name, whole);
      for (int64_t window : {1, 3}) {
        auto reader = reader_of(rows_of(path(name)), window);
        for (int64_t first = -2; first < 42; ++first) expect_rows(*reader, whole, first, window);
        for (int64_t first = 41; first >= -4; --first) expect_rows(*reader, whole, first, window);
        for (int64_t first :
             std::initializer_list<int64_t>{7, 7, 30, 2, 39, INT64_MAX, 0, INT64_MIN, 12, 13, 11}) {
          if (first > 40 || first < -4) {
            EXPECT_FALSE(reader->fetch(first).has_value());
          } else {
            expect_rows(*reader, whole, first, window);
          }
        }
      }
    }
  }
}

TEST_F(FilesTest, FilesThatChangeWhileTheyAreRead) {
  auto expect = [&](const std::function<void()>& change, const std::string& want) {
    write("x.npy", counted({40, 100'000}));
    auto reader = reader_of(rows_of(path("x.npy")), 1);
    EXPECT_FALSE(reader->fetch(0).has_value());
    change();
    auto error = reader->fetch(20);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, Code::E0808);
    EXPECT_NE(error->message.find(path("x.npy")), std::string::npos) << error->message;
    EXPECT_NE(error->message.find(want), std::string::npos) << error->message;
  };
  expect([&] { std::filesystem::resize_file(path("x.npy"), 1000); }, "it is truncated");
  expect([&] { std::filesystem::resize_file(path("x.npy"), 1 << 25); },
         "changed while it was read");
  write("x.npy", counted({40, 100'000}));
  RowFile before = rows_of(path("x.npy"));
  write("x.npy", counted({41, 100'000}));
  auto opened = RowReader::open(before, 1);
  ASSERT_TRUE(std::holds_alternative<RuntimeError>(opened));
  EXPECT_NE(std::get<RuntimeError>(opened).message.find("changed"), std::string::npos);
}

TEST_F(FilesTest, FilesWithoutRows) {
  for (const char* name : {"x.npz", "x.csv"}) {
    write(name, counted({4, 3}));
    std::string why;
    EXPECT_FALSE(find_rows(path(name), "", why));
    EXPECT_NE(why.find("read as a whole"), std::string::npos) << why;
  }
  std::string why;
  EXPECT_FALSE(find_rows(path("none.npy"), "", why));
  EXPECT_EQ(why, "there is no such file");
  write("x.npy", counted({}));
  EXPECT_FALSE(find_rows(path("x.npy"), "", why = ""));
  EXPECT_EQ(why, "it is one number");
}

}  // namespace
}  // namespace ein
