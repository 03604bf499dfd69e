// The editor: CodeMirror with the language server of the module, coordinates in their colours, and numbers that can
// be dragged.
import { LSPClient, formatDocument, formatKeymap, hoverTooltips, jumpToDefinitionKeymap, renameKeymap,
         serverCompletion, signatureHelp } from "@codemirror/lsp-client";
import { setDiagnostics } from "@codemirror/lint";
import { indentWithTab } from "@codemirror/commands";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap } from "@codemirror/view";
import { basicSetup } from "codemirror";
import { classOf, lightAgain } from "./colours.js";
import { draggableNumbers } from "./numbers.js";
import { ein, highlighting } from "./language.js";

const URI = "file:///program.ein";
const MODIFIED = -32801; // codes of the protocol
const CANCELLED = -32800;

// Messages of the language server through a runner, those that come together in one request.
function transportOf(runner) {
  let handlers = [];
  let queue = [];
  let sending = false;
  async function pump() {
    if (sending) return;
    sending = true;
    while (queue.length) {
      const messages = queue.splice(0).map((m) => JSON.parse(m));
      const answer = await runner.request({ verb: "lsp", messages });
      for (const message of answer.messages ?? []) {
        // The document changed while an answer was on its way: there is nothing to show, and nothing to report.
        const stale = message.error && (message.error.code === MODIFIED || message.error.code === CANCELLED);
        const said = stale ? { jsonrpc: "2.0", id: message.id, result: null } : message;
        for (const h of handlers) h(JSON.stringify(said));
      }
    }
    sending = false;
  }
  return {
    send(message) {
      queue.push(message);
      pump();
    },
    subscribe: (h) => handlers.push(h),
    unsubscribe: (h) => (handlers = handlers.filter((x) => x !== h)),
    reset: () => (queue = []),
  };
}

const setCoords = StateEffect.define();
const coords = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    marks = marks.map(transaction.changes);
    for (const e of transaction.effects) if (e.is(setCoords)) marks = e.value;
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const setShown = StateEffect.define();
const shown = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    marks = marks.map(transaction.changes);
    for (const e of transaction.effects) if (e.is(setShown)) marks = e.value;
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const fits = (state, [from, to]) => from < to && to <= state.doc.length;

export function createEditor(parent, runner, { onchange, onpick, onrun }) {
  const client = new LSPClient({ timeout: 20_000, extensions: [serverCompletion(), hoverTooltips(), signatureHelp()] });
  const transport = transportOf(runner);
  client.connect(transport);

  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run: () => (onrun(), true) },
          { key: "Ctrl-Enter", run: () => (onrun(), true) },
          ...formatKeymap, ...renameKeymap, ...jumpToDefinitionKeymap,
        ]),
        basicSetup,
        keymap.of([indentWithTab]),
        EditorState.tabSize.of(4),
        EditorView.lineWrapping,
        ein,
        highlighting,
        coords,
        shown,
        draggableNumbers(),
        client.plugin(URI, "ein"),
        EditorView.contentAttributes.of({ "aria-label": "the program", spellcheck: "false" }),
        EditorView.updateListener.of((update) => update.docChanged && onchange(update)),
        EditorView.domEventHandlers({
          click(event, v) {
            if (!event.altKey) return false;
            const at = v.posAtCoords({ x: event.clientX, y: event.clientY });
            const word = at === null ? null : v.state.wordAt(at);
            if (word) onpick(v.state.sliceDoc(word.from, word.to));
            return Boolean(word);
          },
        }),
      ],
    }),
  });

  return {
    view,
    text: () => view.state.doc.toString(),
    setText(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 },
                      scrollIntoView: true });
    },
    // The name at the cursor, for the pickers.
    nameAtCursor() {
      const word = view.state.wordAt(view.state.selection.main.head);
      return word ? view.state.sliceDoc(word.from, word.to) : null;
    },
    format: () => formatDocument(view),
    // The worker was started again: it knows nothing of the document.
    reconnect() {
      transport.reset();
      client.disconnect();
      client.connect(transport);
    },
    // The coordinates and indices of the text, as the language server sees them; the names.
    async colour() {
      const doc = view.state.doc;
      const legend = ["index", "coordinate"];
      const names = [];
      const places = [];
      try {
        await client.initializing;
        client.sync();
        const kinds = client.serverCapabilities.semanticTokensProvider.legend.tokenTypes;
        const found = await client.request("textDocument/semanticTokens/full", { textDocument: { uri: URI } });
        let line = 0;
        let character = 0;
        for (let i = 0; i + 4 < (found?.data.length ?? 0); i += 5) {
          line += found.data[i];
          character = found.data[i] ? found.data[i + 1] : character + found.data[i + 1];
          if (!legend.includes(kinds[found.data[i + 3]]) || line >= doc.lines) continue;
          const from = doc.line(line + 1).from + character;
          const to = from + found.data[i + 2];
          if (to > doc.length) continue;
          const name = doc.sliceString(from, to);
          names.push(name);
          places.push({ from, to, name });
        }
      } catch {
        return null; // an edit came in between: the next one asks again
      }
      return { names, draw() {
        if (view.state.doc !== doc) return;
        const marks = places.map(({ from, to, name }) =>
          Decoration.mark({ class: classOf(name), attributes: { "data-coord": name } }).range(from, to));
        view.dispatch({ effects: setCoords.of(Decoration.set(marks, true)) });
        lightAgain();
      } };
    },
    showDiagnostics(diagnostics) {
      const list = diagnostics.map((d) => {
        const label = d.labels.find((l) => l.primary) ?? d.labels[0];
        const at = d.labels.map((l) => l.primary && l.at).find(Boolean) ?? d.labels.map((l) => l.at).find(Boolean);
        const [from, to] = at ?? [0, 0];
        const length = view.state.doc.length;
        const fixes = d.fixes.filter((f) => f.edits.every((e) => e.at));
        return {
          from: Math.min(from, length),
          to: Math.min(Math.max(to, from), length),
          severity: d.severity,
          source: d.code,
          message: [d.message, label?.text, ...d.notes, d.help && `help: ${d.help}`].filter(Boolean).join("\n"),
          actions: fixes.map((fix) => ({
            name: fix.title,
            apply: (v) => v.dispatch({ changes: fix.edits.map((e) => ({ from: e.at[0], to: e.at[1], insert: e.text })) }),
          })),
        };
      });
      view.dispatch(setDiagnostics(view.state, list));
    },
    // Shows places of the source; `scroll` brings the first into view.
    show(places, scroll = false) {
      const good = places.filter((p) => p && fits(view.state, p)).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      const marks = good.map(([from, to]) => Decoration.mark({ class: "shown" }).range(from, to));
      const effects = [setShown.of(Decoration.set(marks, true))];
      if (scroll && good.length) effects.push(EditorView.scrollIntoView(good[0][0], { y: "nearest" }));
      view.dispatch({ effects });
    },
    focus: () => view.focus(),
  };
}
