// Values as numbers, curves, heat maps and tables, and what a program wrote as pictures.
import { chip } from "./colours.js";
import { element as el } from "./dom.js";

const numberOf = (cell) => (typeof cell === "number" ? cell : cell === true ? 1 : cell === false ? 0 : Number(cell));
const short = (cell) =>
  typeof cell !== "number" || Number.isInteger(cell) ? String(cell) : String(Number(cell.toPrecision(5)));

function extremes(cells) {
  let least = Infinity;
  let most = -Infinity;
  for (const cell of cells) {
    const v = numberOf(cell);
    if (!Number.isFinite(v)) continue;
    least = Math.min(least, v);
    most = Math.max(most, v);
  }
  return least <= most ? [least, most] : [0, 0];
}

// Blue below zero, orange above; white (or black, in the dark) at zero. Cells that are no number are violet.
function colourOf(v, scale, dark) {
  if (!Number.isFinite(v)) return [150, 60, 200];
  const t = scale === 0 ? 0 : Math.max(-1, Math.min(1, v / scale));
  const zero = dark ? [28, 32, 38] : [250, 250, 250];
  const end = t < 0 ? [40, 110, 220] : [230, 110, 20];
  return zero.map((z, k) => Math.round(z + (end[k] - z) * Math.abs(t)));
}

function heatMap(cells, rows, columns) {
  const [least, most] = extremes(cells);
  const scale = Math.max(Math.abs(least), Math.abs(most));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches
    ? document.documentElement.dataset.theme !== "light" : document.documentElement.dataset.theme === "dark";
  const canvas = el("canvas", { width: columns, height: rows, className: "heat" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    const [r, g, b] = colourOf(numberOf(cells[i]), scale, dark);
    image.data.set([r, g, b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  const size = Math.max(2, Math.min(20, Math.floor(200 / Math.max(rows, columns, 1))));
  canvas.style.width = `${columns * size}px`;
  canvas.style.height = `${rows * size}px`;
  return { canvas, least, most, size };
}

function curve(cells) {
  const [least, most] = extremes(cells);
  const [width, height] = [360, 90];
  const x = (i) => (cells.length < 2 ? width / 2 : (i / (cells.length - 1)) * (width - 8) + 4);
  const y = (v) => height - 6 - (most === least ? 0.5 : (v - least) / (most - least)) * (height - 12);
  const points = cells.map((c, i) => [x(i), y(numberOf(c))]).filter(([, v]) => Number.isFinite(v));
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "curve");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `a curve from ${short(least)} to ${short(most)}`);
  const line = document.createElementNS(ns, "polyline");
  line.setAttribute("points", points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" "));
  if (least < 0 && most > 0) {
    const zero = document.createElementNS(ns, "line");
    for (const [k, v] of Object.entries({ x1: 0, x2: width, y1: y(0), y2: y(0), class: "zero" })) zero.setAttribute(k, v);
    svg.append(zero);
  }
  svg.append(line);
  return { svg, least, most };
}

// Made when somebody opens it: thousands of cells are slow to lay out.
function later(make) {
  const out = el("details", {}, el("summary", {}, "numbers"));
  out.addEventListener("toggle", () => out.open && out.childElementCount === 1 && out.append(make()));
  return out;
}

function table(cells, rows, columns, row, column) {
  const vector = rows === 1 && !row;
  const head = el("tr", {}, el("th", {}, row ? chip(row) : "", row && column ? " \\ " : "", column ? chip(column) : ""),
                  ...Array.from({ length: columns }, (_, j) => el("th", {}, String(j))));
  const body = Array.from({ length: rows }, (_, i) =>
    el("tr", {}, el("th", {}, vector ? "" : String(i)),
       ...cells.slice(i * columns, (i + 1) * columns).map((c) => el("td", {}, short(c)))));
  return el("table", { className: "cells" }, el("thead", {}, head), el("tbody", {}, ...body));
}

const legend = (least, most) => el("span", { className: "legend" }, `${short(least)} … ${short(most)}`);

function matrix(cells, rows, columns, row, column) {
  const out = el("div", { className: "matrix" });
  if (rows * columns === 0) return el("p", { className: "quiet" }, "no cells");
  if (columns <= 8 && rows * columns <= 24) return el("div", { className: "matrix" }, table(cells, rows, columns, row, column));
  const { canvas, least, most, size } = heatMap(cells, rows, columns);
  const under = el("span", { className: "legend" }, `${short(least)} … ${short(most)}`);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `a heat map of ${rows} by ${columns} cells, from ${short(least)} to ${short(most)}`);
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect();
    const i = Math.min(rows - 1, Math.floor((e.clientY - box.top) / box.height * rows));
    const j = Math.min(columns - 1, Math.floor((e.clientX - box.left) / box.width * columns));
    under.textContent = `${row || "0"} = ${i}, ${column || "1"} = ${j}: ${short(cells[i * columns + j])}`;
  });
  canvas.addEventListener("pointerleave", () => (under.textContent = `${short(least)} … ${short(most)}`));
  const axes = el("div", { className: "axes" }, row ? el("span", {}, "↓ ", chip(row)) : "", " ",
                  column ? el("span", {}, "→ ", chip(column)) : "");
  out.append(axes, canvas, under);
  if (rows * columns <= 2500) {
    out.append(later(() => table(cells, rows, columns, row, column)));
  }
  out.style.setProperty("--cell", `${size}px`);
  return out;
}

// Of more than two coordinates one slice is shown; the others are chosen with a slider each.
function slices(value, cells) {
  const { shape, coords } = value;
  const [rows, columns] = shape.slice(-2);
  const outer = shape.slice(0, -2);
  const at = outer.map(() => 0);
  const place = el("div", {});
  const draw = () => {
    const number = at.reduce((n, i, k) => n * outer[k] + i, 0);
    const from = number * rows * columns;
    place.replaceChildren(matrix(cells.slice(from, from + rows * columns), rows, columns, coords.at(-2), coords.at(-1)));
  };
  const sliders = outer.map((extent, k) => {
    const label = el("output", {}, "0");
    const input = el("input", { type: "range", min: 0, max: Math.max(0, extent - 1), value: 0 });
    input.setAttribute("aria-label", `which ${coords[k] || `address along coordinate ${k}`}`);
    input.addEventListener("input", () => {
      at[k] = Number(input.value);
      label.textContent = input.value;
      draw();
    });
    return el("label", { className: "slice" }, coords[k] ? chip(coords[k]) : String(k), " = ", label, input);
  });
  draw();
  return el("div", {}, ...sliders, place);
}

function drawn(value) {
  const { shape, cells, coords } = value;
  if (!cells) return el("pre", {}, value.text);
  if (shape.length === 0) return el("span", { className: "number" }, value.text);
  if (cells.length === 0) return el("p", { className: "quiet" }, "no cells");
  if (shape.length === 1 && shape[0] <= 8) return matrix(cells, 1, shape[0], "", coords[0]);
  if (shape.length === 1) {
    const { svg, least, most } = curve(cells);
    const out = el("div", { className: "matrix" }, svg, legend(least, most));
    if (cells.length <= 2000) {
      out.append(later(() => el("pre", {}, cells.map(short).join(" "))));
    }
    return out;
  }
  if (shape.length === 2) return matrix(cells, shape[0], shape[1], coords[0], coords[1]);
  return slices(value, cells);
}

export function valueElement(value) {
  const type = el("span", { className: "quiet" }, value.dtype, " ");
  const extents = value.shape.map((n, k) =>
    el("span", {}, k ? ", " : "", value.coords[k] ? chip(value.coords[k]) : "", value.coords[k] ? `: ${n}` : String(n)));
  if (extents.length) type.append("[", ...extents, "]");
  const name = el("span", { className: "t-name", dataset: { name: value.name } }, value.name);
  const scalar = value.shape.length === 0;
  return el("div", { className: scalar ? "value scalar" : "value" },
            el("div", { className: "head" }, name, " ", type, scalar ? " = " : ""), drawn(value));
}

// A file that a program wrote: a picture where it is one. The picture is an image, so nothing in it runs.
export function fileElement({ name, text }) {
  const figure = el("figure", {}, el("figcaption", {}, name));
  const type = name.endsWith(".svg") ? "image/svg+xml" : "text/plain";
  const url = `data:${type};charset=utf-8,${encodeURIComponent(text)}`;
  figure.append(name.endsWith(".svg") ? el("img", { src: url, alt: `the picture ${name}` })
                                      : el("pre", {}, text.length > 20_000 ? text.slice(0, 20_000) + "\n…" : text));
  figure.append(el("a", { href: url, download: name.split("/").at(-1), className: "quiet" }, "save"));
  return figure;
}
