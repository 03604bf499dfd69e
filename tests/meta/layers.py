"""Includes go downwards only: a folder of src/ may include itself and what CMakeLists.txt links it to, a folder of src/sema
itself and what stands before it. LLVM's headers stay in src/codegen, in at most fourteen files. Headers that open files or print
stay in runtime, driver and above. The reference evaluator includes no analysis that native code is planned by. Usage: layers.py ROOT"""

import pathlib
import re

import tree

BELOW = {
    "base": set(),
    "runtime": {"base"},
    "syntax": {"base"},
    "core": {"runtime", "base"},
    "sema": {"core", "syntax", "runtime", "base"},
    "autodiff": {"core", "runtime", "base"},
    "optimise": {"core", "runtime", "base"},
    "shard": {"core", "runtime", "base"},
    "plan": {"optimise", "core", "runtime", "base"},
    "loops": {"core", "runtime", "base"},
    "lower": {"loops", "plan", "core", "runtime", "base"},
    "device": {"loops", "plan", "core", "runtime", "base"},
    "codegen": {"loops", "plan", "core", "runtime", "base"},
}
BELOW["driver"] = set(BELOW)
BELOW["ide"] = {"driver", "autodiff", "sema", "core", "syntax", "runtime", "base"}
BELOW["lsp"] = BELOW["session"] = BELOW["ide"] | {"ide"}
BELOW["web"] = BELOW["lsp"] | {"lsp"}
BELOW["cli"] = set(BELOW)
BELOW["capi"] = set(BELOW) - {"cli"}
MAX_LLVM_FILES = 14
WITH_IO = {"runtime", "driver", "lsp", "cli", "capi"}
IO_HEADERS = {"cstdio", "stdio.h", "fstream", "iostream", "fcntl.h", "unistd.h"}
# What core/eval*.{cc,h} and core/bind.cc may include of core: nodes, walks over them, and scalar arithmetic.
EVALUATOR = {"core", "build", "rewrite", "scalar"}

# Inside sema. What is elaborated on demand is declared in sema/state/on_demand.h and called upwards from anywhere.
SEMA = {
    "state": set(),
    "names": {"state"},
    "ranges": {"names", "state"},
    "types": {"ranges", "names", "state"},
}
SEMA["expressions"] = set(SEMA)
SEMA["calls"] = set(SEMA)
SEMA["definitions"] = set(SEMA)
SEMA["effects"] = set(SEMA) - {"definitions"}
SEMA_SHARED = {"builtins.h", "modules.h", "file_lookup.h"}  # of src/sema itself, for the folders in it

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)


def inside_sema(relative, include):
    folder = relative.parts[2]
    if folder not in SEMA:
        return [f"{relative}: folder sema/{folder} has no place in tests/meta/layers.py"]
    below = SEMA[folder] | {folder}
    fine = include[0] in below if len(include) > 1 else include[0] in SEMA_SHARED
    return [] if fine else [f"{relative}: sema/{folder} must not include sema/{'/'.join(include)}"]


def of_evaluator(path):
    return path.parts[1] == "core" and (path.stem.startswith("eval") or path.stem == "bind")


def check(root, quiet=False):
    complaints, llvm_files = [], []
    for path in tree.sources(root):
        relative = path.relative_to(root)
        folder = relative.parts[1]
        if folder not in BELOW:
            complaints.append(f"{relative}: folder {folder} has no place in tests/meta/layers.py")
            continue
        includes = INCLUDE.findall(path.read_text())
        for include in includes:
            top = include.split("/")[0]
            if top in BELOW and top != folder and top not in BELOW[folder]:
                complaints.append(f"{relative}: {folder} must not include {include}")
            if folder == "sema" and top == "sema" and len(relative.parts) > 3:
                complaints += inside_sema(relative, include.split("/")[1:])
            if top in ("llvm", "llvm-c") and folder != "codegen":
                complaints.append(f"{relative}: only codegen includes {include}")
            if include in IO_HEADERS and folder not in WITH_IO:
                complaints.append(f"{relative}: {folder} must not include <{include}>")
            if of_evaluator(relative) and top == "core" and not of_evaluator(pathlib.PurePath("src", include)):
                if pathlib.PurePath(include).stem not in EVALUATOR:
                    complaints.append(f"{relative}: the reference evaluator must not include {include}")
        if any(i.startswith(("llvm/", "llvm-c/")) for i in includes):
            llvm_files.append(str(relative))
    if len(llvm_files) > MAX_LLVM_FILES:
        complaints.append(f"{len(llvm_files)} files include LLVM, more than {MAX_LLVM_FILES}: {llvm_files}")
    return complaints


if __name__ == "__main__":
    tree.run(
        check,
        good={"src/sema/a.cc": '#include "core/core.h"\n#include <vector>\n',
              "src/sema/calls/a.cc": '#include "sema/builtins.h"\n#include "sema/types/types.h"\n',
              "src/codegen/b.cc": '#include "llvm/IR/Module.h"\n',
              "src/core/eval_a.cc": '#include "core/core.h"\n#include "core/eval.h"\n#include <cmath>\n',
              "src/driver/c.cc": '#include <cstdio>\n#include "core/groups.h"\n'},
        bad=[
            {"src/base/a.cc": '#include "core/core.h"\n'},
            {"src/core/a.h": '#include "syntax/ast.h"\n'},
            {"src/lower/a.cc": '#include <llvm/IR/Module.h>\n'},
            {"src/unknown/a.cc": ""},
            {"src/sema/types/a.cc": '#include "sema/calls/calls.h"\n'},
            {"src/sema/types/a.cc": '#include "sema/elaborate.h"\n'},
            {"src/sema/unknown/a.cc": '#include "sema/types/types.h"\n'},
            {"src/core/eval.cc": '#include "core/groups.h"\n'},
            {"src/core/bind.cc": '#include "core/bound.h"\n'},
            {"src/sema/a.cc": '#include <fstream>\n'},
            {f"src/codegen/f{i}.cc": '#include "llvm/IR/Module.h"\n' for i in range(MAX_LLVM_FILES + 1)},
        ],
    )
