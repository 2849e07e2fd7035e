// Starts weft-lsp. Its commands (weft.applyPass, weft.runLine, weft.updateChecks) come with its code actions.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("weft");
  const [command, ...args] = settings.get("server");
  const documents = [{ scheme: "file", language: "mlir" }];
  if (settings.get("python")) documents.push({ scheme: "file", language: "python" });
  client = new LanguageClient("weft", "weft", { command, args }, { documentSelector: documents });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(`${command} does not start: pip install 'weft[lsp]' (${error.message})`);
  }
}

async function primitive() {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !client) return;
  const passes = await vscode.window.showInputBox({
    prompt: "Passes that apply primitives",
    value: 'tir-split{block="B" loop=0 factors=0,4}',
  });
  if (!passes) return;
  const uri = editor.document.uri.toString();
  await vscode.commands.executeCommand("weft.applyPass", uri, editor.selection.active.line, passes);
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("weft.primitive", primitive),
    vscode.commands.registerCommand("weft.restart", async () => {
      if (client) await client.stop();
      await start();
    }),
  );
  await start();
};

exports.deactivate = () => client && client.stop();
