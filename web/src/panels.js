// What the panels show of answers. Each function fills its place; `show(places)` marks places of the source.
import { chip, lightAgain, written } from "./colours.js";
import { element as el } from "./dom.js";
import { lineElements } from "./language.js";
import { fileElement, valueElement } from "./values.js";

const quiet = (...text) => el("p", { className: "quiet" }, ...text);

// ---- output ------------------------------------------------------------------------------------------------------

export function drawOutput(place, answer) {
  const parts = [];
  if (answer.stdout) parts.push(el("pre", { className: "printed" }, answer.stdout));
  if (answer.status !== 0) {
    parts.push(el("pre", { className: "wrong", role: "alert" }, answer.stderr.trimEnd()));
  } else if (answer.stderr) {
    parts.push(el("pre", { className: "noted" }, answer.stderr.trimEnd()));
  }
  if (answer.made_up) {
    const names = answer.made_up.map((n) => `\`${n}\``).join(", ").replaceAll("`", "");
    parts.push(quiet(`The program has inputs; their values are made up here: ${names}.`));
  }
  if (answer.fallback) parts.push(quiet(`Native code was not available: ${answer.fallback}`));
  for (const file of answer.files ?? []) parts.push(fileElement(file));
  const values = (answer.values ?? []).filter((v) => !v.input || v.cells);
  if (values.length) {
    const scalars = values.filter((v) => v.shape.length === 0);
    const others = values.filter((v) => v.shape.length > 0);
    parts.push(el("h3", {}, "Values"));
    if (scalars.length) parts.push(el("div", { className: "scalars" }, ...scalars.map(valueElement)));
    if (others.length) parts.push(el("div", { className: "values" }, ...others.map(valueElement)));
  }
  if (!parts.length) parts.push(quiet("The program prints nothing and has no values."));
  place.replaceChildren(...parts);
  lightAgain();
}

// Why another panel has nothing to show; the output has all of it.
function mistaken(answer) {
  const first = answer.diagnostics.find((d) => d.severity === "error");
  return el("p", { className: "wrong" }, first ? `${first.code}: ${first.message}` : answer.stderr.trimEnd());
}

// ---- derivative --------------------------------------------------------------------------------------------------

export function drawDerivative(place, answer, show) {
  if (answer.status !== 0) {
    place.replaceChildren(mistaken(answer));
    return;
  }
  if (!answer.stdout) {
    place.replaceChildren(quiet("The program asks for no derivative. Choose two names above, or write one: "),
                          el("pre", {}, ...lineElements("let d = @loss / @W;")));
    return;
  }
  const from = new Map((answer.lines ?? []).map((l) => [l.line, l.from]));
  const lines = answer.stdout.trimEnd().split("\n").map((text, number) => {
    const places = from.get(number) ?? [];
    const line = el("div", { className: "line" }, ...lineElements(text), text ? "" : "\u200b");
    if (places.length) {
      line.classList.add("tied");
      line.tabIndex = 0;
      line.title = "comes from the marked places of the program";
      line.addEventListener("pointerenter", () => show(places));
      line.addEventListener("pointerleave", () => show([]));
      line.addEventListener("focus", () => show(places, true));
      line.addEventListener("blur", () => show([]));
      line.addEventListener("click", () => show(places, true));
    }
    return line;
  });
  place.replaceChildren(el("div", { className: "source", role: "group", "aria-label": "the derivative as source" }, ...lines));
  lightAgain();
}

// What a derivative that was chosen is for the values of the program; `name` is what its last line defines.
export function drawDerivativeValue(place, ran, name) {
  const value = ran.status === 0 && ran.values?.find((v) => v.name === name && v.cells);
  if (!value) return;
  place.append(el("h3", {}, "Its value"), el("div", { className: value.shape.length ? "values" : "scalars" }, valueElement(value)));
  lightAgain();
}

// ---- walk --------------------------------------------------------------------------------------------------------

const WHAT = { "1 hold": "Hold", "2 it is read by": "It is read by", "3 incoming": "Incoming",
               "4 local derivative": "Local derivative", "5 sum": "Sum over" };

function flow(explanation, current, choose) {
  const order = [...explanation.values].reverse().map((v) => v.name);
  const names = order.map((name) => {
    const value = explanation.values.find((v) => v.name === name);
    const coords = value.coords.flatMap((c, k) => [k ? ", " : "", c === "·" ? "·" : chip(c)]);
    const step = explanation.steps.findIndex((s) => s.value === name);
    const node = el("button", { className: "node", type: "button" }, el("span", { className: "t-name" }, name),
                    coords.length ? el("span", { className: "quiet" }, " [", ...coords, "]") : "");
    node.classList.toggle("current", explanation.steps[current]?.value === name || explanation.steps[current]?.reader === name);
    if (step >= 0) node.addEventListener("click", () => choose(step));
    else node.disabled = name !== explanation.of;
    return node;
  });
  const out = el("div", { className: "flow" });
  names.forEach((node, k) => {
    if (k) {
      const sums = explanation.steps.filter((s) => s.value === order[k]).flatMap((s) => s.summed);
      out.append(el("span", { className: "arrow" }, "→", sums.length ? el("span", {}, " Σ ", ...[...new Set(sums)].map((c) => chip(c))) : ""));
    }
    out.append(node);
  });
  return out;
}

export function drawWalk(place, answer, show, state) {
  const all = answer.explanations ?? [];
  if (answer.status !== 0 || !all.length) {
    place.replaceChildren(answer.status !== 0 ? mistaken(answer)
                                              : quiet("There is no derivative to walk through. Choose two names above."));
    return;
  }
  const which = Math.min(state.which, all.length - 1);
  const explanation = all[which];
  const steps = explanation.steps;
  const at = Math.max(0, Math.min(state.step, steps.length - 1));
  const again = (change) => {
    Object.assign(state, change);
    drawWalk(place, answer, show, state);
  };
  const parts = [];
  if (all.length > 1) {
    const pick = el("select", { "aria-label": "which derivative" },
                    ...all.map((e, k) => el("option", { value: k, selected: k === which }, `@${e.of} / @${e.wrt}`)));
    pick.addEventListener("change", () => again({ which: Number(pick.value), step: 0 }));
    parts.push(pick);
  } else {
    parts.push(el("p", { className: "request" }, `@${explanation.of} / @${explanation.wrt}`));
  }
  if (!steps.length) {
    place.replaceChildren(...parts, quiet(`${explanation.of} does not depend on ${explanation.wrt}: the derivative is zero.`));
    return;
  }
  parts.push(flow(explanation, at, (step) => again({ step })));
  const step = steps[at];
  const move = (by, label) => {
    const button = el("button", { type: "button", disabled: at + by < 0 || at + by >= steps.length }, label);
    button.addEventListener("click", () => {
      again({ step: at + by });
      const buttons = place.querySelectorAll(".moves button");
      buttons[by < 0 ? 0 : 1]?.focus();
    });
    return button;
  };
  parts.push(el("div", { className: "moves" }, move(-1, "← Back"), el("span", { className: "quiet" }, `step ${at + 1} of ${steps.length}`),
                move(1, "Next →")));
  const code = (text) => el("code", {}, ...lineElements(text));
  const rows = step.walk.map(([what, here]) => el("tr", {}, el("th", {}, WHAT[what] ?? what.trim()), el("td", {}, code(here))));
  rows.push(el("tr", { className: "result" }, el("th", {}, "So"), el("td", {}, code(`${step.adjoint} += ${step.adds}`))));
  parts.push(el("table", { className: "steps" }, ...rows));
  place.replaceChildren(...parts);
  if (place.offsetParent) show(step.at ? [step.at] : []);
  lightAgain();
}

// ---- coordinates -------------------------------------------------------------------------------------------------

export function drawCoordinates(place, values, explanations) {
  const flows = explanations.flatMap((e) => e.steps.map((s) => ({ ...s, of: e.of })));
  const columns = [...new Set([...values.flatMap((v) => v.coords), ...flows.flatMap((f) => f.summed)])].filter((c) => c && c !== "·");
  if (!values.length || !columns.length) {
    place.replaceChildren(quiet("The program has no values with coordinates."));
    return;
  }
  const head = el("tr", {}, el("th", {}, "value"),
                  ...columns.map((c) => el("th", {}, chip(c, "button"))));
  const rows = values.map((value) => el("tr", {}, el("th", { className: "t-name", scope: "row" }, value.name),
    ...columns.map((c) => {
      const has = value.coords.includes(c);
      const sums = flows.filter((f) => f.value === value.name && f.summed.includes(c));
      const cell = el("td", { dataset: { coord: c } }, [has ? "●" : "", sums.length ? "Σ" : ""].filter(Boolean).join(" "));
      if (sums.length) {
        cell.classList.add("sums");
        cell.tabIndex = 0;
        cell.title = [...new Set(sums.map((f) => `@${f.of} / @${f.value}: ${f.why}`))].join("\n");
      }
      return cell;
    })));
  const reasons = [...new Map(flows.filter((f) => f.summed.length).map((f) => [`${f.value} ${f.why}`, f])).values()];
  const list = reasons.map((f) => el("li", {}, "by ", el("span", { className: "t-name" }, f.value), ": summed over ",
                                     ...lineElements(f.why.replace(/\w+/g, written))));
  place.replaceChildren(
    el("div", { className: "wide" }, el("table", { className: "coords" }, el("thead", {}, head), el("tbody", {}, ...rows))),
    quiet("● forward: the value has the coordinate. Σ backward: the derivative by the value is summed over it."),
    list.length ? el("ul", { className: "reasons" }, ...list) : quiet("Nothing is summed on the way back."));
  lightAgain();
}

// ---- audit and facts -----------------------------------------------------------------------------------------------

export function drawReports(place, audit, facts) {
  const lines = (answer) => answer.stdout.trimEnd().split("\n").flatMap((line, k) => [k ? "\n" : "", ...lineElements(line)]);
  const part = (title, answer) => [el("h3", {}, title), el("pre", { className: "report" }, ...lines(answer))];
  place.replaceChildren(...(audit.status || facts.status ? [mistaken(audit.status ? audit : facts)]
    : [...part("What is repeated (audit)", audit), ...part("What was inferred (facts)", facts)]));
  lightAgain();
}
