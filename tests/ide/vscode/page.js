// The page of check.mjs: the editor of Visual Studio Code with its own client library, the manifest, grammar and brackets of
// editors/vscode, and a server at the other end of a socket.
import * as vscode from "vscode";
import * as monaco from "@codingame/monaco-vscode-editor-api";
import { EditorApp } from "monaco-languageclient/editorApp";
import { LanguageClientWrapper } from "monaco-languageclient/lcwrapper";
import { MonacoVscodeApiWrapper } from "monaco-languageclient/vscodeApiWrapper";
import { configureDefaultWorkerFactory } from "monaco-languageclient/workerFactory";

const { manifest, files, file, program, socket } = window.setup;
const { main: _main, activationEvents: _events, scripts: _scripts, ...declared } = manifest; // what runs in Node stays there

async function start() {
  await new MonacoVscodeApiWrapper({
    $type: "extended",
    viewsConfig: { $type: "EditorService" },
    userConfiguration: { json: JSON.stringify({
      "workbench.colorTheme": "Default Light Modern", "editor.fontSize": 15, "editor.fontFamily": "DejaVu Sans Mono",
      "editor.wordBasedSuggestions": "off", "editor.inlayHints.enabled": "on", "editor.semanticHighlighting.enabled": true,
      "editor.experimental.asyncTokenization": false,
    }) },
    extensions: [{ config: declared, filesOrContents: new Map(Object.entries(files)) }],
    monacoWorkerFactory: configureDefaultWorkerFactory,
  }).start();
  const app = new EditorApp({
    codeResources: { modified: { text: program, uri: file } },
    editorOptions: { minimap: { enabled: false }, automaticLayout: true, lightbulb: { enabled: "on" } },
  });
  await app.start(document.getElementById("editor"));
  const output = []; // what lenses print
  const client = new LanguageClientWrapper({
    languageId: "ein",
    connection: { options: { $type: "WebSocketUrl", url: socket } },
    clientOptions: {
      documentSelector: [{ language: "ein" }],
      initializationOptions: { showsOutput: true },
      middleware: {
        async executeCommand(command, args, next) {
          const result = await next(command, args);
          output.push({ command, result });
          return result;
        },
      },
    },
  });
  await client.start();
  Object.assign(window, { vscode, monaco, editor: app.getEditor(), client: client.getLanguageClient(), output });
}

start().then(() => { window.ready = true; }, (error) => { window.failed = String(error?.stack ?? error?.message ?? error); });
