// Coordinates have a colour and a pattern each, the same in every panel. Pointing at one lights it up everywhere and
// says who has it and where it is summed.

const MOST = 8; // style.css has this many; further ones share

const numbers = new Map(); // name → number, in order of appearance
let facts = { values: [], flows: [] };

export function setCoordinates(names) {
  const kept = [...numbers.keys()].filter((name) => names.has(name));
  numbers.clear();
  for (const name of [...kept, ...names]) if (!numbers.has(name)) numbers.set(name, numbers.size);
}

export const isCoordinate = (name) => numbers.has(name);
export const classOf = (name) => `coord c${(numbers.get(name) ?? 0) % MOST}`;

export function setFacts(values, flows) {
  facts = { values, flows };
}

// An element for a coordinate. `more`: attributes.
export function chip(name, tag = "span") {
  const out = document.createElement(tag);
  out.className = classOf(name);
  out.dataset.coord = name;
  out.textContent = name;
  return out;
}

const quoted = (list) => list.map((name) => `\`${name}\``).join(", ");

// What is said about a coordinate, a sentence each.
export function saidOf(name) {
  const out = [];
  const having = facts.values.filter((v) => v.coords.includes(name)).map((v) => v.name);
  if (having.length) out.push(`\`${name}\` is a coordinate of ${quoted(having)}.`);
  else out.push(`\`${name}\` is an index.`);
  for (const flow of facts.flows) {
    if (!flow.summed.includes(name)) continue;
    const has = facts.values.find((v) => v.name === flow.reader)?.coords.includes(name);
    const why = flow.reader === flow.value ? `every cell of \`${flow.value}\` is read along it`
              : has ? `\`${flow.reader}\` has it, \`${flow.value}\` does not`
                    : `\`${flow.reader}\` runs over it, \`${flow.value}\` does not have it`;
    const said = `In the derivative by \`${flow.value}\` it is summed: ${why}.`;
    if (!out.includes(said)) out.push(said);
  }
  return out;
}

let lit = null;
export function light(name, place) {
  if (name === lit) return;
  lit = name;
  for (const e of document.querySelectorAll(".lit")) e.classList.remove("lit");
  const bar = document.getElementById("said");
  if (!name) {
    bar.hidden = true;
    return;
  }
  for (const e of document.querySelectorAll(`[data-coord="${CSS.escape(name)}"]`)) e.classList.add("lit");
  bar.replaceChildren(chip(name));
  for (const text of saidOf(name)) {
    const line = document.createElement("span");
    line.textContent = text.replaceAll("`", "");
    bar.append(" ", line);
  }
  bar.hidden = false;
}

// Everything with `data-coord` reacts to the pointer and to the keyboard's focus.
export function watchPointer(root) {
  const named = (e) => e.target.closest?.("[data-coord]")?.dataset.coord ?? null;
  root.addEventListener("pointerover", (e) => light(named(e)));
  root.addEventListener("focusin", (e) => light(named(e)));
  root.addEventListener("pointerdown", (e) => e.pointerType !== "mouse" && light(named(e)));
}
// After a panel or the editor was drawn again.
export function lightAgain() {
  const name = lit;
  lit = null;
  if (name) light(name);
}
