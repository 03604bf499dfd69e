"""Includes go downwards only: a folder of src/ may include itself and what CMakeLists.txt links it to.
LLVM's headers stay in src/codegen, in at most ten files. Usage: layers.py ROOT"""

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
    "plan": {"optimise", "core", "runtime", "base"},
    "loops": {"core", "runtime", "base"},
    "lower": {"loops", "plan", "core", "runtime", "base"},
    "codegen": {"lower", "loops", "plan", "core", "runtime", "base"},
}
BELOW["driver"] = set(BELOW)
BELOW["cli"] = set(BELOW)
BELOW["lsp"] = set(BELOW) - {"cli"}
BELOW["capi"] = set(BELOW) - {"cli", "lsp"}
MAX_LLVM_FILES = 12

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)


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
            if top in ("llvm", "llvm-c") and folder != "codegen":
                complaints.append(f"{relative}: only codegen includes {include}")
        if any(i.startswith(("llvm/", "llvm-c/")) for i in includes):
            llvm_files.append(str(relative))
    if len(llvm_files) > MAX_LLVM_FILES:
        complaints.append(f"{len(llvm_files)} files include LLVM, more than {MAX_LLVM_FILES}: {llvm_files}")
    return complaints


if __name__ == "__main__":
    tree.run(
        check,
        good={"src/sema/a.cc": '#include "core/core.h"\n#include <vector>\n',
              "src/codegen/b.cc": '#include "llvm/IR/Module.h"\n'},
        bad=[
            {"src/base/a.cc": '#include "core/core.h"\n'},
            {"src/core/a.h": '#include "syntax/ast.h"\n'},
            {"src/lower/a.cc": '#include <llvm/IR/Module.h>\n'},
            {"src/unknown/a.cc": ""},
            {f"src/codegen/f{i}.cc": '#include "llvm/IR/Module.h"\n' for i in range(MAX_LLVM_FILES + 1)},
        ],
    )
