// The site, from the pages in the repository. Usage: node site.mjs ROOT OUT WEB
//
// Every page of docs/ becomes a page under OUT, and so does every file of the repository that a page links to. WEB is the folder
// that `make playground` fills: it is copied to OUT/playground, and programs get buttons that run and open them there. Without it
// they have none. The build fails if a link or an anchor leads nowhere, or if a page is larger than 100 KB.

import fs from "node:fs";
import path from "node:path";
import MarkdownIt from "markdown-it";
import MiniSearch from "minisearch";
import { createHighlighter } from "shiki";

const [root, out, web] = process.argv.slice(2).map((folder) => path.resolve(folder));
const here = import.meta.dirname;
const LIMIT = 100 * 1024;
const { posix } = path;
const started = Date.now();
const problems = [];
const hasPlayground = fs.existsSync(path.join(web, "runner.js"));

const read = (file) => fs.readFileSync(path.join(root, file), "utf8");
const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

function write(file, text) {
  fs.mkdirSync(path.dirname(path.join(out, file)), { recursive: true });
  fs.writeFileSync(path.join(out, file), text);
}

// ---- colours of code ----

// The theme gives each kind of token a number in place of a colour; the style sheet gives the class of that number its colours.
const CLASSES = { "#000001": "c", "#000002": "s", "#000003": "n", "#000004": "k", "#000005": "f", "#000006": "t", "#000007": "r" };
const SCOPES = {
  c: ["comment"],
  s: ["string"],
  n: ["constant.numeric", "constant.language"],
  k: ["keyword", "storage"],
  f: ["entity.name.function", "support.function"],
  t: ["storage.type.ein", "entity.name.type", "support.type", "meta.attribute"],
  r: ["keyword.operator.request"],
};
const colourOf = Object.fromEntries(Object.entries(CLASSES).map(([colour, name]) => [name, colour]));
const theme = {
  name: "classes",
  type: "light",
  settings: [
    { settings: { foreground: "#000000", background: "#ffffff" } },
    ...Object.entries(SCOPES).map(([name, scope]) => ({ scope, settings: { foreground: colourOf[name] } })),
    { scope: ["keyword.operator"], settings: { foreground: "#000000" } },
    { scope: ["keyword.operator.request"], settings: { foreground: colourOf.r } },
  ],
};
const grammar = JSON.parse(read("editors/vscode/syntaxes/ein.tmLanguage.json"));
const highlighter = await createHighlighter({ themes: [theme], langs: [{ ...grammar, name: "ein" }, "python", "cpp", "c", "shellscript"] });

function coloured(code, language) {
  if (!highlighter.getLoadedLanguages().includes(language)) return escape(code);
  const lines = highlighter.codeToTokensBase(code, { lang: language, theme: "classes" });
  return lines.map((line) => {
    let html = "";
    let open = "";
    // Spaces take the colour of what stands before them, so that `let x` is not three spans.
    for (const token of line) {
      const name = /^\s*$/.test(token.content) ? open : CLASSES[token.color?.toLowerCase()] ?? "";
      if (name !== open) html += (open && "</i>") + (name && `<i class=${name}>`);
      open = name;
      html += escape(token.content);
    }
    return html + (open && "</i>");
  }).join("\n");
}

// ---- which file becomes which page ----

// Source pages by their path in the repository, in the order in which they are found.
const pages = new Map();
const copies = new Map();

function addressOf(file) {
  if (file === "tools/site/start.md" || file === "README.md") return "index.html";
  if (file === "docs/README.md") return "contents.html";
  const name = file.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
  return name.endsWith(".md") ? name.slice(0, -3) + ".html" : "files/" + name + ".html";
}

function addPage(file) {
  if (!pages.has(file)) pages.set(file, { file, address: addressOf(file) });
  return pages.get(file);
}

// The address that a link from a page to a file of the repository gets; the file becomes a page, or is copied, if it is not there yet.
function follow(from, href) {
  const [target, section] = href.split("#");
  if (!target) return "#" + section.toLowerCase();
  const file = posix.normalize(posix.join(posix.dirname(from.file), decodeURI(target)));
  const full = path.join(root, file);
  if (file.startsWith("..") || !fs.existsSync(full)) {
    problems.push(`${from.file}: ${href} is not there`);
    return href;
  }
  let address;
  if (/\.(ipynb|png|svg)$/.test(file)) {
    address = posix.join("files", file);
    copies.set(file, address);
  } else {
    address = (file === "README.md" ? pages.get("tools/site/start.md") : addPage(file.replace(/\/$/, ""))).address;
  }
  return posix.relative(posix.dirname(from.address), address) + (section ? "#" + section.toLowerCase() : "");
}

// ---- Markdown ----

const md = new MarkdownIt({ html: false, linkify: false });
const plain = (token) => (token.children ?? []).map((t) => (t.type === "softbreak" ? " " : t.content)).join("");

// As GitHub names headings, and as tests/meta/pages.py expects it.
function slug(text, page) {
  const name = text.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-");
  const again = page.used.get(name) ?? 0;
  page.used.set(name, again + 1);
  return again ? `${name}-${again}` : name;
}

// Blocks that only show a signature or a rule are no programs.
const isProgram = (code) => !/^(pub fn|pub const|@fn|#\[)/.test(code) || /^(let|print|assert)\b/m.test(code);
// Programs that read files, or modules beside them, run where these are, and what prints inputs wants to be given them.
const runsAlone = (code) => !/\bload\(|^\s*use (?!std\b)|^\/\/ file: /m.test(code)
  && !(/^let \w+: [^=]*;/m.test(code) && /^(print|assert|save)\b/m.test(code));

function program(code, info, next, page) {
  const marker = info.replace(/^ein,?/, "").trim();
  const warned = /errors\/W/.test(page.file);
  const failing = marker.startsWith("error=") || (marker === "fails" && !warned);
  const kind = marker === "fails" ? (warned ? "has a warning" : "fails") : marker.replace(/^error=(\w+)$/, "does not compile: $1")
    .replace(/^warning=(\w+)$/, "has a warning: $1").replace(/^fixed$/, "works");
  const codeName = /[EW]\d{4}/.exec(kind)?.[0];
  const label = codeName
    ? escape(kind).replace(codeName, `<a href="${follow(page, posix.relative(posix.dirname(page.file), `docs/errors/${codeName}.md`))}">${codeName}</a>`)
    : escape(kind);
  const buttons = hasPlayground && isProgram(code) && runsAlone(code)
    ? `<button class=run type=button>Run</button><a class=open href="${page.up}playground/index.html">Open</a>` : "";
  const use = page.use && buttons ? ` data-use="${escape(page.use)}"` : "";
  const told = { output: "It prints", message: "The compiler says" }[next?.info];
  const bar = buttons || label ? `<div class=bar>${label ? `<span class="${failing ? "bad" : "note"}">${label}</span>` : ""}${buttons}</div>` : "";
  const after = told ? `<div class=told>${told}</div><pre class=out tabindex=0>${escape(next.content)}</pre>` : "";
  return `<figure class=ein${use}><pre tabindex=0><code>${coloured(code.replace(/\n$/, ""), "ein")}</code></pre>${bar}${after}</figure>\n`;
}

md.renderer.rules.fence = (tokens, at, options, page) => {
  const { info, content } = tokens[at];
  const language = /^\w*/.exec(info)[0];
  if (tokens[at].shown) return "";
  if (language === "ein") {
    const next = tokens[at + 1];
    const belongs = next?.type === "fence" && ["output", "message"].includes(next.info);
    if (belongs) next.shown = true;
    return program(content, info, belongs ? next : null, page);
  }
  if (language === "output") return `<figure><div class=told>It prints</div><pre class=out tabindex=0>${escape(content)}</pre></figure>\n`;
  const code = coloured(content.replace(/\n$/, ""), { sh: "shellscript", console: "", text: "" }[language] ?? language);
  return `<figure><pre tabindex=0><code>${code}</code></pre></figure>\n`;
};

md.renderer.rules.heading_open = (tokens, at, options, page) => {
  const text = plain(tokens[at + 1]);
  const id = slug(text, page);
  if (tokens[at].tag === "h1") page.title ??= text;
  page.headings.push({ level: +tokens[at].tag[1], text, id });
  page.sections.push({ id, title: text, text: "" });
  return `<${tokens[at].tag} id="${id}">`;
};

md.renderer.rules.heading_close = (tokens, at, options, page) => {
  const { level, id } = page.headings.at(-1);
  return (level > 1 ? ` <a class=here href="#${id}" aria-label="Link to this section">#</a>` : "") + `</${tokens[at].tag}>\n`;
};

md.renderer.rules.link_open = (tokens, at, options, page) => {
  const href = tokens[at].attrGet("href");
  return `<a href="${escape(/^[a-z]+:/.test(href) ? href : follow(page, href))}">`;
};

md.renderer.rules.table_open = () => "<div class=table tabindex=0><table>\n";
md.renderer.rules.table_close = () => "</table></div>\n";
const escaped = md.renderer.rules.code_inline;
md.renderer.rules.code_inline = (...args) => escaped(...args).replace(/<code[^>]*>/, "<code>");

function render(page) {
  Object.assign(page, { used: new Map(), headings: [], sections: [], up: "../".repeat(page.address.split("/").length - 1) });
  const full = path.join(root, page.file);
  let text;
  if (fs.statSync(full).isDirectory()) {
    const files = fs.readdirSync(full).filter((name) => !/^(README\.md|[._].*)$/.test(name)).sort();
    text = `# ${page.file}\n\n${files.map((name) => `- [${name}](${posix.basename(page.file)}/${name})`).join("\n")}\n`;
  } else {
    text = read(page.file);
    if (!page.file.endsWith(".md")) {
      const language = { ".ein": "ein", ".py": "python", ".c": "c", ".h": "c", ".cc": "cpp", ".hpp": "cpp" }[path.extname(page.file)] ?? "text";
      text = `# ${posix.basename(page.file)}\n\n\`${page.file}\`\n\n\`\`\`\`${language}\n${text}\`\`\`\`\n`;
    }
  }
  page.use = /^`(use std::[\w:]+::\*;)`$/m.exec(text)?.[1];
  const tokens = md.parse(text, page);
  page.body = md.renderer.render(tokens, md.options, page);
  page.title ??= posix.basename(page.file);
  // What a reader searches for: the words of a section, and its programs.
  let section = -1;
  for (const token of tokens) {
    if (token.type === "heading_open") section += 1;
    if (section < 0) continue;
    if (token.type === "inline") page.sections[section].text += plain(token) + " ";
    if (token.type === "fence" && /^(ein|python)/.test(token.info)) page.sections[section].text += token.content + " ";
  }
}

// ---- the page around the text ----

// The groups of docs/README.md: their titles, and the pages they list under the names they have there.
function groups() {
  const index = { file: "docs/README.md", address: "contents.html" };
  return read("docs/README.md").split(/^## /m).slice(1).map((part) => ({
    title: part.slice(0, part.indexOf("\n")),
    items: [...part.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, name, link]) => ({ name, address: follow(index, link) })),
  }));
}

function navigation(page, all) {
  return all.map(({ title, items }) => {
    const inside = (page.address === "index.html" && ["Start", "Cookbook"].includes(title)) || items.some((item) => item.address === (page.whole ?? page.address))
      || (title === "Reference" && page.address.startsWith("errors/")) || (title.includes("library") && page.address.startsWith("library/"));
    const links = items.map(({ name, address }) =>
      `<a href="${page.up}${address}"${address === (page.whole ?? page.address) ? " aria-current=page" : ""}>${escape(name)}</a>`).join("");
    return `<details${inside ? " open" : ""}><summary>${escape(title.split(",")[0])}</summary>${links}</details>`;
  }).join("\n");
}

function contents(page) {
  const items = page.headings.filter(({ level }) => level === 2);
  if (items.length < 3) return "";
  const links = items.map(({ text, id }) => `<a href="#${id}">${escape(text)}</a>`).join("");
  return `<details class=toc><summary>On this page</summary>${links}</details>`;
}

function neighbours(page, all) {
  const parts = (item) => [...pages.values()].find((p) => p.address === item.address)?.parts ?? [];
  const line = all.flatMap((group) => group.items).flatMap((item) => [item, ...parts(item).map((part) => ({ name: part.title, address: part.address }))]);
  const at = line.findIndex((item) => item.address === page.address);
  if (at < 0) return "";
  const link = (item, word, rel) => item && !item.address.startsWith("files/")
    ? `<a rel=${rel} href="${page.up}${item.address}"><small>${word}</small> ${escape(item.name)}</a>` : "<span></span>";
  return `<nav class=next aria-label="Neighbouring pages">${link(line[at - 1], "Previous", "prev")}${link(line[at + 1], "Next", "next")}</nav>`;
}

function html(page, all) {
  const { up } = page;
  const first = page.body.match(/<p>(.*?)<\/p>/s)?.[1].replace(/<[^>]*>/g, "").replace(/\s+/g, " ").slice(0, 200) ?? "";
  const title = page.address === "index.html" ? "Einlang" : `${page.title} · Einlang`;
  return `<!doctype html>
<html lang=en data-up="${up}">
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<meta name=description content="${first.replaceAll('"', "&quot;")}">
<link rel=icon href="data:,">
<link rel=stylesheet href="${up}site.css">
<script>try{document.documentElement.dataset.theme=localStorage.getItem("theme")??""}catch{}</script>
<script src="${up}page.js" defer></script>
</head>
<body${page.address === "index.html" ? " class=start" : ""}>
<a class=skip href="#main">Skip to the text</a>
<header><a class=menu href="#pages">Pages</a><a class=name href="${up}index.html">Einlang</a>
<div class=search role=search hidden><input type=search placeholder="Search" aria-label="Search the pages" autocomplete=off><div class=found aria-live=polite></div></div>
<nav class=top aria-label="Main"><a href="${up}tour.html">Tour</a><a href="${up}cookbook/index.html">Cookbook</a><a href="${up}contents.html">All pages</a>${hasPlayground ? `<a href="${up}playground/index.html">Playground</a>` : ""}</nav>
<button class=theme type=button hidden aria-label="Light or dark">◐</button></header>
<div class=columns>
<main id=main><article>
${page.body.replace("</h1>", `</h1>${contents(page)}`)}
</article>
${neighbours(page, all)}
</main>
<nav id=pages aria-label="Pages"><a class=close href="#main">Close</a>${hasPlayground ? `<a class=try href="${up}playground/index.html">Playground</a>` : ""}
${navigation(page, all)}
</nav>
</div>
</body>
</html>
`;
}

// ---- pages that are too long for one ----

// Cuts such a page where its sections begin. `moved` says where a section went, so that links to it still lead there.
const moved = new Map();
function cut(page) {
  const room = 0.86 * LIMIT; // the rest is for navigation
  if (Buffer.byteLength(page.body) < room || !page.file.endsWith(".md")) return;
  const [first, ...sections] = page.body.split(/(?=<h2 )/);
  const bodies = [first];
  for (const section of sections) {
    if (Buffer.byteLength(bodies.at(-1)) + Buffer.byteLength(section) > room) bodies.push(section);
    else bodies[bodies.length - 1] += section;
  }
  page.parts = bodies.slice(1).map((body, at) => {
    const address = page.address.replace(/\.html$/, `-${at + 2}.html`);
    for (const [, id] of body.matchAll(/ id="([^"]+)"/g)) moved.set(`${page.address}#${id}`, address);
    const title = `${page.title}, part ${at + 2}`;
    return { ...page, body: `<h1>${escape(title)}</h1>\n${body}`, address, sections: [], parts: [], title, whole: page.address };
  });
  page.body = bodies[0];
  for (const part of page.parts) pages.set(part.address, part);
}

function relink(text, page) {
  if (!moved.size) return text;
  return text.replace(/ href="([^"#:]*)#([^"]+)"/g, (all, target, id) => {
    const whole = target ? posix.join(posix.dirname(page.address), target) : page.whole ?? page.address;
    const now = moved.get(`${whole}#${id}`) ?? whole;
    return now === page.address ? ` href="#${id}"` : moved.has(`${whole}#${id}`) || page.whole === whole ? ` href="${page.up}${now}#${id}"` : all;
  });
}

// ---- search ----

function searchIndex() {
  const index = new MiniSearch({ fields: ["title", "page", "text"], storeFields: ["title", "page", "url"] });
  let id = 0;
  for (const page of pages.values()) {
    // Lists of other pages, and a table of numbers, only stand in the way of what they list.
    if (page.address.startsWith("files/") || ["library/coverage.html", "library/index.html", "contents.html"].includes(page.address)) continue;
    for (const section of page.sections) {
      const address = moved.get(`${page.address}#${section.id}`) ?? page.address;
      const url = section === page.sections[0] ? address : `${address}#${section.id}`;
      index.add({ id: id++, title: section.title, page: page.title, url, text: section.text });
    }
  }
  return index;
}

// ---- what must hold of the result ----

// Reads the pages that were written, so it does not trust what wrote them.
function checkLinks() {
  const written = [...pages.values()].map((page) => page.address);
  const text = new Map(written.map((address) => [address, fs.readFileSync(path.join(out, address), "utf8")]));
  const ids = new Map([...text].map(([address, html]) => [address, new Set([...html.matchAll(/ id="?([^"\s>]+)/g)].map((m) => m[1]))]));
  let count = 0;
  for (const [address, html] of text) {
    if (Buffer.byteLength(html) > LIMIT) problems.push(`${address} has ${Buffer.byteLength(html)} bytes, more than ${LIMIT}`);
    for (const [, href] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(href)) continue;
      count += 1;
      const [target, section] = href.replaceAll("&amp;", "&").split("#");
      const file = target ? posix.join(posix.dirname(address), decodeURI(target)) : address;
      if (!fs.existsSync(path.join(out, file))) problems.push(`${address}: ${href} is not there`);
      else if (section && ids.has(file) && !ids.get(file).has(decodeURIComponent(section))) problems.push(`${address}: ${href} is no section`);
    }
  }
  return count;
}

// ---- all of it ----

fs.rmSync(out, { recursive: true, force: true });
addPage("tools/site/start.md");
addPage("docs/README.md");
for (const file of fs.readdirSync(path.join(root, "docs"), { recursive: true }).sort()) {
  if (file.endsWith(".md")) addPage(posix.join("docs", file.replaceAll(path.sep, "/")));
}
const all = groups();
for (const page of pages.values()) render(page); // a Map also visits what is added meanwhile
for (const page of [...pages.values()]) cut(page);
for (const page of pages.values()) write(page.address, relink(html(page, all), page));
for (const [file, address] of copies) write(address, fs.readFileSync(path.join(root, file)));
for (const name of ["site.css", "page.js"]) write(name, fs.readFileSync(path.join(here, name)));
const index = JSON.stringify(searchIndex());
const engine = fs.readFileSync(path.join(here, "node_modules/minisearch/dist/umd/index.js"), "utf8").replace(/\/\/# sourceMappingURL.*/, "");
write("search.js", `${engine}\nwindow.einSearchIndex = ${JSON.stringify(index)};\n`);
if (hasPlayground) fs.cpSync(web, path.join(out, "playground"), { recursive: true });
const links = checkLinks();

for (const problem of problems) console.error(`site: ${problem}`);
const largest = [...pages.values()].map(({ address }) => [fs.statSync(path.join(out, address)).size, address]).sort((a, b) => b[0] - a[0])[0];
console.log(`${out}: ${pages.size} pages, ${links} links, largest page ${largest[1]} with ${largest[0]} bytes, ` +
  `search ${(index.length / 1024).toFixed(0)} KB, ${((Date.now() - started) / 1000).toFixed(1)} s`);
if (!hasPlayground) console.error(`site: NO PLAYGROUND: there is no ${path.join(web, "runner.js")}, so programs have no Run and Open (\`make playground\` makes it)`);
if (problems.length) process.exit(1);
