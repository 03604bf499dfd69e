// What needs a script on a page: search, Run and Open, and the choice between light and dark. Everything else is in the page.
"use strict";
(() => {
  const up = document.documentElement.dataset.up;
  document.documentElement.classList.add("scripts"); // the style sheet hides what would do nothing without
  const make = (tag, cls, text) => {
    const element = document.createElement(tag);
    if (cls) element.className = cls;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const toc = document.querySelector(".toc");
  if (toc) toc.open = matchMedia("(min-width: 1280px)").matches; // there it stands beside the text

  // A long page is cut into parts: an address of one of its sections that names the first part goes on to the right one.
  if (location.hash && !document.getElementById(decodeURIComponent(location.hash.slice(1)))) {
    const section = toc?.querySelector(`a[href$="${CSS.escape(location.hash.slice(1))}"]`);
    if (section) location.replace(section.href);
  }

  // ---- light and dark ----
  const theme = document.querySelector(".theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // Without storage the choice holds for this page alone.
    }
  });

  // ---- the menu of a phone is a target of its own; a choice of a link closes it ----
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && location.hash === "#pages") location.hash = "#main";
  });

  // ---- search ----
  const box = document.querySelector(".search");
  const input = box.querySelector("input");
  const found = box.querySelector(".found");
  box.hidden = false;
  let engine;
  let loading;
  const load = () => (loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = up + "search.js";
    script.onload = () => {
      engine = MiniSearch.loadJSON(window.einSearchIndex, { fields: ["title", "page", "text"], storeFields: ["title", "page", "url"] });
      resolve();
    };
    script.onerror = () => reject(new Error("search.js cannot be loaded"));
    document.head.append(script);
  }));

  function answer(query) {
    const options = { prefix: (word) => word.length > 1, fuzzy: (word) => (word.length > 4 ? 0.2 : false), boost: { title: 5, page: 2 },
      boostDocument: (id, term, stored) => (/^[A-Z]/.test(stored.url) ? 0.3 : 1) }; // pages about the compiler and its history come last
    const all = engine.search(query, { ...options, combineWith: "AND" });
    return all.length ? all : engine.search(query, options);
  }

  async function show() {
    const query = input.value.trim();
    if (!query) return found.replaceChildren();
    try {
      await load();
    } catch (error) {
      return found.replaceChildren(make("p", "", `There is no search: ${error.message}.`));
    }
    if (query !== input.value.trim()) return undefined; // a newer question is on its way
    const before = performance.now();
    const results = answer(query);
    found.dataset.ms = (performance.now() - before).toFixed(1);
    if (!results.length) return found.replaceChildren(make("p", "", `Nothing is found for “${query}”.`));
    found.replaceChildren(...results.slice(0, 12).map(({ title, page, url }, at) => {
      const link = make("a", "", title);
      link.href = up + url;
      link.setAttribute("aria-selected", String(at === 0));
      if (page !== title) link.append(make("small", "", page));
      return link;
    }));
    return undefined;
  }
  input.addEventListener("focus", () => load().catch(() => {}), { once: true });
  input.addEventListener("input", show);
  found.addEventListener("click", () => found.replaceChildren());
  input.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.findIndex((link) => link.getAttribute("aria-selected") === "true");
    if (event.key === "Escape") {
      input.value = "";
      found.replaceChildren();
      input.blur();
    } else if (event.key === "Enter" && at >= 0) {
      links[at].click();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && links.length) {
      const next = (at + (event.key === "ArrowDown" ? 1 : links.length - 1)) % links.length;
      links[at]?.setAttribute("aria-selected", "false");
      links[next].setAttribute("aria-selected", "true");
      links[next].scrollIntoView({ block: "nearest" });
      event.preventDefault();
    }
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target)) found.replaceChildren();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      input.focus();
    }
  });

  // ---- Run and Open ----
  const playground = new URL(up + "playground/", location.href);
  let runner;
  const getRunner = () => (runner ??= import(new URL("runner.js", playground)).then((module) => module.createRunner()));

  function sourceOf(figure) {
    const code = figure.querySelector("code").textContent;
    const use = figure.dataset.use;
    return (use ? use + "\n" : "") + code + "\n";
  }

  function told(answer, tested) {
    const failed = answer.status !== 0;
    const place = make("div", failed ? "live failed" : "live");
    const text = (answer.stdout ?? "") + (answer.stderr || (failed ? (answer.diagnostics ?? []).map((d) => d.rendered ?? d.message).join("\n") : ""));
    const files = answer.files ?? [];
    const same = !failed && text === tested;
    const heading = failed ? `It ended with status ${answer.status}` : same ? "It ran here, and printed the same" : text ? "It ran here, and printed" : "It ran here without a mistake, and prints nothing";
    place.append(make("div", "told", heading));
    if (text && !same) place.append(make("pre", "out", text));
    for (const file of files) {
      place.append(make("div", "told", `It saved ${file.name}`));
      if (file.name.endsWith(".svg")) {
        const image = make("img");
        image.alt = file.name;
        image.src = "data:image/svg+xml," + encodeURIComponent(file.text);
        place.append(image);
      } else if (/\.(csv|tsv|txt|md|json|jsonl|html)$/.test(file.name)) {
        place.append(make("pre", "out", file.text));
      } // the others are not text: their names will do
    }
    return place;
  }

  for (const button of document.querySelectorAll("button.run")) {
    button.addEventListener("click", async () => {
      const figure = button.closest("figure");
      button.disabled = true;
      button.textContent = "Running …";
      let place;
      try {
        const running = await getRunner();
        place = told(await running.request({ verb: "run", source: sourceOf(figure) }), figure.querySelector(":scope > .out")?.textContent);
      } catch (error) {
        runner = undefined;
        const why = location.protocol === "file:" ? "Run needs the pages from a web server; they were opened as files." : String(error?.message ?? error);
        place = told({ status: "unknown", stderr: why + "\n" });
        place.querySelector(".told").textContent = "It could not be run";
      }
      figure.querySelector(".live")?.remove();
      figure.append(place);
      button.disabled = false;
      button.textContent = "Run again";
    });
  }

  // The address of a program is computed when somebody is about to follow it: it would make every page longer.
  for (const link of document.querySelectorAll("a.open")) {
    let ready;
    const fill = () => (ready ??= import(new URL("address.js", playground))
      .then((module) => module.encode(sourceOf(link.closest("figure"))))
      .then((code) => {
        link.href = `${up}playground/index.html#${String(code).replace(/^#/, "")}`;
      }).catch(() => {}));
    link.addEventListener("pointerenter", fill);
    link.addEventListener("focus", fill);
    link.addEventListener("click", async (event) => {
      if (link.hash || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      await fill();
      location.href = link.href;
    });
  }
})();
