// The playground as somebody uses it, in Chromium. Usage: node page.mjs EIN FOLDER NODE_MODULES [FILTER]
//
// FOLDER is what `make playground` makes. Screenshots go to FOLDER/../screenshots. Each case has a page of its own. With
// EIN_RECORDINGS, a folder, what two of the cases show is kept there.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { instantiate } from "../../web/src/module.js";
import { record } from "./recording.mjs";

const [ein, folder, node_modules, filter = ""] = process.argv.slice(2).map((a, k) => (k < 3 ? path.resolve(a) : a));
if (!node_modules) {
  console.error("usage: node page.mjs EIN FOLDER NODE_MODULES [FILTER]");
  process.exit(2);
}
const { chromium } = createRequire(path.join(node_modules, "x.js"))("playwright-core");
const shots = path.join(folder, "..", "screenshots");
fs.mkdirSync(shots, { recursive: true });

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };
const server = http.createServer((request, response) => {
  const name = request.url.split(/[?#]/)[0];
  fs.readFile(path.join(folder, name === "/" ? "index.html" : name), (error, content) => {
    response.writeHead(error ? 404 : 200, { "content-type": TYPES[path.extname(name) || ".html"] ?? "text/plain" });
    response.end(error ? "" : content);
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;
const gallery = JSON.parse(fs.readFileSync(path.join(folder, "gallery.json"), "utf8"));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

// ---- what cases use ------------------------------------------------------------------------------------------------

const measured = {};
const recordings = process.env.EIN_RECORDINGS;
const recorded = (page, name) => (recordings ? record(page, path.join(recordings, name)) : async () => {});
const pause = (page) => page.waitForTimeout(recordings ? 900 : 0); // for those who watch
async function opened({ url = address, wait = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1366, height: 820 }, ...options });
  const page = await context.newPage();
  page.wrong = [];
  page.on("pageerror", (e) => page.wrong.push(e.message));
  page.on("console", (m) => m.type() === "error" && !/favicon/.test(m.text()) && page.wrong.push(m.text()));
  await page.goto(url);
  if (wait) await page.waitForSelector("#output > *", { timeout: 30_000 });
  return page;
}
async function closed(page) {
  assert.deepEqual(page.wrong, [], "errors in the console");
  await page.context().close();
}
// Puts a program in place of the one that is there, as somebody who pastes it.
async function paste(page, source) {
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(source);
}
const output = (page) => page.locator("#output");
const shows = (locator, text, timeout = 15_000) => locator.filter({ hasText: text }).first().waitFor({ timeout });
const tab = (page, name) => page.locator(`[data-tab="${name}"]`).click();

// Takes no memory, and hours.
const ENDLESS = "print(sum[i in 0..10000000, j in 0..10000000](sin((i * j) as f32)));\n";

// ---- cases ---------------------------------------------------------------------------------------------------------

const cases = {
  async "opens with a program, its values and its derivative"() {
    const begin = Date.now();
    const page = await opened();
    await shows(output(page), "loss 0.50");
    measured["first output of a fresh page, ms"] = Date.now() - begin;
    await shows(page.locator("#derivative"), "d_loss_d_y");
    assert.ok(await page.locator("#output canvas").count() >= 2, "heat maps");
    await page.waitForTimeout(400);
    await page.screenshot({ path: path.join(shots, "desktop.png") });
    await closed(page);
  },

  async "a mistake is underlined, explained and fixed"() {
    const page = await opened();
    const done = await recorded(page, "playground_mistake_and_fix.png");
    await paste(page, "let A[i] = [1.0, 2.0, 3.0];\nlet total = sum[i](A[i]);\nprint(totl)\n");
    await page.locator(".cm-lintRange-error").first().waitFor();
    await shows(page.locator("#output .wrong"), "E0201");
    await pause(page);
    await page.locator(".cm-lintRange-error").first().hover();
    await page.locator(".cm-diagnosticAction").first().waitFor();
    await page.screenshot({ path: path.join(shots, "mistake.png") });
    await pause(page);
    await page.locator(".cm-diagnosticAction").first().click();
    await shows(output(page).locator(".printed"), "6.0");
    await pause(page);
    await done();
    assert.equal(await page.locator(".cm-lintRange-error").count(), 0);
    await closed(page);
  },

  async "typing completes names, and pointing at one says what it is"() {
    const page = await opened();
    await paste(page, "let weights[i, j] = [[1.0, 2.0], [3.0, 4.0]];\nprint(");
    await page.keyboard.type("weig", { delay: 60 });
    await page.locator(".cm-tooltip-autocomplete").getByText("weights").first().waitFor();
    await page.waitForTimeout(400);  // a list that has just appeared takes no keys yet
    await page.keyboard.press("Enter");
    await page.keyboard.insertText(")");
    await shows(output(page).locator(".printed"), "[i: 2, j: 2]");
    await page.locator("#editor .cm-line").first().locator("text=weights").hover();
    await page.locator(".cm-tooltip-hover, .cm-lsp-hover-tooltip").first().waitFor();
    await shows(page.locator(".cm-tooltip"), "f32");
    await closed(page);
  },

  async "the gradient of one's own formula, by choosing two names"() {
    const page = await opened();
    await paste(page, "let a[i] = [1.0, 2.0, 3.0];\nlet f = sum[i](sin(a[i]) * a[i]);\n");
    await page.locator('#of option[value="f"]').waitFor({ state: "attached" });
    await page.locator("#of").selectOption("f");
    await page.locator("#by").selectOption("a");
    await shows(page.locator("#derivative"), "cos(a[");
    await shows(page.locator("#derivative"), "1.3818");  // sin(1) + cos(1)
    await page.screenshot({ path: path.join(shots, "chosen.png") });
    // The same by Alt-click.
    await page.locator("#of").selectOption("");
    await page.locator("#by").selectOption("");
    await page.locator("#editor .cm-line").nth(1).getByText("f", { exact: true }).click({ modifiers: ["Alt"] });
    await page.mouse.move(2, 2);  // what the page says about `f` goes away
    await page.locator(".cm-tooltip").first().waitFor({ state: "detached" });
    await page.locator("#editor .cm-line").nth(0).getByText("a", { exact: true }).click({ modifiers: ["Alt"] });
    await shows(page.locator("#derivative"), "d_f_d_a");
    await closed(page);
  },

  async "a dragged number moves the plot and its derivative"() {
    const page = await opened();
    await page.locator("#gallery").selectOption({ label: "Heat in a rod" });
    await shows(output(page), "at 20: 0.1233");
    const number = page.locator("#editor .dragged-number", { hasText: "0.20" });
    const box = await number.boundingBox();
    const done = await recorded(page, "playground_dragged_number.png");
    await page.mouse.move(box.x + 10, box.y + 8);
    await page.mouse.down();
    const spent = [];
    for (let k = 1; k <= 6; k++) {
      spent.push(await page.evaluate(([x, y]) => new Promise((resolve) => {
        const old = document.querySelector("#output img").src;
        const begin = performance.now();
        new MutationObserver((changes, observer) => {
          if (document.querySelector("#output img")?.src === old) return;
          observer.disconnect();
          resolve(performance.now() - begin);
        }).observe(document.getElementById("output"), { childList: true, subtree: true });
        window.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, cancelable: true }));
      }), [box.x + 10 + 4 * k, box.y + 8]));
    }
    spent.sort((a, b) => a - b);
    measured["from a move of a drag to a new picture, median of 6, ms"] = spent[3].toFixed(0);
    await page.mouse.up();
    await shows(page.locator("#editor"), "0.26");
    await shows(page.locator("#derivative"), "0.26");
    await page.waitForTimeout(300);
    await pause(page);
    await done();
    await page.screenshot({ path: path.join(shots, "dragged.png") });
    // The keyboard does the same.
    await page.locator("#editor .dragged-number", { hasText: "0.26" }).click();
    await page.keyboard.press("Alt+ArrowUp");
    await shows(page.locator("#editor"), "0.27");
    await closed(page);
  },

  async "a coordinate lights up everywhere and says why it is summed"() {
    const page = await opened();
    await shows(page.locator("#derivative"), "d_loss_d_y");
    await page.waitForTimeout(500);
    await page.locator('#editor [data-coord="n"]').first().hover();
    await shows(page.locator("#said"), "y has it, W does not");
    for (const panel of ["editor", "derivative", "output"]) {
      const lit = await page.locator(`#${panel} .coord`).evaluateAll((all) =>
        all.filter((e) => getComputedStyle(e).boxShadow !== "none").map((e) => e.dataset.coord));
      assert.ok(lit.length > 0 && lit.every((name) => name === "n"), `${panel}: ${lit}`);
    }
    const styles = await page.locator('#editor [data-coord]').evaluateAll((all) =>
      Object.fromEntries(all.map((e) => [e.dataset.coord, getComputedStyle(e).color + getComputedStyle(e).textDecoration])));
    assert.equal(new Set(Object.values(styles)).size, Object.keys(styles).length, "each coordinate looks different");
    await page.screenshot({ path: path.join(shots, "lit.png") });
    await closed(page);
  },

  async "the derivative is walked step by step, and tied to the source"() {
    const page = await opened();
    await tab(page, "walk");
    await shows(page.locator("#walk"), "step 1 of");
    await page.locator("#editor .shown").first().waitFor();
    await page.locator("#walk .moves button").nth(1).click();
    await shows(page.locator("#walk"), "step 2 of");
    await page.screenshot({ path: path.join(shots, "walk.png") });
    await tab(page, "coordinates");
    await shows(page.locator("#coordinates"), "Σ");
    await page.screenshot({ path: path.join(shots, "coordinates.png") });
    await tab(page, "reports");
    await shows(page.locator("#reports"), "is repeated along");
    await tab(page, "derivative");
    await page.locator("#derivative .tied").last().hover();
    await page.locator("#editor .shown").first().waitFor();
    await closed(page);
  },

  async "a shared address opens the same program"() {
    const page = await opened();
    const source = "let größe[i] = [1.0, 2.0];\nprint(\"π ≈ {sum[i](größe[i])} 𝛁\")\n".replaceAll("größe", "size");
    await paste(page, source);
    await shows(output(page).locator(".printed"), "π ≈ 3.0 𝛁");
    await page.locator("#share").click();
    await page.waitForFunction(() => location.hash.startsWith("#1"));
    const other = await opened({ url: page.url() });
    await shows(output(other).locator(".printed"), "π ≈ 3.0 𝛁");
    await closed(other);
    const damaged = await opened({ url: `${address}#1@@@` });
    await shows(damaged.locator("#notice"), "damaged");
    await shows(output(damaged), "loss");
    await closed(damaged);
    await closed(page);
  },

  async "every program of the gallery"() {
    const page = await opened();
    const times = [];
    for (const entry of gallery.filter((e) => e.source)) {
      await output(page).evaluate((e) => e.replaceChildren());
      const begin = Date.now();
      await page.locator("#gallery").selectOption({ label: entry.title });
      await page.waitForSelector("#output > *", { timeout: 20_000 });
      times.push([Date.now() - begin, entry.title]);
      const wrong = await page.locator("#output .wrong").count();
      assert.equal(wrong > 0, Boolean(entry.wrong), `${entry.title}: ${await output(page).innerText()}`);
      if (entry.of || /@/.test(entry.source)) {
        await page.waitForFunction(() => document.querySelectorAll("#derivative .line").length > 0 || document.querySelector("#derivative .wrong"));
        if (!entry.wrong) assert.equal(await page.locator("#derivative .wrong").count(), 0, `${entry.title}: derivative`);
      }
    }
    times.sort((a, b) => b[0] - a[0]);
    measured["slowest programs of the gallery, ms"] = times.slice(0, 4).map((t) => t.join(" ")).join(", ");
    await closed(page);
  },

  async "an endless program is stopped, by hand and by the clock"() {
    const page = await opened();
    await paste(page, ENDLESS);
    await page.waitForFunction(() => !document.getElementById("stop").disabled);
    await page.waitForTimeout(700);
    await page.locator("#stop").click();
    await shows(output(page), "stopped");
    await page.locator("#run").click();
    await shows(output(page), "more than 10 seconds", 20_000);
    await paste(page, "print(6 * 7)");
    await page.locator("#run").click();
    await shows(output(page).locator(".printed"), "42");
    await closed(page);
  },

  async "a program that needs too much memory, and one that nests too deeply"() {
    const page = await opened();
    await paste(page, "let a[i in 0..20000, j in 0..20000] = 1.0;\nprint(sum[i, j](a[i, j]));\n");
    await shows(output(page), "memory");
    await paste(page, "fn down(n: i64) -> i64 { if n == 0 { 0 } else { 1 + down(n - 1) } }\nprint(down(9000));\n");
    await shows(output(page), "nests too deeply");
    await paste(page, "print(6 * 7)");
    await shows(output(page).locator(".printed"), "42");
    await closed(page);
  },

  async "on a phone"() {
    const page = await opened({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
    await shows(output(page), "loss");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} pixels too wide`);
    await page.screenshot({ path: path.join(shots, "phone.png") });
    for (const name of ["derivative", "walk", "coordinates", "reports", "output"]) {
      await page.locator(`[data-tab="${name}"]`).tap();
      await page.locator(`#${name}`).waitFor();
      await page.waitForFunction((id) => document.getElementById(id).childElementCount > 0, name);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${name}: ${over} pixels too wide`);
      await page.screenshot({ path: path.join(shots, `phone-${name}.png`) });
    }
    await page.locator('#editor [data-coord="out"]').first().tap();
    await shows(page.locator("#said"), "out");
    await closed(page);
  },

  async "in the dark"() {
    const page = await opened({ colorScheme: "dark" });
    await shows(page.locator("#derivative"), "d_loss_d_y");
    await page.waitForTimeout(400);
    await page.screenshot({ path: path.join(shots, "dark.png") });
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.ok(background.match(/\d+/g).every((c) => Number(c) < 60), background);
    await page.locator("#theme").click();
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.ok(light.match(/\d+/g).every((c) => Number(c) > 200), light);
    await closed(page);
  },

  async "with the keyboard alone"() {
    const page = await opened();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "gallery");
    await page.locator("#tab-derivative").focus();
    await page.keyboard.press("ArrowRight");
    await shows(page.locator("#walk"), "step 1 of");
    await page.keyboard.press("ArrowRight");
    await shows(page.locator("#coordinates"), "Σ");
    await page.locator("#coordinates button.coord").first().focus();
    await page.locator("#said").waitFor();
    await page.locator("#auto").uncheck();
    await paste(page, "print(6 * 7)");
    await page.waitForTimeout(600);
    await page.keyboard.press("Control+Enter");
    await shows(output(page).locator(".printed"), "42");
    await closed(page);
  },

  async "one file, from a file: address, without a network"() {
    const page = await opened({ url: `file://${path.join(folder, "playground.html")}`, offline: true });
    await shows(output(page), "loss 0.50");
    await shows(page.locator("#derivative"), "d_loss_d_y");
    await paste(page, "print(6 * 7)");
    await shows(output(page).locator(".printed"), "42");
    await closed(page);
  },

  async "another page runs programs through runner.js"() {
    const page = await opened({ url: `${address}gallery.json`, wait: false });
    const got = await page.evaluate(async ([base, endless]) => {
      const { createRunner } = await import(`${base}runner.js`);
      const { encode, decode } = await import(`${base}address.js`);
      const runner = createRunner({ seconds: 2 });
      const source = 'let y[i in 0..3] = 2.0 * (i as f32);\nsave("y.txt", "{y}");\nprint(y);';
      const run = await runner.request({ verb: "run", source, values: true });
      const wrong = await runner.request({ verb: "check", source: "print(x)" });
      const grad = await runner.request({ verb: "grad", source: "let x = 2.0; let y = x ** 2.0;", of: "y", wrt: ["x"] });
      const late = await runner.request({ verb: "run", source: endless });
      const after = await runner.request({ verb: "run", source: "print(1 + 1)" });
      const none = await runner.request({ verb: "dance" });
      return { run, wrong, grad, late, after, none, same: (await decode(await encode(source))) === source };
    }, [address, ENDLESS]);
    assert.equal(got.run.status, 0, got.run.stderr);
    assert.equal(got.run.stdout, "[i: 3] [0.0, 2.0, 4.0]\n");
    assert.deepEqual(got.run.files, [{ name: "y.txt", text: "[i: 3] [0.0, 2.0, 4.0]" }]);
    assert.deepEqual(got.run.values[0].cells, [0, 2, 4]);
    assert.equal(got.wrong.status, 1);
    assert.equal(got.wrong.diagnostics[0].code, "E0201");
    assert.match(got.grad.stdout, /2\.0 \* x/);
    assert.equal(got.late.stopped, "time");
    assert.equal(got.after.stdout, "2\n");
    assert.equal(got.none.status, 2);
    assert.ok(got.same);
    await page.context().close();
  },

  async "200 runs without growth"() {
    const module = await instantiate(await WebAssembly.compile(fs.readFileSync(path.join(folder, "ein.wasm"))));
    const entry = gallery.find((e) => e.title === "Attention");
    let early = 0;
    const times = [];
    for (let k = 0; k < 200; k++) {
      const begin = performance.now();
      for (const verb of ["check", "run", "grad", "explain"]) module.answer({ verb, source: entry.source, values: true });
      times.push(performance.now() - begin);
      if (k === 19) early = module.bytes();
    }
    measured["memory of the module after 20 and 200 rounds, MB"] = [early, module.bytes()].map((b) => (b / 1e6).toFixed(1)).join(", ");
    times.sort((a, b) => a - b);
    measured["check, run, grad and explain of one program, median ms"] = times[100].toFixed(0);
    assert.ok(module.bytes() <= early * 1.1, "it grows");
  },

  async "ein explore serves a file and follows it"() {
    const place = fs.mkdtempSync(path.join(os.tmpdir(), "explore-"));
    const file = path.join(place, "mine.ein");
    fs.writeFileSync(path.join(place, "half.ein"), "pub fn half(x: f32) -> f32 { 0.5 * x }\n");
    fs.writeFileSync(path.join(place, "data.csv"), "1.5\n2.5\n");
    fs.writeFileSync(file, 'use half::half;\nlet d[i] = load("data.csv");\nlet y = half(sum[i](d[i]));\nlet g = @y / @d;\nprint("y {y}");\n');
    const child = spawn(ein, ["explore", file, "--page", path.join(folder, "playground.html")], { stdio: ["ignore", "pipe", "pipe"] });
    try {
      const url = (await new Promise((resolve) => child.stdout.once("data", resolve))).toString().trim();
      const page = await opened({ url });
      await shows(output(page).locator(".printed"), "y 2.0");
      await shows(page.locator("#file"), "mine.ein");
      await page.screenshot({ path: path.join(shots, "explore.png") });
      fs.writeFileSync(file, 'print("changed {6 * 7}");\n');
      await shows(output(page).locator(".printed"), "changed 42");
      await paste(page, ENDLESS);
      await page.waitForFunction(() => !document.getElementById("stop").disabled);
      await page.waitForTimeout(500);
      await page.locator("#stop").click();
      await shows(output(page), "stopped");
      await closed(page);
      const bare = await fetch(new URL("/answer", url), { method: "POST", body: "{}" });
      assert.equal(bare.status, 403, "no answer without the token");
    } finally {
      child.kill();
      fs.rmSync(place, { recursive: true });
    }
  },
};

// ---- all of them -----------------------------------------------------------------------------------------------------

let failed = 0;
let ran = 0;
for (const [name, body] of Object.entries(cases)) {
  if (!name.includes(filter)) continue;
  ran++;
  const begin = Date.now();
  try {
    await body();
    console.log(`fine: ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (e) {
    failed++;
    console.log(`FAILED: ${name}\n${String(e.stack ?? e).split("\n").slice(0, 12).join("\n")}`);
    for (const context of browser.contexts()) {
      for (const page of context.pages()) await page.screenshot({ path: path.join(shots, "failed.png") }).catch(() => {});
      await context.close();
    }
  }
}
for (const [what, figure] of Object.entries(measured)) console.log(`${what}: ${figure}`);
console.log(`${ran - failed} of ${ran} fine; screenshots in ${path.relative(process.cwd(), shots)}`);
await browser.close();
server.close();
process.exit(failed || !ran ? 1 : 0);
