// Tests of the site. Usage: node check.mjs ROOT WORK EIN CHROMIUM [WEB]
//
// Builds the site into WORK with a stand-in for the playground, whose Run asks this program to run EIN. Then: the build stops at a
// dead link, a dead anchor and a page that is too large; every program that has a Run does what its page says; and in Chromium
// search, navigation, Run, Open, phone width, light and dark work. Screenshots stay in WORK/shots. If WEB holds the real playground, the
// site is built with that too, and programs run in it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const [root, work, ein, browserPath, web] = process.argv.slice(2).map((p) => path.resolve(p));
const here = import.meta.dirname;
let site = path.join(work, "site"); // what the server serves
const shots = path.join(work, "shots");
fs.rmSync(work, { recursive: true, force: true });
fs.mkdirSync(shots, { recursive: true });

function build(from, to, playground = path.join(here, "standin")) {
  const done = spawnSync("node", [path.join(here, "site.mjs"), from, to, playground], { encoding: "utf8" });
  return { status: done.status, text: done.stdout + done.stderr };
}

// ---- the build, and what it must refuse ----

const built = build(root, site);
assert.equal(built.status, 0, built.text);
console.log(built.text.trim());

const small = path.join(work, "small");
function refuses(name, text, expected) {
  fs.rmSync(small, { recursive: true, force: true });
  for (const file of ["tools/site/start.md", "docs/README.md", "docs/tour.md", "docs/cookbook/index.md"]) {
    fs.mkdirSync(path.dirname(path.join(small, file)), { recursive: true });
    fs.writeFileSync(path.join(small, file), "# Start\n\n## First part\n");
  }
  fs.cpSync(path.join(root, "editors/vscode/syntaxes"), path.join(small, "editors/vscode/syntaxes"), { recursive: true });
  fs.writeFileSync(path.join(small, "docs/page.md"), text);
  const { status, text: said } = build(small, path.join(work, "small-site"));
  assert.equal(status, expected ? 1 : 0, `${name}: ${said}`);
  if (expected) assert.ok(said.includes(expected), `${name}: ${said}`);
}
refuses("a good page", "# Page\n\n[a](README.md#first-part) [b](#page)\n", null);
refuses("a dead link", "# Page\n\n[a](nowhere.md)\n", "docs/page.md: nowhere.md is not there");
refuses("a dead anchor", "# Page\n\n[a](README.md#second-part)\n", "page.html: contents.html#second-part is no section");
refuses("a dead anchor of its own", "# Page\n\n[a](#elsewhere)\n", "page.html: #elsewhere is no section");
refuses("a page that is too large", "# Page\n\n" + "many words ".repeat(12000), "page.html has 1");
console.log("refused: dead links, dead anchors, a page that is too large");

// ---- every program that can be run ----

function run(source) {
  return new Promise((resolve) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ein-site-"));
    const child = spawn(ein, ["run", "-", "--backend", "ref"], { cwd: folder, env: { ...process.env, NO_COLOR: "1" } });
    let stdout = "";
    let stderr = "";
    const limit = setTimeout(() => child.kill(), 60000);
    child.stdout.on("data", (part) => (stdout += part));
    child.stderr.on("data", (part) => (stderr += part));
    child.on("close", (status) => {
      clearTimeout(limit);
      const files = fs.readdirSync(folder).map((name) => ({ name, text: fs.readFileSync(path.join(folder, name), "utf8") }));
      fs.rmSync(folder, { recursive: true, force: true });
      resolve({ status, stdout, stderr, files, diagnostics: [] });
    });
    child.stdin.on("error", () => {});
    child.stdin.end(source);
  });
}

const unescape = (html) => html.replace(/<[^>]*>/g, "").replace(/&(amp|lt|gt|quot);/g, (all, name) => ({ amp: "&", lt: "<", gt: ">", quot: '"' })[name]);

function programs() {
  const found = [];
  for (const file of fs.readdirSync(site, { recursive: true }).filter((name) => name.endsWith(".html") && !name.startsWith("files/"))) {
    for (const [figure] of fs.readFileSync(path.join(site, file), "utf8").matchAll(/<figure class=ein.*?<\/figure>/gs)) {
      if (!figure.includes("class=run")) continue;
      const use = /data-use="([^"]*)"/.exec(figure);
      const told = /<div class=told>It prints<\/div><pre class=out[^>]*>(.*?)<\/pre>/s.exec(figure);
      found.push({
        file,
        source: (use ? use[1] + "\n" : "") + unescape(/<code>(.*?)<\/code>/s.exec(figure)[1]) + "\n",
        fails: figure.includes("class=\"bad\""),
        expected: told && unescape(told[1]),
      });
    }
  }
  return found;
}

async function checkPrograms() {
  const all = programs();
  assert.ok(all.length > 300, `only ${all.length} programs have Run`);
  const queue = [...all];
  const wrong = [];
  const worker = async () => {
    for (let one = queue.shift(); one; one = queue.shift()) {
      const { status, stdout, stderr } = await run(one.source);
      const good = one.fails ? status !== 0 : status === 0 && (one.expected === null || stdout === one.expected);
      if (!good) wrong.push(`${one.file}: status ${status}\n${one.source}${stdout}${stderr}`);
    }
  };
  await Promise.all([worker(), worker()]);
  assert.deepEqual(wrong, [], `${wrong.length} of ${all.length} programs with Run do not do what their page says:\n${wrong.join("\n")}`);
  console.log(`${all.length} programs with Run do what their pages say`);
}
await checkPrograms();

// ---- a browser ----

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };
const server = http.createServer(async (request, response) => {
  if (request.method === "POST") {
    let body = "";
    for await (const part of request) body += part;
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify(await run(JSON.parse(body).source)));
  }
  const file = path.join(site, decodeURIComponent(new URL(request.url, "http://x").pathname));
  if (!file.startsWith(site) || !fs.existsSync(file) || fs.statSync(file).isDirectory()) {
    response.statusCode = 404;
    return response.end();
  }
  response.setHeader("content-type", types[path.extname(file)] ?? "application/octet-stream");
  return response.end(fs.readFileSync(file));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const faults = [];
async function open(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1366, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`${address}: ${error}`));
  page.on("response", (response) => response.status() >= 400 && faults.push(`${response.url()}: ${response.status()}`));
  await page.goto(base + address);
  return page;
}
const shot = (page, name, fullPage = false) => page.screenshot({ path: path.join(shots, `${name}.png`), fullPage });

async function search() {
  const page = await open("index.html");
  const questions = {
    cross_entropy: "library/loss.html#cross_entropy", softmax: "library/nn_activations.html#softmax", kalman: "cookbook/sequences.html#kalman-filter",
    E0301: "errors/E0301.html", "grad-memory": "", jacobain: "", "until converged": "cookbook/sequences.html#newtons-method-until-it-has-converged",
    rearrange: "cheat_sheet.html#einops-and-einsum",
  };
  await page.keyboard.press("/");
  const times = [];
  for (const [question, expected] of Object.entries(questions)) {
    await page.fill(".search input", question);
    await page.waitForSelector(".found a");
    await page.waitForTimeout(50);
    const found = await page.$$eval(".found a", (links) => links.map((link) => link.getAttribute("href")));
    assert.ok(found.length && found.slice(0, 3).some((href) => href.endsWith(expected)), `${question}: ${found}`);
    times.push(Number(await page.getAttribute(".found", "data-ms")));
  }
  await shot(page, "search");
  await page.fill(".search input", "qqzzxx");
  await page.waitForSelector(".found p");
  await page.fill(".search input", "kalman filter");
  await page.waitForSelector(".found a");
  await page.keyboard.press("Enter");
  await page.waitForURL(/sequences\.html#kalman-filter/);
  console.log(`search: slowest of ${times.length} answers ${Math.max(...times)} ms`);
  return times;
}

async function navigation() {
  const page = await open("tour.html");
  await page.click("#pages a[aria-current] + a");
  await page.waitForURL(/cheat_sheet\.html/);
  await page.click(".next a[rel=next]");
  await page.waitForURL(/from_pytorch\.html/);
  await page.goto(base + "reference.html");
  assert.ok(await page.locator(".toc").evaluate((toc) => toc.open));
  await page.click('.toc a:has-text("12. ")');
  await page.waitForURL(/reference-\d\.html#12/);
  await page.goto(base + "reference.html#15-not-supported-yet");
  await page.waitForURL(/reference-\d\.html#15-not-supported-yet/);
  await page.goto(base + "reference-2.html#12-printing-inputs-exit-statuses");
  await shot(page, "reference");
  const seen = await page.evaluate(() => document.getElementById(location.hash.slice(1)).getBoundingClientRect().top);
  assert.ok(seen >= 0 && seen < 300, `the section is at ${seen}`);
  await page.context().close();
}

async function runs() {
  const page = await open("cookbook/arrays.html");
  const figure = page.locator("figure.ein").first();
  await figure.locator(".run").click();
  await figure.locator(".live").waitFor();
  assert.equal(await figure.locator(".live").textContent(), "It ran here, and printed the same");
  await figure.evaluate((element) => { element.querySelector("code").textContent = 'print("another program", 1 + 1);'; });
  await figure.locator(".run").click();
  await figure.locator(".live .out").waitFor();
  assert.equal(await figure.locator(".live .out").textContent(), "another program 2\n");
  await page.reload();
  await figure.locator(".open").click();
  await page.waitForURL(/playground\/index\.html#0/);
  const source = Buffer.from(new URL(page.url()).hash.slice(2).replaceAll("-", "+").replaceAll("_", "/"), "base64").toString();
  assert.ok(source.startsWith("let value = ["), source);
  await page.goto(base + "errors/E0301.html");
  const bad = page.locator("figure.ein").first();
  await bad.locator(".run").click();
  await bad.locator(".live.failed").waitFor();
  assert.match(await bad.locator(".live .out").textContent(), /E0301/);
  await shot(page, "failed");
  await page.goto(base + "library/linalg.html");
  const example = page.locator("figure.ein[data-use]").first();
  await example.locator(".run").click();
  await example.locator(".live:not(.failed)").waitFor();
  await page.goto(base + "cookbook/files.html");
  const drawing = page.locator("figure.ein").filter({ hasText: "heatmap" });
  await drawing.locator(".run").click();
  await drawing.locator(".live img").first().waitFor();
  await shot(page, "drawing");
  // A runner that breaks is reported, and the next attempt begins anew.
  await page.route("**/run", (route) => route.abort(), { times: 1 });
  await drawing.locator(".run").click();
  await drawing.locator(".live.failed").waitFor();
  await drawing.locator(".run").click();
  await drawing.locator(".live img").first().waitFor();
  await page.context().close();
}

async function widths() {
  const files = fs.readdirSync(site, { recursive: true }).filter((name) => name.endsWith(".html") && !name.startsWith("playground/"));
  const page = await open("index.html", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
  for (const file of files.filter((name, at) => !/^(errors|files)\//.test(name) || at % 10 === 0)) {
    await page.goto(base + file);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${file} is ${wide} wide on a phone of 360`);
  }
  await page.goto(base + "index.html");
  await shot(page, "phone-start");
  await page.click(".menu");
  await page.waitForTimeout(100);
  await shot(page, "phone-menu");
  await page.click("#pages summary:has-text('Guides')");
  await page.click("#pages a:has-text('Training')");
  await page.waitForURL(/training\.html/);
  await page.goto(base + "cookbook/matrices.html");
  await shot(page, "phone-cookbook");
  await page.click(".toc summary");
  await page.click(".toc a:has-text('Ridge')");
  await page.waitForURL(/#ridge-regression/);
  await page.context().close();
}

async function themes() {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("index.html", { colorScheme });
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const first = await back();
    assert.equal(first === "rgb(255, 255, 255)", colorScheme === "light", first);
    await shot(page, `start-${colorScheme}`, true);
    await page.goto(base + "tour.html");
    await shot(page, `tour-${colorScheme}`);
    await page.click(".theme");
    assert.notEqual(await back(), first);
    await page.reload();
    assert.notEqual(await back(), first, "the choice of a theme is kept");
    await page.context().close();
  }
}

async function withoutScript() {
  const page = await open("cheat_sheet.html", { javaScriptEnabled: false });
  assert.ok((await page.locator("main").innerText()).includes("rearrange"));
  assert.equal(await page.locator(".search").isVisible(), false);
  assert.ok(await page.locator("figure.ein .out").first().isVisible());
  assert.equal(await page.locator(".run").first().isVisible(), false, "a Run that cannot run");
  await page.click("#pages a:has-text('Glossary')");
  assert.match(page.url(), /glossary\.html/);
  await page.context().close();
}

// The real playground: what a program prints there is what the page says, and an error is an error.
async function realPlayground() {
  if (!web || !fs.existsSync(path.join(web, "runner.js"))) {
    console.error(`site: THE REAL PLAYGROUND IS NOT TESTED: there is no ${web ?? "WEB"}/runner.js (\`make playground\` makes it)`);
    return;
  }
  site = path.join(work, "real");
  const { status, text } = build(root, site, web);
  assert.equal(status, 0, text);
  for (const address of ["index.html", "cookbook/arrays.html", "cookbook/derivatives.html", "cookbook/sequences.html"]) {
    const page = await open(address);
    for (const figure of (await page.locator("figure.ein:has(.run)").all()).slice(0, 4)) {
      const fails = (await figure.locator(".bad").count()) > 0;
      await figure.locator(".run").click();
      await figure.locator(".live").waitFor({ timeout: 60000 });
      const said = await figure.locator(".live").textContent();
      if (fails) assert.match(said, /status 1.*E\d{4}/s, address);
      else assert.equal(said, "It ran here, and printed the same", `${address}: ${await figure.locator("code").textContent()}`);
    }
    await page.locator(".open").first().click();
    await page.waitForURL(/playground\/index\.html#.+/);
    await page.context().close();
  }
  console.log("the real playground runs programs of the site, and opens them");
}

await search();
await navigation();
await runs();
await widths();
await themes();
await withoutScript();
await realPlayground();
assert.deepEqual(faults.filter((fault) => !fault.includes("/run")), []);
await browser.close();
server.close();
console.log(`search, navigation, Run, Open, phone width, light and dark, without scripts: fine; screenshots in ${shots}`);
