// Makes the playground: index.html with what it loads, runner.js for other pages, and playground.html, which is
// everything in one file. Usage: node build.mjs ROOT MODULE.wasm OUT   (run by `make playground`)
import { build } from "esbuild";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import zlib from "node:zlib";

const [root, wasm, out] = process.argv.slice(2);
if (!out) {
  console.error("usage: node build.mjs ROOT MODULE.wasm OUT");
  process.exit(2);
}
const here = path.dirname(fileURLToPath(import.meta.url));
const read = (name) => fs.readFileSync(path.join(root, name), "utf8");

// The words of the language, from the grammar that tools/editor_words.py keeps.
function words() {
  const grammar = JSON.parse(read("editors/vscode/syntaxes/ein.tmLanguage.json"));
  const scopes = { keywords: "keyword.control.ein", soft: "keyword.other.ein", types: "storage.type.ein",
                   builtins: "support.function.ein" };
  return Object.fromEntries(Object.entries(scopes).map(([kind, scope]) => {
    const rule = grammar.repository.code.patterns.find((p) => p.name === scope);
    return [kind, rule.match.match(/\(\?:([^)]*)\)/)[1].split("|")];
  }));
}

// `docs/x.md#2`: the second block of Einlang of a page; `#E0301`: the one that has this mistake.
function programOf(entry) {
  const [file, block] = entry.from.split("#");
  let source = read(file);
  if (block) {
    const blocks = [...source.matchAll(/^```ein([^\n]*)\n([\s\S]*?)^```$/gm)];
    const found = /^\d+$/.test(block) ? blocks[Number(block) - 1] : blocks.find((b) => b[1].includes(block));
    if (!found) throw new Error(`gallery: ${file} has no block ${block}`);
    source = found[2];
  }
  for (const [old, now] of entry.replace ?? []) {
    if (!source.includes(old)) throw new Error(`gallery: ${file} has no \`${old}\``);
    source = source.replace(old, now);
  }
  return source;
}

const gallery = JSON.parse(read("web/gallery/gallery.json"))
  .map((entry) => (entry.group ? entry : { ...entry, source: programOf(entry) }));

const options = {
  bundle: true,
  minify: true,
  target: ["chrome110", "firefox115", "safari16.4"],
  define: { EIN_WORDS: JSON.stringify(words()), EIN_GALLERY: JSON.stringify(gallery) },
  legalComments: "none",
  logLevel: "warning",
  logOverride: { "empty-import-meta": "silent" }, // the page in one file has no use for it
};
const bundle = async (entry, more) => {
  const made = await build({ ...options, ...more, entryPoints: [path.join(here, "src", entry)], write: false });
  return made.outputFiles[0].text;
};

fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out, { recursive: true });
const put = (name, content) => fs.writeFileSync(path.join(out, name), content);

const bytes = fs.readFileSync(wasm);
const page = fs.readFileSync(path.join(here, "index.html"), "utf8");
const style = (await build({ entryPoints: [path.join(here, "style.css")], minify: true, write: false })).outputFiles[0].text;
const app = await bundle("main.js", { format: "esm" });
const runner = await bundle("runner.js", { format: "esm" });
const address = await bundle("address.js", { format: "esm" });
const worker = await bundle("worker.js", { format: "esm" });
put("ein.wasm", bytes);
put("app.js", app);
put("style.css", style);
put("runner.js", runner);
put("address.js", address);
put("worker.js", worker);
put("gallery.json", JSON.stringify(gallery));
put("index.html", page.replace("<!-- style -->", '<link rel="stylesheet" href="style.css">')
  .replace("<!-- script -->", '<script type="module" src="app.js"></script>'));

// In one file: nothing may be fetched from a file: address, so worker and module stand in the page as text.
const alone = await bundle("alone.js", { format: "iife" });
const classic = await bundle("worker.js", { format: "iife" });
const packed = zlib.gzipSync(bytes, { level: 9 }).toString("base64");
const safe = (text) => text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
put("playground.html", page.replace("<!-- style -->", () => `<style>${style}</style>`)
  .replace("<!-- script -->", () => `<script type="text/plain" id="ein-worker">${safe(classic)}</script>\n` +
    `<script type="application/octet-stream" id="ein-module">${packed}</script>\n<script>${safe(alone)}</script>`));

// ---- sizes ---------------------------------------------------------------------------------------------------------

const gzip = (content) => zlib.gzipSync(content, { level: 9 }).length;
const rows = [
  ["module", bytes.length, gzip(bytes), 3_500_000, 1_200_000],
  ["page without it", page.length + style.length + app.length + worker.length, gzip(page) + gzip(style) + gzip(app) + gzip(worker), Infinity, 250_000],
  ["runner.js and worker.js", runner.length + worker.length, gzip(runner) + gzip(worker), Infinity, Infinity],
  ["playground.html", fs.statSync(path.join(out, "playground.html")).size, gzip(fs.readFileSync(path.join(out, "playground.html"))), Infinity, Infinity],
];
let large = false;
for (const [name, size, small, most, most_small] of rows) {
  const over = size > most || small > most_small;
  large ||= over;
  console.log(`${name.padEnd(24)} ${String(size).padStart(9)} bytes, ${String(small).padStart(9)} compressed${over ? "  too large" : ""}`);
}
process.exit(large ? 1 : 0);
