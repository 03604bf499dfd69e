"""docs/command_line.md has every command and option that `ein --help` has, with the same words. Below a line
`<!-- options: run -->` stand the options of `ein run`, but for those that four or more commands share, which stand below
`<!-- options: shared -->`. Usage: command_page.py ROOT EIN [--write]   (--write: make the tables anew)"""

import pathlib
import re
import subprocess
import sys

PAGE = "docs/command_line.md"
SHARED_BY = 4
TABLE = re.compile(r"^<!-- options: (\w+) -->\n(?:\|.*\n)*", re.M)
HEAD = re.compile(r"(?P<names>\S+)(?P<kind> (?:TEXT|INT)(?::\{[^}]*\}|:INT in \[[^]]*\])?)?(?:=(?P<default>\S+))?"
                  r"(?P<more> \.\.\.)?(?: REQUIRED)?$")


def help_of(ein, *verb):
    return subprocess.run([ein, *verb, "--help"], capture_output=True, text=True, timeout=60).stdout


def verbs_of(text):
    return dict(re.findall(r"^  (\w+) {2,}(\S.*)$", text.partition("\nSubcommands:\n")[2], re.M))


def options_of(text):
    """(option, default, meaning) of each line below `Options:`."""
    section = re.search(r"^Options:\n((?:  .*\n)*)", text, re.M)[1]
    section = re.sub(r"\n {20,}", "   ", section)  # a long option has its text on the next line
    out = []
    for line in section.splitlines():
        head, _, meaning = line.strip().partition("   ")
        if not meaning:
            head, _, meaning = line.strip().partition("  ")
        m = HEAD.fullmatch(head.strip())
        if m is None:
            # A head of nearly the width of its column is one blank away from its text.
            m = next((n for n in (HEAD.fullmatch(head[:k]) for k in range(len(head), 0, -1) if head[k - 1:k] != " ") if n), None)
            meaning = (head[m.end():] + " " + meaning).strip()
        if "--help" in m["names"]:
            continue
        choices = re.search(r"\{(.*)\}", m["kind"] or "")
        long = choices and len(choices[1]) > 80  # the passes of --dump-after
        argument = "" if not m["kind"] else " " + (choices[1].replace(",", "\\|") if choices and not long else
                                                   "PASS" if long else "N" if "INT" in m["kind"] else "…")
        names = ", ".join(f"`{n}{argument}`" for n in m["names"].split(","))
        out.append((names, f"`{m['default']}`" if m["default"] else "", meaning.strip().replace("|", "\\|")))
    return out


def tables(options):
    """The rows by marker, from the options by verb."""
    users = {}
    for verb, rows in options.items():
        for row in rows:
            users.setdefault(row, []).append(verb)
    shared = {row: by for row, by in users.items() if len(by) >= SHARED_BY}
    head = ["| option | default | meaning |", "|---|---|---|"]
    out = {}
    for verb, rows in options.items():
        own = [f"| {' | '.join(row)} |" for row in rows if row not in shared]
        out[verb] = head + own if own else []
    out["shared"] = ["| option | default | meaning | of |", "|---|---|---|---|"] + [
        f"| {' | '.join(row)} | {', '.join(by)} |" for row, by in shared.items()]
    return out


def written(page, rows):
    def table(m):
        return m[0].splitlines()[0] + "\n" + "".join(line + "\n" for line in rows.get(m[1], ["| no such command |"]))
    return TABLE.sub(table, page)


def complaints(page, verbs, rows):
    places = TABLE.findall(page)
    out = [f"`ein {v}` has no line `<!-- options: {v} -->`" for v in rows if places.count(v) != 1]
    out += [f"there is no section \"## `ein {v}`\" that begins with the words of `ein --help`: {text}"
            for v, text in verbs.items() if not re.search(rf"^## `ein {v}`\n\n{re.escape(text)}", page, re.M | re.I)]
    return out + ([] if written(page, rows) == page else ["its tables are not those of `--help`: run this with --write"])


def self_test():
    text = ("Options:\n  -h,--help                   Print\n  --format TEXT:{text,json}=text\n"
            "                              format of it\n  --in TEXT ...               NAME=FILE\n"
            "  -O INT:INT in [0 - 3]=2     how\n  --backend TEXT:{native,ref}=native run it\n  --time                      where\n")
    assert options_of(text) == [("`--format text\\|json`", "`text`", "format of it"), ("`--in …`", "", "NAME=FILE"),
                                ("`-O N`", "`2`", "how"), ("`--backend native\\|ref`", "`native`", "run it"),
                                ("`--time`", "", "where")], options_of(text)
    rows = tables({"run": options_of(text)})
    page = written("## `ein run`\n\nRuns.\n\n<!-- options: run -->\n\n<!-- options: shared -->\n", rows)
    assert not complaints(page, {"run": "runs"}, rows), complaints(page, {"run": "runs"}, rows)
    assert complaints(page.replace("NAME=FILE", "NAME"), {"run": "runs"}, rows)
    assert complaints(page, {"run": "walks"}, rows)
    assert complaints(page, {}, rows | {"walk": []})


def main(root, ein, write):
    self_test()
    verbs = verbs_of(help_of(ein))
    rows = tables({verb: options_of(help_of(ein, verb)) for verb in verbs})
    page = (root / PAGE).read_text()
    if write:
        page = written(page, rows)
        (root / PAGE).write_text(page)
    problems = complaints(page, verbs, rows)
    print("\n".join(f"{PAGE}: {p}" for p in problems) or f"{len(verbs)} commands, {sum(len(r) for r in rows.values())} rows")
    return 1 if problems or not verbs else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve()), "--write" in sys.argv[3:]))
