#include <unistd.h>

#include "cli/cli.h"
#include "lsp/serve.h"

namespace ein::cli {

int lsp_verb(const LspCommand&) { return lsp::serve(STDIN_FILENO, STDOUT_FILENO, EIN_VERSION); }

}  // namespace ein::cli
