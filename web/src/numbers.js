// Numbers of the source that can be dragged: to the right they grow, to the left they shrink, by one in the last
// digit that is written. With the keyboard: Alt-ArrowUp and Alt-ArrowDown on a number.
import { EditorView, Decoration, ViewPlugin, keymap } from "@codemirror/view";
import { Prec } from "@codemirror/state";
import { syntaxTree } from "@codemirror/language";

const PIXELS = 4; // for one step

function numbersIn(view) {
  const marks = [];
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({
      from,
      to,
      enter: (node) => {
        if (node.name === "number") marks.push(mark.range(node.from, node.to));
      },
    });
  }
  return Decoration.set(marks, true);
}
const mark = Decoration.mark({ class: "dragged-number", attributes: { title: "drag to change; Alt-↑ and Alt-↓ on the keyboard" } });

function numberAt(view, at) {
  for (const side of [1, -1]) {
    const node = syntaxTree(view.state).resolveInner(at, side);
    if (node.name === "number") return { from: node.from, to: node.to, text: view.state.sliceDoc(node.from, node.to) };
  }
  return null;
}

// The number in `text`, and `steps` more in its last digit.
export function stepped(text, steps) {
  const plain = text.replaceAll("_", "");
  const [, sign, digits, point = "", exponent = ""] = plain.match(/^(-?)(\d+)(\.\d*)?([eE][+-]?\d+)?$/) ?? [];
  if (digits === undefined) return text;
  const places = point.length > 1 ? point.length - 1 : 0;
  const scaled = Number(sign + digits + point.slice(1)) + steps;
  if (!Number.isSafeInteger(scaled)) return text;
  const written = String(Math.abs(scaled)).padStart(places + 1, "0");
  const out = places ? `${written.slice(0, -places)}.${written.slice(-places)}` : written + point;
  return (scaled < 0 ? "-" : "") + out + exponent;
}

// The number with the sign that belongs to it: one that no value stands before.
function withSign(view, number) {
  const before = view.state.sliceDoc(Math.max(0, number.from - 40), number.from);
  const signed = /(^|[^\w)\]\s])\s*-$/.test(before);
  return signed ? { from: number.from - 1, to: number.to, text: "-" + number.text } : number;
}

// `steps` more than `number` was at first; where it stands now.
function change(view, { from, to }, text, steps) {
  const insert = stepped(text, steps);
  view.dispatch({ changes: { from, to, insert }, userEvent: "input.drag" });
  return { from, to: from + insert.length };
}

export function draggableNumbers() {
  let drag = null; // { place, x, steps, moved }
  const plugin = ViewPlugin.fromClass(class {
    constructor(view) { this.decorations = numbersIn(view); }
    update(u) { if (u.docChanged || u.viewportChanged || syntaxTree(u.state) !== syntaxTree(u.startState)) this.decorations = numbersIn(u.view); }
  }, { decorations: (v) => v.decorations });

  const handlers = EditorView.domEventHandlers({
    pointerdown(event, view) {
      if (event.button !== 0 || !event.target.closest?.(".dragged-number")) return false;
      const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
      const number = at === null ? null : numberAt(view, at);
      if (!number) return false;
      drag = { place: withSign(view, number), x: event.clientX, steps: 0, moved: false };
      const { text } = drag.place;
      const move = (e) => {
        const distance = e.clientX - drag.x;
        if (!drag.moved && Math.abs(distance) < PIXELS) return;
        drag.moved = true;
        e.preventDefault();
        document.body.classList.add("dragging");
        const steps = Math.trunc(distance / PIXELS) * (e.shiftKey ? 10 : 1);
        if (steps === drag.steps) return;
        drag.steps = steps;
        drag.place = change(view, drag.place, text, steps);
      };
      const up = () => {
        window.removeEventListener("pointermove", move);
        window.removeEventListener("pointerup", up);
        window.removeEventListener("pointercancel", up);
        document.body.classList.remove("dragging");
        drag = null;
      };
      window.addEventListener("pointermove", move, { passive: false });
      window.addEventListener("pointerup", up);
      window.addEventListener("pointercancel", up);
      return false;
    },
    // While a number is dragged the editor selects nothing.
    mousemove: () => Boolean(drag?.moved),
  });
  const step = (by) => (view) => {
    const number = numberAt(view, view.state.selection.main.head);
    if (!number) return false;
    const signed = withSign(view, number);
    view.dispatch({ selection: { anchor: change(view, signed, signed.text, by).to } });
    return true;
  };
  return [plugin, handlers, Prec.highest(keymap.of([
    { key: "Alt-ArrowUp", run: step(1) }, { key: "Alt-ArrowDown", run: step(-1) },
    { key: "Shift-Alt-ArrowUp", run: step(10) }, { key: "Shift-Alt-ArrowDown", run: step(-10) },
  ]))];
}
