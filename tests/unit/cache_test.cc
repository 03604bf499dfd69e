#include "driver/cache.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "base/blake2.h"
#include "runtime/image.h"

namespace ein {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("ein-cache-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(Blake2, KnownDigests) {
  EXPECT_EQ(hex(blake2("")), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(hex(blake2("abc")), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  std::string zeros(128, '\0');
  EXPECT_NE(hex(blake2(zeros)), hex(blake2(zeros + '\0')));
}

TEST(DiskCache, KeepsTheNewest) {
  Folder folder;
  DiskCache cache(folder.path.string(), 40'000);
  std::string image(1000, 'x');
  for (int i = 0; i < 60; ++i) {
    std::string key = "1" + std::to_string(1000 + i);
    cache.store(key, image);
    // Times of files are coarse; this order is certain.
    fs::last_write_time(folder.path / (key + ".eincache"),
                        fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
  }
  cache.store("0", image);  // one key in sixteen makes the cache look at its total size
  uint64_t total = 0;
  for (const auto& e : fs::directory_iterator(folder.path)) total += e.file_size();
  EXPECT_LE(total, 40'000u);
  EXPECT_GE(total, 25'000u);
  EXPECT_EQ(cache.find("11000"), std::nullopt);
  EXPECT_EQ(cache.find("11059"), image);
  EXPECT_EQ(cache.find("0"), image);
}

TEST(DiskCache, TooLargeIsNotKept) {
  Folder folder;
  DiskCache cache(folder.path.string(), 4000);
  cache.store("1", std::string(1001, 'x'));
  EXPECT_EQ(cache.find("1"), std::nullopt);
}

TEST(Image, RoundTrip) {
  Image image;
  image.inputs.push_back({"x", "", DType::F64, {{"i", {{{Formula::Op::Param, 0}}}}}, {}});
  image.params.push_back({"n", 0, 0});
  Image::Buffer table;
  table.space = Image::Buffer::Space::Constant;
  table.name = "table";
  table.constant = Tensor(DType::I32, {2, 2});
  table.constant.set_int(3, -5);
  image.buffers.push_back(table);
  std::string bytes = pack(image);
  auto back = unpack(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(pack(*back), bytes);
  EXPECT_EQ(back->buffers[0].constant.get_int(3), -5);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(unpack(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(unpack(bytes + "x"));
}

int64_t value(std::vector<Formula::Part> parts, std::vector<int64_t> params = {}) {
  return evaluate(Formula{std::move(parts)}, params.data());
}

TEST(Formula, FailsOnlyWhereItsValueIsUsed) {
  using Op = Formula::Op;
  auto lit = [](int64_t v) { return Formula::Part{Op::Const, v}; };
  Formula::Part div{Op::Div, 0}, select{Op::Select, 0}, both{Op::And, 0}, mul{Op::Mul, 0};
  EXPECT_EQ(value({lit(0), lit(1), lit(0), div, lit(7), select}), 7);
  EXPECT_EQ(value({lit(0), lit(1), lit(0), div, both}), 0);
  EXPECT_THROW(value({lit(1), lit(1), lit(0), div, lit(7), select}), RuntimeError);
  EXPECT_THROW(value({lit(INT64_MAX), lit(2), mul}), RuntimeError);
  EXPECT_EQ(
      value({{Op::Param, 1}, lit(300), mul, {Op::Wrap, static_cast<int64_t>(DType::U8)}}, {0, 2}),
      600 % 256);
}

}  // namespace
}  // namespace ein
