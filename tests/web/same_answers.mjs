// The module answers as `ein --backend ref` does: status, output and messages of every program of tests/run that has
// no files. Usage: node same_answers.mjs EIN MODULE.wasm [FILTER]
//
// Left out, and counted: programs with inputs or arguments of the command line, and those that load or save files.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { failure, instantiate } from "../../web/src/module.js";

const [ein, wasm, filter = ""] = process.argv.slice(2);
if (!wasm) {
  console.error("usage: node same_answers.mjs EIN MODULE.wasm [FILTER]");
  process.exit(2);
}
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../run");

function programs(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const at = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "lib" ? [] : programs(at);
    return entry.name.endsWith(".ein") ? [at] : [];
  });
}

// All .ein files of a folder and below, as they are named from there: a program may use any of them.
function modules(folder) {
  return fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ein"))
    .map((name) => ({ name, text: fs.readFileSync(path.join(folder, name), "utf8") }));
}

function why_left_out(source) {
  if (/^\/\/! (in|args)\b/m.test(source)) return "needs the command line";
  const code = source.replace(/\/\/.*$/gm, "");
  if (/\b(load|save)\s*\(/.test(code)) return "has files";
  return "";
}

function expected(file, verb) {
  const done = spawnSync(path.resolve(ein), [...verb, path.basename(file)], {
    cwd: path.dirname(file),
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, EINLANG_CACHE: "off", NO_COLOR: "1" },
  });
  if (done.error) throw done.error;
  return { status: done.status, stdout: done.stdout, stderr: done.stderr };
}

// How inputs are supplied is said in terms of the command line there.
const without_advice = (text) => text.replace(/  \|\n  = help: supply it with `--(in|set) .*\n/g, "");

// Known to differ, each with what is answered instead: the stack of a browser is not ours.
const DEEPER_THAN_A_PAGE = ["recursion/as_deep_as_allowed.ein"];

const compiled = await WebAssembly.compile(fs.readFileSync(wasm));
let module = await instantiate(compiled);
const left_out = {};
let same = 0;
let same_derivatives = 0;
const wrong = [];
for (const file of programs(root)) {
  const name = path.relative(root, file);
  if (!name.includes(filter)) continue;
  const source = fs.readFileSync(file, "utf8");
  const why = why_left_out(source);
  if (why) {
    left_out[why] = (left_out[why] ?? 0) + 1;
    continue;
  }
  const folder = path.dirname(file);
  const files = /^\s*(use|mod)\b/m.test(source) ? modules(folder) : [];
  const got = module.answer({ verb: "run", source, name: path.basename(file), files });
  const want = expected(file, ["run", "--backend", "ref"]);
  want.stderr = without_advice(want.stderr);
  if (DEEPER_THAN_A_PAGE.includes(name)) {
    if (got.stopped !== "depth") wrong.push(`${name}: it is not too deep any more`);
    left_out["nests too deeply for a page"] = (left_out["nests too deeply for a page"] ?? 0) + 1;
    module = await instantiate(compiled);
    continue;
  }
  const differs = ["status", "stdout", "stderr"].filter((key) => got[key] !== want[key]);
  if (differs.length === 0) {
    same++;
  } else {
    wrong.push(name);
    console.log(`${name}: ${differs.join(", ")} differ`);
    for (const key of differs) console.log(`  ${key} of ein: ${JSON.stringify(want[key])?.slice(0, 400)}\n  here: ${JSON.stringify(got[key])?.slice(0, 400)}`);
  }
  if (module.broken()) module = await instantiate(compiled);
  if (!source.includes("@") || want.status === 1) continue;
  const derived = module.answer({ verb: "grad", source, name: path.basename(file), files });
  if (!derived.asked) continue; // then `ein grad` prints the program
  const printed = expected(file, ["grad"]);
  if (derived.stdout === printed.stdout && derived.status === printed.status) {
    same_derivatives++;
  } else {
    wrong.push(name);
    console.log(`${name}: the derivative differs\n${printed.stdout}\nhere:\n${derived.stdout}${derived.stderr}`);
  }
}
// The comparison must be able to fail.
const slip = module.answer({ verb: "run", source: "print(1 + 1)" });
if (slip.stdout !== "2\n" || failure(3, "").status !== 3) wrong.push("self-test");
for (const [why, count] of Object.entries(left_out)) console.log(`${count} left out: ${why}`);
console.log(`${same} the same, with ${same_derivatives} derivatives; ${wrong.length} not`);
process.exit(wrong.length || same < 100 && !filter ? 1 : 0);
