// The language server with Visual Studio Code's own editor and client library, in Chromium. Usage: node check.mjs EIN FOLDER [FILTER]
//
// FOLDER has the node_modules of package.json beside this file. Screenshots go to FOLDER/screenshots. Visual Studio Code's extension
// starts the server as a process; a page cannot, so each message goes over a socket to a process of its own. With EIN_RECORDINGS,
// a folder, what three of the cases show is kept there.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { record } from "../../web/recording.mjs";

const [ein, folder, filter = ""] = process.argv.slice(2).map((a, k) => (k < 2 ? path.resolve(a) : a));
if (!folder) {
  console.error("usage: node check.mjs EIN FOLDER [FILTER]");
  process.exit(2);
}
const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../../..");
const load = createRequire(path.join(folder, "x.js"));
const { build } = load("esbuild");
const { chromium } = load("playwright-core");
const { WebSocketServer } = load("ws");
const modules = path.join(folder, "node_modules");
const shots = path.join(folder, "screenshots");
fs.mkdirSync(shots, { recursive: true });

// ---- the page --------------------------------------------------------------------------------------------------------

// Files that a module finds beside itself are served from where they lie; scripts among them are workers, bundled too.
const workers = new Set();
const beside = {
  name: "files-beside-modules",
  setup(made) {
    made.onLoad({ filter: /\.js$/, namespace: "file" }, async (args) => {
      const code = await fs.promises.readFile(args.path, "utf8");
      const places = [...code.matchAll(/new URL\(\s*['"`]([^'"`]+)['"`]\s*,\s*import\.meta\.url\s*,?\s*\)/g)];
      let out = "", at = 0;
      for (const place of places) {
        const found = await made.resolve(place[1], { resolveDir: path.dirname(args.path), kind: "dynamic-import" });
        if (found.errors.length > 0) continue;
        if (found.path.endsWith(".js")) workers.add(found.path);
        out += `${code.slice(at, place.index)}new URL(${JSON.stringify(`/beside${found.path}`)}, location.origin)`;
        at = place.index + place[0].length;
      }
      return { contents: out + code.slice(at) };
    });
  },
};
const options = {
  bundle: true, format: "esm", minify: true, nodePaths: [modules], plugins: [beside], logLevel: "error", outbase: "/",
  loader: Object.fromEntries(["ttf", "svg", "png", "mp3", "wasm", "html"].map((e) => [`.${e}`, "file"])),
};
const out = path.join(folder, "page");
fs.rmSync(out, { recursive: true, force: true });
await build({ ...options, entryPoints: [path.join(here, "page.js")], outdir: out, outbase: here });
for (const worker of [...workers].filter((w) => /worker/i.test(w))) {
  await build({ ...options, entryPoints: [worker], outfile: path.join(out, "workers", worker) });
}

const manifest = JSON.parse(fs.readFileSync(path.join(root, "editors/vscode/package.json"), "utf8"));
const files = Object.fromEntries(["language-configuration.json", "syntaxes/ein.tmLanguage.json"].map((name) =>
  [`./${name}`, fs.readFileSync(path.join(root, "editors/vscode", name), "utf8")]));

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm",
  ".svg": "image/svg+xml", ".ttf": "font/ttf", ".png": "image/png" };
const programs = fs.mkdtempSync(path.join(os.tmpdir(), "ein-vscode-"));
const file = path.join(programs, "program.ein"); // lenses run what is saved
let program = "";
const server = http.createServer((request, response) => {
  const name = decodeURIComponent(request.url.split(/[?#]/)[0]);
  const send = (content, type) => {
    response.writeHead(content === null ? 404 : 200, { "content-type": type });
    response.end(content ?? "");
  };
  if (name === "/") {
    const setup = { manifest, files, file, program, socket: `ws://127.0.0.1:${server.address().port}/` };
    send(`<!doctype html><meta charset="utf-8"><title>program.ein</title><link rel="stylesheet" href="page.css">
<style>html, body, #editor { margin: 0; height: 100%; }</style><div id="editor"></div>
<script>window.setup = ${JSON.stringify(setup).replaceAll("<", "\\u003c")};</script><script type="module" src="page.js"></script>`, "text/html");
    return;
  }
  const bundled = path.join(out, "workers", name.replace(/^\/beside/, ""));
  const served = !name.startsWith("/beside") ? path.join(out, name) : fs.existsSync(bundled) ? bundled : name.slice("/beside".length);
  const allowed = served.startsWith(out) || served.startsWith(modules);
  send(allowed && fs.existsSync(served) ? fs.readFileSync(served) : null, TYPES[path.extname(served)] ?? "text/plain");
});

// One server for each page that connects. A message of the socket is one message of the protocol, without its header.
const running = new Set();
new WebSocketServer({ server }).on("connection", (socket) => {
  const child = spawn(ein, ["lsp"], { stdio: ["pipe", "pipe", "ignore"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let waiting = Buffer.alloc(0);
  child.stdout.on("data", (data) => {
    waiting = Buffer.concat([waiting, data]);
    for (;;) {
      const end = waiting.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(waiting.subarray(0, end).toString())[1]);
      if (waiting.length < end + 4 + length) return;
      socket.send(waiting.subarray(end + 4, end + 4 + length).toString());
      waiting = waiting.subarray(end + 4 + length);
    }
  });
  socket.on("message", (message) => child.stdin.write(`Content-Length: ${message.length}\r\n\r\n${message}`));
  socket.on("close", () => child.kill());
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

// ---- what cases use --------------------------------------------------------------------------------------------------

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

const PROGRAM = `let A: [f32; i, k];
let B: [f32; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
let loss = sum[i, j](C[i, j] * C[i, j]);
let dA = @loss / @A;
print("{loss} {dA}");
`;

async function opened(text = PROGRAM) {
  program = text;
  fs.writeFileSync(file, text);
  const page = await browser.newPage({ viewport: { width: 1000, height: 420 } });
  page.wrong = [];
  page.on("pageerror", (e) => page.wrong.push(e.message));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.ready || window.failed, null, { timeout: 120_000 });
  assert.equal(await page.evaluate(() => window.failed), undefined);
  return page;
}
async function closed(page) {
  assert.deepEqual(page.wrong, [], "errors in the page");
  await page.close();
}
const recordings = process.env.EIN_RECORDINGS;
const recorded = (page, name) => (recordings ? record(page, path.join(recordings, name)) : async () => {});
const pause = (page) => page.waitForTimeout(recordings ? 900 : 0); // for those who watch
const delay = recordings ? 70 : 0;
const text = (page) => page.evaluate(() => window.editor.getModel().getValue());
// What Visual Studio Code's own command answers about a place, a line and a column that count from 0.
const ask = (page, command, line, character, ...more) => page.evaluate(async ([name, l, c, rest]) => {
  const uri = window.editor.getModel().uri;
  const place = l === null ? [] : [new window.vscode.Position(l, c)];
  return JSON.parse(JSON.stringify(await window.vscode.commands.executeCommand(name, uri, ...place, ...rest) ?? null));
}, [command, line, character, more]);
const mistakes = (page) => page.evaluate(() => window.vscode.languages.getDiagnostics(window.editor.getModel().uri)
  .map((d) => ({ code: String(d.code?.value ?? d.code), line: d.range.start.line, message: d.message, related: d.relatedInformation?.length ?? 0 })));
async function until(page, wanted, timeout = 20_000) {
  const end = Date.now() + timeout;
  for (;;) {
    const found = await mistakes(page);
    if (wanted(found)) return found;
    assert.ok(Date.now() < end, `diagnostics: ${JSON.stringify(found)}`);
    await page.waitForTimeout(50);
  }
}
const cursor = (page, line, column) => page.evaluate(([l, c]) => {
  window.editor.setPosition({ lineNumber: l + 1, column: c + 1 });
  window.editor.focus();
}, [line, column]);
const shot = (page, name) => page.screenshot({ path: path.join(shots, `${name}.png`) });

// ---- cases -----------------------------------------------------------------------------------------------------------

const cases = {
  async "a mistake is underlined while it is typed, and its fix mends it"() {
    const page = await opened();
    await until(page, (found) => found.length === 0);
    const done = await recorded(page, "mistake_and_fix.png");
    await cursor(page, 6, 0);
    await page.keyboard.type("let twice = los * 2.0;", { delay });
    const [mistake] = await until(page, (found) => found.some((d) => d.code === "E0201"));
    assert.equal(mistake.line, 6);
    await page.locator(".squiggly-error").first().waitFor();
    await pause(page);
    await cursor(page, 6, 13);
    await page.keyboard.press("Control+.");
    await page.locator(".action-widget").getByText("loss").first().waitFor();
    await shot(page, "mistake");
    await pause(page);
    await page.keyboard.press("Enter");
    await until(page, (found) => !found.some((d) => d.code.startsWith("E")));
    await pause(page);
    await done();
    assert.match(await text(page), /let twice = loss \* 2.0;/);
    await closed(page);
  },

  async "pointing at a request shows the derivative and what is summed"() {
    const page = await opened();
    await until(page, (found) => found.length === 0);
    const said = await page.evaluate(async () => (await window.vscode.commands.executeCommand("vscode.executeHoverProvider",
      window.editor.getModel().uri, new window.vscode.Position(4, 11))).flatMap((h) => h.contents).map((c) => c.value).join("\n"));
    assert.match(said, /sum\[j/);
    assert.match(said, /summed/);
    const done = await recorded(page, "hover_on_a_request.png");
    await cursor(page, 4, 11);
    await pause(page);
    await page.evaluate(() => window.editor.trigger("test", "editor.action.showHover", {}));
    await page.locator(".monaco-hover").getByText("summed").first().waitFor();
    await shot(page, "derivative");
    await pause(page);
    await done();
    await closed(page);
  },

  async "ranges stand beside indices, lenses above requests"() {
    const page = await opened("let A = [[1.0, 2.0], [3.0, 4.0]];\nlet s[i] = sum[j](A[i, j]);\nlet t = sum[i](s[i] ** 2.0);\nprint(@t / @s);\n");
    await until(page, (found) => !found.some((d) => d.code.startsWith("E")));
    await page.locator(".view-line", { hasText: "in 0..2" }).first().waitFor();
    await page.locator(".codelens-decoration a").first().waitFor();
    await shot(page, "hints");
    const hints = await ask(page, "vscode.executeInlayHintProvider", null, null,
      { start: { line: 0, character: 0 }, end: { line: 4, character: 0 }, startLineNumber: 1, startColumn: 1, endLineNumber: 5, endColumn: 1 }).catch(() => null);
    if (hints) assert.ok(hints.length >= 2, JSON.stringify(hints));
    const lenses = await ask(page, "vscode.executeCodeLensProvider", null, null);
    assert.ok(lenses.some((l) => l.command?.command === "ein.run"), JSON.stringify(lenses));
    await closed(page);
  },

  async "a coordinate is renamed through the file"() {
    const page = await opened();
    await until(page, (found) => found.length === 0);
    const done = await recorded(page, "rename_of_a_coordinate.png");
    await cursor(page, 2, 18);
    await pause(page);
    await page.keyboard.press("F2");
    await page.locator(".rename-box input").waitFor();
    await page.locator(".rename-box input").fill("depth");
    await shot(page, "rename");
    await pause(page);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => window.editor.getModel().getValue().includes("depth"));
    await pause(page);
    await done();
    assert.match(await text(page), /^let A: \[f32; i, depth\];\nlet B: \[f32; depth, j\];\nlet C\[i, j\] = sum\[depth\]\(A\[i, depth\] \* B\[depth, j\]\);/);
    await until(page, (found) => found.length === 0);
    await closed(page);
  },

  async "completion brings a library function with its import"() {
    const page = await opened("let x[i] = [1.0, 2.0, 3.0];\nprint(x);\n");
    await until(page, (found) => !found.some((d) => d.code.startsWith("E")));
    await cursor(page, 2, 0);
    await page.keyboard.type("let y[i] = softm", { delay: 60 });
    await page.locator(".suggest-widget .monaco-list-row", { hasText: "softmax" }).first().waitFor();
    await shot(page, "completion");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /use std::/.test(window.editor.getModel().getValue()));
    assert.match(await text(page), /softmax/);
    await closed(page);
  },

  async "every other feature answers through the client"() {
    const page = await opened();
    await until(page, (found) => found.length === 0);
    const definition = await ask(page, "vscode.executeDefinitionProvider", 2, 21);
    assert.equal(definition[0].range[0].line, 0);
    assert.equal((await ask(page, "vscode.executeReferenceProvider", 2, 18)).length, 5);
    assert.equal((await ask(page, "vscode.executeDocumentHighlights", 2, 18)).length, 3);
    const help = await ask(page, "vscode.executeSignatureHelpProvider", 2, 22);
    assert.match(help.signatures[0].label, /sum/);
    const symbols = await ask(page, "vscode.executeDocumentSymbolProvider", null, null);
    assert.deepEqual(symbols.map((s) => s.name), ["A", "B", "C", "loss", "dA"]);
    const legend = await ask(page, "vscode.provideDocumentSemanticTokensLegend", null, null);
    for (const kind of ["index", "coordinate", "input", "request"]) assert.ok(legend.tokenTypes.includes(kind), kind);
    await cursor(page, 4, 0);
    await page.keyboard.type("   ");
    await page.evaluate(() => window.editor.getAction("editor.action.formatDocument").run());
    await page.waitForFunction((wanted) => window.editor.getModel().getValue() === wanted, PROGRAM);
    // A word of the grammar and one of the server have their colours.
    const colours = await page.evaluate(() => new Set([...document.querySelectorAll(".view-line span span")].map((s) => getComputedStyle(s).color)).size);
    assert.ok(colours >= 4, `${colours} colours`);
    await closed(page);
  },

  async "a lens runs the program"() {
    const page = await opened("let x = [1.0, 2.0];\nprint(sum[i](x[i]));\n");
    await until(page, (found) => !found.some((d) => d.code.startsWith("E")));
    const lens = page.locator(".codelens-decoration a", { hasText: /run/i }).first();
    await lens.waitFor();
    await lens.click();
    await page.waitForFunction(() => window.output.length > 0, null, { timeout: 30_000 });
    const [ran] = await page.evaluate(() => window.output);
    assert.equal(ran.result.status, 0, JSON.stringify(ran));
    assert.match(ran.result.output, /3/);
    await closed(page);
  },

  async "text in other scripts keeps places right"() {
    const page = await opened("// 日本 👩‍👩‍👧\nlet x[i] = [1.0, 2.0];\nprint(\"👩‍👩‍👧 {y}\");\n");
    const [mistake] = await until(page, (found) => found.some((d) => d.code === "E0201"));
    assert.equal(mistake.line, 2);
    await cursor(page, 0, 3);
    for (const piece of ["é", "𝛼", "\n// "]) await page.keyboard.insertText(piece);
    await until(page, (found) => found.some((d) => d.code === "E0201" && d.line === 3));
    await closed(page);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  if (!name.includes(filter)) continue;
  try {
    await run();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
    for (const context of browser.contexts()) {
      for (const page of context.pages()) {
        console.log(page.wrong.join("\n"));
        await shot(page, "failed");
        await page.close();
      }
    }
  }
}
await browser.close();
fs.rmSync(programs, { recursive: true });
for (const child of running) child.kill();
server.close();
console.log(failed ? `${failed} failed` : `screenshots: ${shots}`);
process.exit(failed ? 1 : 0);
