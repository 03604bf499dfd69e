// The page: what happens when the program changes, and what its buttons do.
import { decode, encode } from "./address.js";
import { setCoordinates, setFacts, watchPointer } from "./colours.js";
import { createEditor } from "./editor.js";
import { element as el } from "./dom.js";
import { createTabs } from "./tabs.js";
import { drawCoordinates, drawDerivative, drawDerivativeValue, drawOutput, drawReports, drawWalk } from "./panels.js";
import { createRunner } from "./runner.js";
import { follow } from "./served.js";

/* global EIN_GALLERY */
const gallery = EIN_GALLERY;
const at = (id) => document.getElementById(id);
const SLOW = 1500; // milliseconds; after a run that took longer the page waits for the button
const ASKED = ""; // what the program asks for itself

// `ein explore` says where it answers.
const served = globalThis.EIN_SERVED ?? null;

// Two workers: what runs for long must not keep the editor waiting.
const thinking = createRunner({ serve: served, onrestart: () => editor?.reconnect() });
const running = createRunner({ serve: served });

let editor = null;
let names = []; // of floats, for the pickers
let values = [];
let explanations = [];
const walk = { which: 0, step: 0 };
let slow = false; // the last run took long: the next one waits for the button
let round = 0; // changes so far; answers to earlier ones are dropped

// ---- asking ------------------------------------------------------------------------------------------------------

const pair = () => {
  const [of, by] = [at("of").value, at("by").value];
  return of && by ? { of, wrt: [by] } : {};
};

const tabs = createTabs(["output", "derivative", "walk", "coordinates", "reports"], () => refreshPanels());
const show = (places, scroll) => editor.show(places, scroll);

// One kind of question at a time: a newer one waits for the one on the way, those between are dropped.
function latest(ask) {
  let busy = false;
  let again = false;
  return async function go() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      await ask();
    } while (again);
    busy = false;
  };
}

const check = latest(async () => {
  const mine = round;
  const answer = await thinking.request({ verb: "check", source: editor.text() });
  const found = await editor.colour();
  if (mine !== round) return;
  editor.showDiagnostics(answer.diagnostics);
  if (answer.values) values = answer.values;
  if (found) {
    const all = new Set([...found.names, ...values.flatMap((v) => v.coords).filter(Boolean)]);
    setCoordinates(all);
    found.draw();
  }
  if (answer.values) fillPickers(answer.values);
});

const execute = latest(async () => {
  const source = editor.text();
  const begin = performance.now();
  at("stop").disabled = false;
  const waiting = setTimeout(() => (at("state").textContent = "running …"), 200);
  const answer = await running.request({ verb: "run", source, values: true, make_up_inputs: true });
  clearTimeout(waiting);
  at("stop").disabled = true;
  const spent = performance.now() - begin;
  slow = (answer.milliseconds ?? spent) > SLOW || answer.stopped === "time" || answer.stopped === "user";
  at("state").textContent = answer.stopped ? "stopped" : answer.status ? "" : spent < 1000 ? `${Math.round(spent)} ms` : `${(spent / 1000).toFixed(1)} s`;
  drawOutput(at("output"), answer);
});

const refreshPanels = latest(async () => {
  const mine = round;
  const source = editor.text();
  const stale = () => mine !== round;
  const tab = tabs.current();
  if (tab === "derivative") {
    const answer = await thinking.request({ verb: "grad", source, effects: false, ...pair() });
    if (!stale()) drawDerivative(at("derivative"), answer, show);
    const name = answer.lines?.at(-1)?.name;
    if (!stale() && pair().of && name && !slow) {
      const ran = await running.request({ verb: "run", source: answer.stdout, values: true, make_up_inputs: true });
      slow ||= Boolean(ran.stopped);
      if (!stale()) drawDerivativeValue(at("derivative"), ran, name);
    }
  } else if (tab === "reports") {
    const audit = await thinking.request({ verb: "audit", source });
    const facts = audit.status ? audit : await thinking.request({ verb: "facts", source });
    if (!stale()) drawReports(at("reports"), audit, facts);
  }
  if (tab !== "walk") show([]);
  const answer = await thinking.request({ verb: "explain", source, ...pair() });
  if (stale()) return;
  if (!answer.status) explanations = answer.explanations;
  setFacts(values, explanations.flatMap((e) => e.steps));
  if (tab === "walk") drawWalk(at("walk"), answer, show, walk);
  if (tab === "coordinates") drawCoordinates(at("coordinates"), values.filter((v) => v.coords.length || v.float), explanations);
});

function fillPickers(list) {
  names = list.filter((v) => v.float).map((v) => v.name);
  for (const id of ["of", "by"]) {
    const select = at(id);
    const chosen = select.value;
    select.replaceChildren(el("option", { value: ASKED }, "as asked"), ...names.map((n) => el("option", { value: n }, n)));
    select.value = names.includes(chosen) ? chosen : ASKED;
  }
}

function followChange() {
  if (at("auto").checked && !slow) execute();
  else at("state").textContent = "changed: press Run (Ctrl-Enter)";
}

let quiet = 0;
async function changed(at_once = false) {
  round++;
  clearTimeout(quiet);
  const go = async () => {
    await check();
    followChange();
    refreshPanels();
  };
  if (at_once) await go();
  else quiet = setTimeout(go, 250);
}

// A drag is followed at once: the picture first, then words about it.
function dragged() {
  round++;
  clearTimeout(quiet);
  followChange();
  refreshPanels();
  quiet = setTimeout(check, 150);
}

// ---- programs ----------------------------------------------------------------------------------------------------

function notice(text) {
  const bar = at("notice");
  bar.textContent = text;
  bar.hidden = false;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => (bar.hidden = true), 4000);
}

async function open(source, { of = ASKED, by = ASKED } = {}) {
  slow = false;
  values = [];
  explanations = [];
  Object.assign(walk, { which: 0, step: 0 });
  for (const [id, name] of [["of", of], ["by", by]]) {
    if (name) at(id).append(el("option", { value: name }, name)); // until the program is known
    at(id).value = name;
  }
  editor.setText(source);
  await changed(true);
}

function fillGallery() {
  const groups = [];
  gallery.forEach((entry, k) => {
    if (entry.group) groups.push(el("optgroup", { label: entry.group }));
    else groups.at(-1).append(el("option", { value: k }, entry.title));
  });
  at("gallery").append(el("option", { value: "", hidden: true }, "your own"), ...groups);
  at("gallery").addEventListener("change", () => {
    const entry = gallery[at("gallery").value];
    if (entry) {
      history.replaceState(null, "", location.pathname + location.search);
      open(entry.source, entry);
    }
  });
}

async function fromAddress() {
  try {
    const source = await decode(location.hash);
    if (source === null) return false;
    at("gallery").value = "";
    await open(source);
    return true;
  } catch (e) {
    notice(e.message);
    return false;
  }
}

async function share() {
  const hash = await encode(editor.text());
  history.replaceState(null, "", hash);
  try {
    await navigator.clipboard.writeText(location.href);
    notice("The address of this program is copied. It holds the program itself; nothing was sent.");
  } catch {
    notice("The address of this page holds the program now: copy it from the address bar.");
  }
}

// ---- the page ----------------------------------------------------------------------------------------------------

function theme(next) {
  const root = document.documentElement;
  if (next) root.dataset.theme = next;
  try {
    if (next) localStorage.setItem("theme", next);
    else if (localStorage.getItem("theme")) root.dataset.theme = localStorage.getItem("theme");
  } catch { /* a page without storage forgets */ }
}

function main() {
  theme();
  editor = createEditor(at("editor"), thinking, {
    onchange(update) {
      if (update.transactions.some((t) => t.isUserEvent("input.drag"))) return dragged();
      if (update.transactions.some((t) => t.isUserEvent("input") || t.isUserEvent("delete"))) {
        at("gallery").value = "";
      }
      changed();
    },
    onpick(name) {
      if (!names.includes(name)) return notice(`${name} is not a float value of the program`);
      const first = !at("of").value || at("by").value;
      at(first ? "of" : "by").value = name;
      if (first) at("by").value = ASKED;
      notice(first ? `The derivative of ${name}: by what? Alt-click another name.` : `@${at("of").value} / @${name}`);
      if (!first) {
        Object.assign(walk, { which: 0, step: 0 });
        refreshPanels();
      }
    },
    onrun: () => execute(),
  });
  watchPointer(document);
  fillGallery();
  at("run").addEventListener("click", () => execute());
  at("stop").addEventListener("click", () => running.stop());
  at("format").addEventListener("click", async () => {
    const answer = await thinking.request({ verb: "format", source: editor.text() });
    if (answer.status) notice("A program with a mistake in its syntax is not formatted.");
    else if (answer.stdout !== editor.text()) editor.setText(answer.stdout);
  });
  at("share").addEventListener("click", share);
  at("auto").addEventListener("change", () => at("auto").checked && ((slow = false), execute()));
  at("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    theme(dark ? "light" : "dark");
    execute();
  });
  for (const id of ["of", "by"]) {
    at(id).addEventListener("change", () => {
      Object.assign(walk, { which: 0, step: 0 });
      if (Boolean(at("of").value) === Boolean(at("by").value)) refreshPanels();
    });
  }
  window.addEventListener("hashchange", fromAddress);
  if (served) {
    follow(served, { open: (source) => open(source), text: () => editor.text(), notice });
    return;
  }
  fromAddress().then((opened) => {
    if (opened) return;
    at("gallery").value = gallery.findIndex((e) => e.source);
    const entry = gallery.find((e) => e.source);
    open(entry.source, entry);
  });
}

main();
