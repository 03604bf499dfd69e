#include <fmt/format.h>

#include <filesystem>

#include "cli/cli.h"

namespace ein::cli {
namespace {

constexpr const char* kMain = R"(// The mean of every row, and a test of it.

let table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];

fn row_means(x: [f32; row, col]) -> [f32; row] {
    let m[row] = mean[col](x[row, col]);
    m
}

let means = row_means(table);
print("means {means}");

test "means of two rows" {
    assert(means[0] == 2.0, "row 0 has {means[0]}");
    assert(means[1] == 5.0, "row 1 has {means[1]}");
}
)";

constexpr const char* kReadme = R"(# {}

    ein run main.ein      compile and run
    ein test main.ein     run the tests
    ein check main.ein    report mistakes without running
    ein fmt main.ein      format the program
)";

}  // namespace

int new_verb(const NewCommand& command) {
  std::filesystem::path folder = command.name;
  std::error_code error;
  if (std::filesystem::exists(folder, error)) {
    return usage_error(fmt::format("`{}` already exists", command.name));
  }
  std::filesystem::create_directories(folder, error);
  std::string title = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  if (error) {
    return usage_error(
        fmt::format("cannot create the folder `{}`: {}", command.name, error.message()));
  }
  if (int status = write_file(folder / "main.ein", kMain)) return status;
  std::string readme = fmt::format(fmt::runtime(kReadme), title);
  if (int status = write_file(folder / "README.md", readme)) return status;
  print_out("created {}; next: ein run {}\n", command.name, (folder / "main.ein").string());
  return kFine;
}

}  // namespace ein::cli
