// What the standard library exports, to suggest names that a program does not import yet. Read
// once.
#pragma once

#include <string>
#include <vector>

namespace ein::ide {

struct LibraryItem {
  std::string name, module, signature, doc;  // "conv2d", "std::nn::conv", its first lines
  bool function = true;
};
const std::vector<LibraryItem>& library_index();
std::vector<std::string> library_modules();  // "std::nn::conv"

}  // namespace ein::ide
