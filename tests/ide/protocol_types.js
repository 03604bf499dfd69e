// The language server with the client library of Visual Studio Code: every answer is one that its types accept, ranges lie in the
// document, edits applied by its text documents give what `ein fmt` gives, and random edits with cancels and requests about places
// that do not exist end with the answers of a fresh server. Usage: node protocol_types.js EIN MODULES [--edits N [--from SEED]] [FILE…]
// MODULES is a folder whose node_modules has vscode-languageserver-protocol and vscode-languageserver-textdocument.
const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const { createRequire } = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [ein, modules, ...rest] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(modules), "from_here.js"));
const lsp = load("vscode-languageserver-protocol/node");
const { TextDocument } = load("vscode-languageserver-textdocument");
const root = path.resolve(__dirname, "../..");
const complaints = [];
const PIECES = ["let ", "x", "[", "]", "(", ")", "{", "}", ";", "=", " = @loss / @W;", "sum[k](", "\n", '"', "// ", "𝛼", "é", "日本", "👩‍👩‍👧", " where i > 0",
  "let y[i] = x[i];\n", "use std::math::{", "..", "@", "1.0e", "match x { 0 => 1 }", "\r\n"];

function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * below);
  };
}

class Session {
  constructor() {
    this.process = spawn(ein, ["lsp"], { stdio: ["pipe", "pipe", "ignore"] });
    this.connection = lsp.createProtocolConnection(
      new lsp.StreamMessageReader(this.process.stdout), new lsp.StreamMessageWriter(this.process.stdin));
    this.diagnostics = new Map();  // by document: the newest, and how often they came for this version
    this.connection.onNotification(lsp.PublishDiagnosticsNotification.type, (d) => {
      const known = this.diagnostics.get(d.uri);
      this.diagnostics.set(d.uri, { ...d, times: known?.version === d.version ? known.times + 1 : 1 });
    });
    this.connection.onNotification(lsp.LogMessageNotification.type, (m) => complaints.push(`the server logged: ${m.message}`));
    this.connection.listen();
  }
  async start() {
    const result = await this.connection.sendRequest(lsp.InitializeRequest.type, {
      processId: process.pid, rootUri: null, workspaceFolders: null,
      capabilities: { textDocument: { hover: { contentFormat: ["markdown"] } } } });
    this.legend = result.capabilities.semanticTokensProvider.legend;
    await this.connection.sendNotification(lsp.InitializedNotification.type, {});
  }
  async open(document) {
    await this.connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument:
      { uri: document.uri, languageId: "ein", version: document.version, text: document.getText() } });
  }
  async settled(uri, version) {
    // Quick ones come first, full ones after a moment of quiet.
    const full = () => this.diagnostics.get(uri)?.version === version && this.diagnostics.get(uri).times > 1;
    for (const end = Date.now() + 30000; !full();) {
      if (Date.now() > end) throw new Error(`no full diagnostics of version ${version} of ${uri}`);
      await new Promise((done) => setTimeout(done, 5));
    }
    return this.diagnostics.get(uri).diagnostics;
  }
  ask(type, params, token) {
    return this.connection.sendRequest(type, params, token);
  }
  async end() {
    await this.connection.sendRequest(lsp.ShutdownRequest.type);
    await this.connection.sendNotification(lsp.ExitNotification.type);
    const status = this.process.exitCode ?? await new Promise((done) => this.process.once("exit", done));
    if (status !== 0) complaints.push(`the server ended with ${status}`);
    this.connection.dispose();
  }
}

const all = (is) => (v) => Array.isArray(v) && v.every(is);
const orNull = (is) => (v) => v === null || is(v);
const symbol = (s) => lsp.DocumentSymbol.is(s) && (s.children ?? []).every(symbol);
const workspaceEdit = (e) => Object.values(e.changes).every(all(lsp.TextEdit.is));
// Of each request: what it asks, and whether the answer is one.
const REQUESTS = [
  [lsp.HoverRequest.type, orNull(lsp.Hover.is)],
  [lsp.DefinitionRequest.type, all(lsp.Location.is)],
  [lsp.DocumentHighlightRequest.type, all((h) => lsp.Range.is(h.range) && [1, 2, 3].includes(h.kind))],
  [lsp.ReferencesRequest.type, all(lsp.Location.is)],
  [lsp.CompletionRequest.type, (l) => typeof l.isIncomplete === "boolean" && l.items.every((i) => typeof i.label === "string" && i.kind >= 1 && i.kind <= 25 &&
    lsp.TextEdit.is(i.textEdit) && (i.additionalTextEdits ?? []).every(lsp.TextEdit.is))],
  [lsp.SignatureHelpRequest.type, orNull((s) => all((one) => typeof one.label === "string" && all((p) => one.label.includes(p.label))(one.parameters))(s.signatures))],
  [lsp.CodeActionRequest.type, all((c) => lsp.CodeAction.is(c) && workspaceEdit(c.edit))],
  [lsp.InlayHintRequest.type, all(lsp.InlayHint.is)],
  [lsp.DocumentSymbolRequest.type, all(symbol)],
  [lsp.FoldingRangeRequest.type, all(lsp.FoldingRange.is)],
  [lsp.CodeLensRequest.type, all((l) => lsp.CodeLens.is(l) && lsp.Command.is(l.command))],
  [lsp.SemanticTokensRequest.type, (t) => t.data.length % 5 === 0 && t.data.every((n) => n >= 0)],
  [lsp.DocumentFormattingRequest.type, all(lsp.TextEdit.is)],
  [lsp.PrepareRenameRequest.type, (r) => lsp.Range.is(r.range) && typeof r.placeholder === "string"],
  [lsp.RenameRequest.type, workspaceEdit],
];

function params(document, position) {
  const end = document.positionAt(document.getText().length);
  return { textDocument: { uri: document.uri }, position, newName: "renamed", options: { tabSize: 4, insertSpaces: true },
    range: { start: { line: 0, character: 0 }, end }, context: { diagnostics: [], includeDeclaration: true } };
}

// Every range in an answer about this document lies in it, and is not turned around.
function ranges(value, document, inside) {
  if (value === null || typeof value !== "object") return;
  if (value.uri && value.uri !== document.uri) return;
  if (lsp.Range.is(value)) {
    for (const place of [value.start, value.end]) {
      const back = document.positionAt(document.offsetAt(place));
      if (back.line !== place.line || back.character !== place.character) inside(`a place that does not exist, ${JSON.stringify(place)}`);
    }
    if (document.offsetAt(value.start) > document.offsetAt(value.end)) inside(`a range that is turned around, ${JSON.stringify(value)}`);
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    if (key !== "changes") ranges(inner, document, inside);
  }
}

function tokens(data, document, legend, complain) {
  let line = 0, character = 0, end = -1;
  for (let i = 0; i < data.length; i += 5) {
    const before = line;
    line += data[i];
    character = data[i] === 0 ? character + data[i + 1] : data[i + 1];
    if (line === before && character < end) complain(`tokens that overlap in line ${line + 1}`);
    end = character + data[i + 2];
    const place = document.positionAt(document.offsetAt({ line, character: end }));
    if (place.character !== end) complain(`a token beyond the end of line ${line + 1}`);
    if (data[i + 3] >= legend.tokenTypes.length) complain(`a token of type ${data[i + 3]}`);
  }
}

async function answers(session, document, places, complain) {
  const out = [];
  for (const position of places) {
    for (const [type, is] of REQUESTS) {
      let answer;
      try {
        answer = await session.ask(type, params(document, position));
      } catch (error) {
        if (error.code !== lsp.LSPErrorCodes.RequestFailed) complain(`${type.method}: ${error.message}`);
        out.push(error.message);
        continue;
      }
      const where = `${type.method} at ${position.line + 1}:${position.character + 1}`;
      if (!is(answer)) complain(`${where} answers ${JSON.stringify(answer)}`);
      ranges(answer, document, (what) => complain(`${where}: ${what}`));
      if (type === lsp.SemanticTokensRequest.type) tokens(answer.data, document, session.legend, complain);
      out.push(answer);
    }
  }
  return out;
}

async function program(file) {
  const next = random(file.length);
  const uri = pathToFileURL(file).href;
  const document = TextDocument.create(uri, "ein", 1, fs.readFileSync(file, "utf8"));
  const complain = (what) => complaints.push(`${path.relative(root, file)}: ${what}`);
  const session = new Session();
  await session.start();
  await session.open(document);
  for (const d of await session.settled(uri, 1)) {
    if (!lsp.Diagnostic.is(d)) complain(`the diagnostic ${JSON.stringify(d)}`);
    ranges(d, document, complain);
  }
  const size = document.getText().length;
  await answers(session, document, Array.from({ length: 12 }, () => document.positionAt(next(size))), complain);
  const edits = await session.ask(lsp.DocumentFormattingRequest.type, params(document, { line: 0, character: 0 }));
  const formatted = spawnSync(ein, ["fmt", "-"], { input: document.getText(), encoding: "utf8" });
  const wanted = formatted.status === 0 ? formatted.stdout : document.getText();  // a mistake in its syntax: it stays
  if (TextDocument.applyEdits(document, edits) !== wanted) complain("formatting is not that of `ein fmt`");
  await session.end();
}

async function edited(file, count, seed) {
  const next = random(seed);
  const uri = `file:///nowhere/${path.basename(file)}`;
  let document = TextDocument.create(uri, "ein", 1, fs.readFileSync(file, "utf8"));
  const complain = (what) => complaints.push(`${path.basename(file)}, seed ${seed}: ${what}`);
  const session = new Session();
  await session.start();
  await session.open(document);
  const waiting = [];
  for (let n = 0; n < count; ++n) {
    const size = document.getText().length;
    // No editor puts its cursor into a character, or between \r and \n; tests/ide/test_protocol.py sends halves of characters.
    const whole = (place) => /[\udc00-\udfff\n]/.test(document.getText()[place] ?? "") && place > 0 ? whole(place - 1) : place;
    const begin = whole(next(size + 1)), end = next(3) === 0 ? Math.max(begin, whole(Math.min(size, begin + 1 + next(20)))) : begin;
    const range = { start: document.positionAt(begin), end: document.positionAt(end) };
    const change = { range, text: next(5) === 0 ? "" : PIECES[next(PIECES.length)] };
    document = TextDocument.update(document, [change], document.version + 1);
    await session.connection.sendNotification(lsp.DidChangeTextDocumentNotification.type,
      { textDocument: { uri, version: document.version }, contentChanges: [change] });
    for (let k = next(3); k > 0; --k) {
      const [type, is] = REQUESTS[next(REQUESTS.length)];
      const source = new lsp.CancellationTokenSource();
      const position = { line: next(document.lineCount + 3), character: next(60) };
      waiting.push(session.ask(type, params(document, position), source.token).then(
        (answer) => is(answer) || complain(`${type.method} answers ${JSON.stringify(answer)}`),
        (error) => [lsp.LSPErrorCodes.RequestCancelled, lsp.LSPErrorCodes.ContentModified, lsp.LSPErrorCodes.RequestFailed].includes(error.code) ||
          complain(`${type.method}: ${error.message}`)));
      if (next(4) === 0) source.cancel();
    }
    if (waiting.length > 20) await Promise.all(waiting.splice(0));
  }
  await Promise.all(waiting);
  fs.writeFileSync("edited.ein", document.getText());  // kept when something is wrong with it
  const last = await session.settled(uri, document.version);
  const places = Array.from({ length: 5 }, () => document.positionAt(next(document.getText().length + 1)));
  const said = await answers(session, document, places, complain);
  await session.end();
  const fresh = new Session();
  await fresh.start();
  await fresh.open(document);
  const wanted = await fresh.settled(uri, document.version);
  const again = await answers(fresh, document, places, complain);
  await fresh.end();
  if (JSON.stringify(last) !== JSON.stringify(wanted)) complain("diagnostics differ from those of a fresh server");
  if (JSON.stringify(said) !== JSON.stringify(again)) complain("answers differ from those of a fresh server");
  if (complaints.length === 0) fs.unlinkSync("edited.ein");
}

(async () => {
  const at = rest.indexOf("--edits");
  const count = at >= 0 ? Number(rest.splice(at, 2)[1]) : 1000;
  const from = rest.indexOf("--from");  // what a complaint says, to see it again
  const first = from >= 0 ? Number(rest.splice(from, 2)[1]) - 7 : 0;
  const folders = ["examples", "tests/ide", "tests/run/records", "tests/run/strings", "tests/run/coordinate_calls"];
  const files = rest.length > 0 ? rest.map((f) => path.resolve(f)) : folders.flatMap((folder) =>
    fs.readdirSync(path.join(root, folder)).filter((f) => f.endsWith(".ein")).sort().map((f) => path.join(root, folder, f)));
  for (const file of first > 0 ? [] : files) {
    if (!fs.readFileSync(file, "utf8").includes("let ")) continue;
    try {
      await program(file);
    } catch (error) {
      complaints.push(`${path.relative(root, file)}: ${error.stack}`);
    }
  }
  const each = 100;
  for (let done = first; done < first + count && complaints.length === 0; done += each) {
    const file = files[random(done + 1)(files.length)];
    try {
      await edited(file, Math.min(each, first + count - done), done + 7);
    } catch (error) {
      complaints.push(`${path.relative(root, file)}, seed ${done + 7}: ${error.stack}`);
    }
  }
  console.log(complaints.slice(0, 40).join("\n") || `${files.length} programs, ${count} edits: fine`);
  process.exit(complaints.length > 0 ? 1 : 0);
})();
