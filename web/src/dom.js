// Elements, without a library.
export function element(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "dataset") Object.assign(out.dataset, value);
    else if (name.startsWith("aria-") || name === "role") out.setAttribute(name, value);
    else out[name] = value;
  }
  out.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return out;
}
