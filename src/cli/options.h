// The options of each verb: which words of the command line set which field of its struct (cli.h).
#pragma once

#include <CLI/CLI.hpp>

#include "cli/cli.h"

namespace ein::cli {

void run_options(CLI::App& app, RunCommand& o);
void plan_options(CLI::App& app, PlanCommand& o);
void build_options(CLI::App& app, BuildCommand& o);
void bench_options(CLI::App& app, BenchCommand& o);
void check_options(CLI::App& app, CheckCommand& o);
void grad_options(CLI::App& app, GradCommand& o);
void gradcheck_options(CLI::App& app, GradcheckCommand& o);
void fmt_options(CLI::App& app, FmtCommand& o);
void fix_options(CLI::App& app, FixCommand& o);
void explain_options(CLI::App& app, ExplainCommand& o);
void audit_options(CLI::App& app, AuditCommand& o);
void test_options(CLI::App& app, TestCommand& o);
void doc_options(CLI::App& app, DocCommand& o);
void new_options(CLI::App& app, NewCommand& o);
void repl_options(CLI::App& app, ReplCommand& o);
void lsp_options(CLI::App& app, LspCommand& o);
void explore_options(CLI::App& app, ExploreCommand& o);

}  // namespace ein::cli
