// Starts `udcp lsp` for .loss files; all that is shown comes from the server.

const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate() {
  const [command, ...args] = workspace.getConfiguration("udcp").get("command");
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    "udcp",
    "udcp",
    { command, args, options: { cwd: folder } },
    { documentSelector: [{ language: "loss" }] },
  );
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `udcp: ${command} does not start (${error.message}). Install it, pip install 'udcp_dsl[lsp]', or set udcp.command.`,
    );
  }
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
