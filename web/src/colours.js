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
  lightAgain();
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

// `y_1`, a part of the equation of `y` that the compiler named, is `y` to people.
export function written(name) {
  const known = (n) => facts.values.some((v) => v.name === n);
  const whole = name.replace(/_\d+$/, "");
  return !known(name) && known(whole) ? whole : name;
}

// What is said about a coordinate, a sentence each.
export function saidOf(name) {
  const out = [];
  const having = facts.values.filter((v) => v.coords.includes(name)).map((v) => v.name);
  if (having.length) out.push(`\`${name}\` is a coordinate of ${quoted(having)}.`);
  else out.push(`\`${name}\` is an index.`);
  for (const flow of facts.flows) {
    if (!flow.summed.includes(name)) continue;
    const reader = written(flow.reader);
    const has = facts.values.find((v) => v.name === reader)?.coords.includes(name);
    const why = reader === flow.value ? `its own cells read it along \`${name}\``
              : has ? `\`${reader}\` has it, \`${flow.value}\` does not`
                    : `\`${reader}\` runs over it, \`${flow.value}\` does not have it`;
    const said = `In the derivative by \`${flow.value}\` it is summed: ${why}.`;
    if (!out.includes(said)) out.push(said);
  }
  return out;
}

let lit = null;
let rule = null;
export function light(name, place) {
  if (name === lit) return;
  lit = name;
  // A rule, not a class: the editor draws its lines when it likes.
  rule ??= document.head.appendChild(document.createElement("style"));
  const which = name ? `[data-coord="${CSS.escape(name)}"]` : "";
  rule.textContent = name ? `.coord${which} { background: color-mix(in srgb, var(--c) 24%, transparent); box-shadow: 0 0 0 2px ` +
    `color-mix(in srgb, var(--c) 45%, transparent); } td${which} { background: color-mix(in srgb, var(--main) 18%, transparent); }` : "";
  document.body.dataset.lit = name ?? "";
  const bar = document.getElementById("said");
  if (!name) {
    bar.hidden = true;
    return;
  }
  bar.replaceChildren(chip(name));
  for (const text of saidOf(name)) {
    const line = document.createElement("span");
    line.textContent = text.replace(`\`${name}\` is`, (said, at) => (at ? said : "is")).replaceAll("`", "");
    bar.append(" ", line);
  }
  bar.hidden = false;
}

// Everything with `data-coord` reacts to the pointer and to the keyboard's focus.
export function watchPointer(root) {
  const named = (e) => e.target.closest?.("[data-coord]")?.dataset.coord ?? null;
  root.addEventListener("pointerover", (e) => light(named(e)));
  root.addEventListener("focusin", (e) => named(e) && light(named(e)));
  root.addEventListener("focusout", (e) => named(e) && light(null));
  root.addEventListener("pointerdown", (e) => e.pointerType !== "mouse" && light(named(e)));
}
// After a panel or the editor was drawn again.
export function lightAgain() {
  const name = lit;
  lit = null;
  if (name) light(name);
}
