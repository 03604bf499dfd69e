#!/usr/bin/env python3
"""Writes the lists of words in editors/ from the compiler's own: keywords (syntax/tokens.def), types (sema/types/types.cc),
built-in functions (sema/builtins.def, core/ops.def). Usage: editor_words.py ROOT [--check]   (--check: say what is stale)"""

import hashlib
import pathlib
import re
import sys


def words(root):
    def read(path):
        return (root / "src" / path).read_text()

    tokens, builtins, ops = read("syntax/tokens.def"), read("sema/builtins.def"), read("core/ops.def")
    types = read("sema/types/types.cc").partition("scalar_type(Symbol name) {")[2].partition("};")[0]
    names = re.findall(r'^EIN_(?:BUILTIN|REDUCTION)\(\w+, "(\w+)"', builtins, re.M)
    names += re.findall(r'^EIN_OP\(\w+, "(\w+)", \d, (?:Arith|Real|Whole)\)', ops, re.M)
    out = {
        "keywords": re.findall(r'^EIN_KEYWORD\(\w+, "(\w+)"\)', tokens, re.M),
        "soft": re.findall(r'^EIN_SOFT\(\w+, "(\w+)"\)', tokens, re.M),
        "types": re.findall(r'\{"(\w+)", DType', types),
        "builtins": sorted(set(names)),
    }
    missing = [kind for kind, list_of in out.items() if len(list_of) < 3]
    if missing:
        sys.exit(f"editor_words.py finds no {', '.join(missing)} in src/")
    return out


def replaced(text, pattern, with_words):
    out, count = re.subn(pattern, lambda m: m[1] + with_words + m[2], text, count=1, flags=re.M)
    if count != 1:
        sys.exit(f"editor_words.py finds no place for {pattern}")
    return out


def vscode(text, lists):
    scopes = {"keywords": "keyword.control", "soft": "keyword.other", "types": "storage.type", "builtins": "support.function"}
    for kind, scope in scopes.items():
        text = replaced(text, rf'(\{{ "name": "{re.escape(scope)}\.ein", "match": "\\\\b\(\?:)[^)]*(\))', "|".join(lists[kind]))
    return text


def vim(text, lists):
    groups = {"keywords": "einKeyword", "soft": "einSoft", "types": "einType", "builtins": "einBuiltin"}
    for kind, group in groups.items():
        text = replaced(text, rf"(^syn keyword {group}).*()$", "".join(" " + w for w in lists[kind]))
    return text


def emacs(text, lists):
    names = {"keywords": "keywords", "soft": "soft-keywords", "types": "types", "builtins": "builtins"}
    for kind, name in names.items():
        text = replaced(text, rf"(^\(defconst ein-lang-{name} '\()[^)]*(\)\))$", " ".join(f'"{w}"' for w in lists[kind]))
    return text


def tree_sitter(text, lists):
    def quoted(kind):
        return " ".join(f'"{w}"' for w in lists[kind])
    plain = {**lists, "keywords": [w for w in lists["keywords"] if w not in ("true", "false")]}
    for kind in ("keywords", "soft"):
        first = {"keywords": "let", "soft": "in"}[kind]
        text = replaced(text, rf'^(\["{first}")[^\]]*(\] @keyword)$', "".join(f' "{w}"' for w in plain[kind] if w != first))
    text = replaced(text, r"(#any-of\? @type\.builtin )[^)]*(\))", quoted("types"))
    return replaced(text, r"(#any-of\? @function\.builtin )[^)]*(\))", quoted("builtins"))


FILES = {
    "editors/vscode/syntaxes/ein.tmLanguage.json": vscode,
    "editors/vim/syntax/ein.vim": vim,
    "editors/emacs/ein-lang-mode.el": emacs,
    "editors/tree-sitter/queries/highlights.scm": tree_sitter,
}


def main():
    root = pathlib.Path(sys.argv[1])
    lists, stale = words(root), []
    for name, fill in FILES.items():
        path = root / name
        old = path.read_text()
        new = fill(old, lists)
        if fill(old, {**lists, "keywords": lists["keywords"] + ["frobnicate"]}) == old:
            sys.exit(f"self-test: a new keyword should make {name} stale")
        if new == old:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(new)
    grammar = (root / "editors/tree-sitter/grammar.js").read_text()
    unknown = [w for w in lists["keywords"] + lists["soft"] if f'"{w}"' not in grammar]
    if unknown:
        sys.exit(f"editors/tree-sitter/grammar.js does not know {', '.join(unknown)}: add it, and run `make tree-sitter`")
    made = (root / "editors/tree-sitter/src/generated_from").read_text().strip()
    if made != hashlib.sha256(grammar.encode()).hexdigest():
        sys.exit("editors/tree-sitter/src is not made from grammar.js as it is: run `make tree-sitter`")
    if "--check" in sys.argv:
        print("\n".join(f"{name} is stale: run tools/editor_words.py ." for name in stale) or "fine")
        sys.exit(1 if stale else 0)


if __name__ == "__main__":
    main()
