// The client, with stand-ins for the editor and for its library: what is started, where, and what is said if it fails.

const assert = require("node:assert");
const Module = require("node:module");
const { test } = require("node:test");

const started = [];
const said = [];
let command = ["udcp", "lsp"];
let fails = false;

class LanguageClient {
  constructor(...given) {
    this.given = given;
  }
  async start() {
    started.push(this.given);
    if (fails) throw new Error("spawn ENOENT");
  }
  stop() {
    started.length = 0;
  }
}

const STAND_INS = {
  vscode: {
    window: { showErrorMessage: (text) => said.push(text) },
    workspace: {
      getConfiguration: () => ({ get: () => command }),
      workspaceFolders: [{ uri: { fsPath: "/home/ann/specs" } }],
    },
  },
  "vscode-languageclient/node": { LanguageClient },
};
const load = Module._load;
Module._load = (name, ...rest) => STAND_INS[name] ?? load(name, ...rest);
const { activate, deactivate } = require("../extension.js");

test("the server of the setting is started in the first folder, for loss files", async () => {
  command = [".venv/bin/udcp", "lsp"];
  await activate();
  const [, , server, client] = started[0];
  assert.deepEqual(server, { command: ".venv/bin/udcp", args: ["lsp"], options: { cwd: "/home/ann/specs" } });
  assert.deepEqual(client, { documentSelector: [{ language: "loss" }] });
  assert.deepEqual(said, []);
  deactivate();
  assert.equal(started.length, 0);
});

test("a server that does not start is explained", async () => {
  fails = true;
  await activate();
  assert.equal(said.length, 1);
  assert.match(said[0], /\.venv\/bin\/udcp does not start \(spawn ENOENT\)/);
  assert.match(said[0], /pip install 'udcp_dsl\[lsp\]'/);
});
