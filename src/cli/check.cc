#include "cli/cli.h"

namespace ein::cli {

int check_verb(const CheckCommand& command) {
  Program p = load(command.common, {.tests = true, .strict = command.strict});
  return p.status;
}

}  // namespace ein::cli
