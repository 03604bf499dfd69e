// The words of the language, for the editor and for source that panels show. The lists are those of the grammar in
// editors/vscode, which tools/editor_words.py writes; web/build.mjs puts them in.
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { chip, isCoordinate } from "./colours.js";

/* global EIN_WORDS */
const words = EIN_WORDS;
const keywords = new Set(words.keywords);
const soft = new Set(words.soft);
const types = new Set(words.types);
const builtins = new Set(words.builtins);

const NUMBER = /^[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9_]+)?/;
const WORD = /^[A-Za-z_][A-Za-z0-9_]*/;

// The kind of the token that begins a rest of a line, and its length. `state.string`: inside a string.
function token(rest, state) {
  if (state.string && !state.inside) {
    if (rest[0] === '"') return (state.string = false), ["string", 1];
    if (/^(\{\{|\}\}|\\.)/.test(rest)) return ["string", 2];
    if (rest[0] === "{") return (state.inside = 1), ["punctuation", 1];
    return ["string", rest.match(/^[^"{}\\]+/)?.[0].length ?? 1];
  }
  if (state.inside) {
    if (rest[0] === "}") return (state.inside = 0), ["punctuation", 1];
    if (rest[0] === '"') return (state.inside = 0), (state.string = false), ["string", 1];
  }
  const space = rest.match(/^\s+/);
  if (space) return ["", space[0].length];
  if (rest.startsWith("//")) return ["comment", rest.length];
  if (rest[0] === '"') return (state.string = true), ["string", 1];
  const number = rest.match(NUMBER);
  if (number) {
    // `0..3`: the point belongs to the range.
    const text = number[0].endsWith(".") ? number[0].slice(0, -1) : number[0];
    return ["number", text.length];
  }
  const word = rest.match(WORD)?.[0];
  if (!word) return [rest[0] === "@" ? "request" : /^[[\](){},;]/.test(rest) ? "punctuation" : "operator", 1];
  if (keywords.has(word)) return ["keyword", word.length];
  if (types.has(word)) return ["type", word.length];
  const after = rest.slice(word.length);
  // `sum[in in 0..3]`, `in as f32`: coordinates may have the names of soft keywords.
  if (soft.has(word) && /^\s+(?!(?:in|as)\b)[A-Za-z_"(0-9]/.test(after)) return ["keyword", word.length];
  if (builtins.has(word) && /^\s*[[(]/.test(after)) return ["builtin", word.length];
  return ["name", word.length];
}

const TAGS = {
  keyword: tags.keyword,
  type: tags.typeName,
  builtin: tags.standard(tags.name),
  number: tags.number,
  string: tags.string,
  comment: tags.comment,
  request: tags.special(tags.operator),
  operator: tags.operator,
  name: tags.name,
};

export const ein = StreamLanguage.define({
  name: "ein",
  startState: () => ({ string: false, inside: 0 }),
  token(stream, state) {
    if (stream.sol()) (state.string = false), (state.inside = 0);
    const [kind, length] = token(stream.string.slice(stream.pos), state);
    stream.pos += length;
    return kind === "punctuation" || kind === "" ? null : kind;
  },
  tokenTable: TAGS,
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
});

export const highlighting = syntaxHighlighting(HighlightStyle.define(
  Object.entries(TAGS).map(([kind, tag]) => ({ tag, class: `t-${kind}` }))));

// A line of source as elements; coordinates are chips, so that they light up. `names` get `data-name`.
export function lineElements(line, names = new Set()) {
  const out = [];
  const state = { string: false, inside: 0 };
  for (let at = 0; at < line.length; ) {
    const [kind, length] = token(line.slice(at), state);
    const text = line.slice(at, at + length);
    at += length;
    if (kind === "name" && isCoordinate(text)) {
      out.push(chip(text));
    } else if (kind === "name" || kind in TAGS) {
      const span = document.createElement("span");
      span.className = `t-${kind}`;
      span.textContent = text;
      if (names.has(text)) span.dataset.name = text;
      out.push(span);
    } else {
      out.push(document.createTextNode(text));
    }
  }
  return out;
}
