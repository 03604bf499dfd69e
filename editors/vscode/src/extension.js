// The client of `ein lsp`: finds the binary, starts it, and shows what the lenses print.
const fs = require("node:fs");
const path = require("node:path");
const { execFile } = require("node:child_process");
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;
let output;

function isFile(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function findBinary() {
  const name = process.platform === "win32" ? "ein.exe" : "ein";
  const set = vscode.workspace.getConfiguration("ein").get("path");
  if (set) return set;
  const folders = (vscode.workspace.workspaceFolders ?? []).map((f) => f.uri.fsPath);
  const environments = folders.flatMap((f) => [path.join(f, ".venv"), path.join(f, "venv")]);
  if (process.env.VIRTUAL_ENV) environments.push(process.env.VIRTUAL_ENV);
  for (const e of environments) {
    const binary = path.join(e, "bin", name);
    if (isFile(binary)) return binary;
  }
  return name;
}

// What a lens prints: derivatives beside the program, everything else in the output panel. It runs what is saved.
async function execute(command, args, next) {
  const document = vscode.workspace.textDocuments.find((d) => d.uri.toString() === args[0]);
  if (document?.isDirty) await document.save();
  const result = await next(command, args);
  if (!result || typeof result.output !== "string") return result;
  if (command === "ein.grad" && result.status === 0) {
    const document = await vscode.workspace.openTextDocument({ language: "ein", content: result.output });
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  } else {
    output.clear();
    output.append(result.output);
    output.show(true);
  }
  return result;
}

// `ein explain --html` in a panel.
async function explainPage(context) {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.languageId !== "ein" || editor.document.isUntitled) return;
  await editor.document.save();
  const file = editor.document.uri.fsPath;
  await fs.promises.mkdir(context.globalStorageUri.fsPath, { recursive: true });
  const page = path.join(context.globalStorageUri.fsPath, "explain.html");
  const options = { cwd: path.dirname(file), timeout: 60000 };
  execFile(findBinary(), ["explain", file, "--html", page], options, async (error, _out, problems) => {
    if (error) {
      vscode.window.showErrorMessage(problems || error.message);
      return;
    }
    const panel = vscode.window.createWebviewPanel("ein.explain", path.basename(file), vscode.ViewColumn.Beside, {});
    panel.webview.html = await fs.promises.readFile(page, "utf8");
  });
}

async function start() {
  const command = findBinary();
  client = new LanguageClient(
    "ein",
    "Einlang",
    { command, args: ["lsp"], transport: TransportKind.stdio },
    {
      documentSelector: [{ language: "ein" }],
      initializationOptions: { showsOutput: true },
      middleware: { executeCommand: execute },
      synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.ein") },
    },
  );
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(`Einlang: ${command} does not start (${error.message}). Set "ein.path", or install it.`);
  }
}

async function activate(context) {
  output = vscode.window.createOutputChannel("Einlang");
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand("ein.explainPage", () => explainPage(context)),
    vscode.commands.registerCommand("ein.restart", async () => {
      await client?.stop();
      await start();
    }),
  );
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
