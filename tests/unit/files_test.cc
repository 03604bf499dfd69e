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

}  // namespace
}  // namespace ein
