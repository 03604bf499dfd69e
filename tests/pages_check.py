"""The pages of `ein explain --html` and `ein audit --html` in Chromium: at the width of a phone and of a desk, nothing makes
the page scroll sideways, and text has enough contrast in light and dark. Usage: pages_check.py ROOT EIN [--shots FOLDER]
(--shots keeps a picture of each)"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = ["mlp", "lstm", "kalman", "transformer", "logistic_regression"]
WIDTHS = {"phone": 360, "desk": 1280}
# Runs in a page of its own, around the page that is looked at: Chromium's windows are no narrower than 500.
LOOK = """<iframe src="page.html" width="WIDTH" height="900"></iframe><pre id="found"></pre><script>
const luminance = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
document.querySelector("iframe").onload = event => {
  const page = event.target.contentDocument, view = event.target.contentWindow, wrong = [];
  const wide = page.documentElement.scrollWidth - view.innerWidth;
  if (wide > 0) wrong.push("scrolls sideways by " + wide);
  for (const e of page.querySelectorAll("*")) {
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && ["auto", "scroll"].includes(view.getComputedStyle(e).overflowX)
        && e.scrollWidth > e.clientWidth + 1 && !e.matches(".source")) wrong.push(e.tagName + " scrolls sideways");
    const own = [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
    if (!own || e.closest("svg, style, title")) continue;
    let behind = e;
    while (behind && /rgba\\(.*, 0\\)/.test(view.getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    const [a, b] = [luminance(view.getComputedStyle(e).color), luminance(behind ? view.getComputedStyle(behind).backgroundColor : "rgb(255,255,255)")];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) wrong.push("contrast " + ratio.toFixed(1) + ": " + e.textContent.trim().slice(0, 40));
  }
  document.getElementById("found").textContent = "FOUND[" + [...new Set(wrong)].slice(0, 5).join("; ") + "]";
};
</script>"""


def chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        sys.exit("NOT TESTED: there is no Chromium (Debian's package chromium)")
    return [found, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"]


def look(browser, folder, text, width, dark):
    """What is wrong with the page at this width."""
    if dark:  # as if the reader had chosen it
        text = text.replace("@media (prefers-color-scheme: dark)", "@media all").replace("color-scheme: light dark", "color-scheme: dark")
    (folder / "page.html").write_text(text)
    (folder / "look.html").write_text(LOOK.replace("WIDTH", str(width)))
    done = subprocess.run([*browser, "--virtual-time-budget=5000", "--dump-dom", f"file://{folder}/look.html"], capture_output=True,
                          text=True, timeout=120)
    found = re.search(r"FOUND\[(.*?)\]</pre>", done.stdout, re.S)
    return found[1] if found else f"the page was not looked at: {done.stderr[-300:]}"


def main(root, ein, shots=None):
    browser = chromium()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        broken = "<html><body><div style='width:2000px;background:#fff;color:#eee'>x</div></body></html>"
        wrong = look(browser, folder, broken, 360, False)
        assert "sideways" in wrong and "contrast" in wrong, f"the check finds nothing: {wrong}"
        failed = count = 0
        for example in EXAMPLES:
            for verb in ("explain", "audit"):
                made = folder / "made.html"
                subprocess.run([ein, verb, f"{example}.ein", "--html", made], check=True, cwd=root / "examples")
                for where, width in WIDTHS.items():
                    for dark in (False, True):
                        title = f"{verb} {example}, {where}, {'dark' if dark else 'light'}"
                        wrong = look(browser, folder, made.read_text(), width, dark)
                        failed += bool(wrong)
                        count += 1
                        if wrong:
                            print(f"{title}: {wrong}")
                        if shots:
                            pathlib.Path(shots).mkdir(parents=True, exist_ok=True)
                            picture = pathlib.Path(shots).resolve() / (re.sub(r"\W+", "_", title) + ".png")
                            subprocess.run([*browser, f"--window-size={max(width, 500)},1400", f"--screenshot={picture}",
                                            f"file://{folder}/page.html"], capture_output=True, timeout=120)
    print(f"{count} pages, {failed} wrong")
    return failed > 0


if __name__ == "__main__":
    options = sys.argv[3:]
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve()), options[1] if options[:1] == ["--shots"] else None))
