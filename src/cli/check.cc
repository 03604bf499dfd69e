#include "cli/cli.h"

namespace ein::cli {

int check_verb(const CheckCommand& command) { return load(command.common).status; }

}  // namespace ein::cli
