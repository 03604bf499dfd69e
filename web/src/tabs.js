// The panels behind tabs. On a wide page the output has a place of its own; on a narrow one it is a tab, too.
export function createTabs(names, onchange) {
  const narrow = matchMedia("(max-width: 899px)");
  const buttons = names.map((name) => document.querySelector(`[data-tab="${name}"]`));
  const panelOf = (name) => document.getElementById(name);
  let current = narrow.matches ? "output" : "derivative";

  function draw() {
    if (!narrow.matches && current === "output") current = "derivative";
    document.body.dataset.tab = current;
    buttons.forEach((button) => {
      const name = button.dataset.tab;
      const chosen = name === current;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      if (name !== "output") panelOf(name).hidden = !chosen;
    });
    document.getElementById("picks").hidden = !["derivative", "walk", "coordinates"].includes(current);
  }
  function choose(name) {
    current = name;
    draw();
    onchange(name);
  }
  buttons.forEach((button) => {
    button.addEventListener("click", () => choose(button.dataset.tab));
    button.addEventListener("keydown", (e) => {
      const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
      if (!by) return;
      const shown = buttons.filter((b) => b.offsetParent);
      const next = shown[(shown.indexOf(button) + by + shown.length) % shown.length];
      next.focus();
      choose(next.dataset.tab);
    });
  });
  narrow.addEventListener("change", draw);
  draw();
  return { current: () => current, choose };
}
