"""The server, spoken to as an editor does: a process of its own, JSON-RPC over its stdin and stdout."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

ROOT = Path(__file__).parents[3]
SPEC = """# Pets.
labels from "pets.csv" column name
hierarchy h from "pets.csv" levels kind
param weight = 2 in [0, 10]
let both = any(h.kind.cat) and any(h.kind.dog)

loss bill =
    weight * size
  + 5 * both
  + diameter(h)
"""
ROWS = "name,kind,cost\ntabby,cat,1\nmanx,cat,2\npug,dog,3\n"


class Editor:
    """A client: requests are answered, what the server says by itself is kept."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._number = 0
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.asked: list[dict[str, Any]] = []
        self.features: dict[str, Any] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        out = self.process.stdout
        assert out is not None
        while line := out.readline():
            length = int(line.split(b":")[1])
            while out.readline().strip():
                pass
            self._inbox.put(json.loads(out.read(length)))
        self._inbox.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        answer = self._until(lambda x: x.get("id") == self._number and "method" not in x)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def diagnostics(self, uri: str, version: int) -> list[dict[str, Any]]:
        """The next that are published of this version."""
        told = self._until(
            lambda x: (
                x.get("method") == "textDocument/publishDiagnostics"
                and (x["params"]["uri"], x["params"].get("version")) == (uri, version)
            )
        )
        return list(told["params"]["diagnostics"])

    def _until(self, wanted: Any) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while True:
            message = self._inbox.get(timeout=max(0.1, deadline - time.monotonic()))
            assert message is not None, "the server has ended"
            if "method" in message and "id" in message:  # what the server asks of us
                self.asked.append(message)
                self._send({"id": message["id"], "result": None})
            if wanted(message):
                return message


class Text:
    """An open text, and what is asked of it."""

    def __init__(self, editor: Editor, path: Path, text: str) -> None:
        self.editor, self.uri, self.version, self.text = editor, path.as_uri(), 1, text
        path.write_text(text, encoding="utf-8")
        item = {"uri": self.uri, "languageId": "loss", "version": 1, "text": text}
        editor.notify("textDocument/didOpen", textDocument=item)

    def type(self, old: str, new: str) -> list[dict[str, Any]]:
        """Replace a piece of the text by a change of its range, and wait for the faults."""
        start = self.text.index(old)
        ends = {"start": self.position(start), "end": self.position(start + len(old))}
        self.text = self.text.replace(old, new, 1)
        self.version += 1
        which = {"uri": self.uri, "version": self.version}
        change = {"range": ends, "text": new}
        self.editor.notify("textDocument/didChange", textDocument=which, contentChanges=[change])
        return self.editor.diagnostics(self.uri, self.version)

    def position(self, offset: int) -> dict[str, int]:
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}

    def at(self, piece: str) -> dict[str, int]:
        """The position of the first `|` in a piece of the text."""
        return self.position(self.text.index(piece.replace("|", "")) + piece.index("|"))

    def ask(self, what: str, piece: str | None = None, **more: Any) -> Any:
        place = {} if piece is None else {"position": self.at(piece)}
        return self.editor.request(f"textDocument/{what}", textDocument={"uri": self.uri}, **place, **more)

    def marked(self, range_: dict[str, Any]) -> str:
        lines = self.text.split("\n")
        assert range_["start"]["line"] == range_["end"]["line"]
        return lines[range_["start"]["line"]][range_["start"]["character"] : range_["end"]["character"]]


def started(*options: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(str(ROOT / part) for part in ("", "solvers", "grammars"))
    command = [sys.executable, "-m", "udcp_dsl.cli", "lsp", *options]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with started() as process:
        client = Editor(process)
        watching = {"didChangeWatchedFiles": {"dynamicRegistration": True}}
        refreshing = {"codeLens": {"refreshSupport": True}, "inlayHint": {"refreshSupport": True}}
        client.features = client.request(
            "initialize", processId=None, rootUri=None, capabilities={"workspace": {**watching, **refreshing}}
        )["capabilities"]
        client.notify("initialized")
        yield client
        client.request("shutdown")
        client.notify("exit")
        assert process.wait(30) == 0


@pytest.fixture
def pets(editor: Editor, tmp_path: Path) -> Text:
    (tmp_path / "pets.csv").write_text(ROWS)
    text = Text(editor, tmp_path / "pets.loss", SPEC)
    assert editor.diagnostics(text.uri, 1) == []
    return text


def test_it_says_what_it_can(editor: Editor) -> None:
    features = editor.features
    for name in ("hover", "completion", "definition", "references", "rename", "documentSymbol", "foldingRange",
                 "documentFormatting", "inlayHint", "codeLens", "codeAction", "semanticTokens"):  # fmt: skip
        assert features[f"{name}Provider"], name
    assert features["textDocumentSync"]["change"] == 2


def test_faults_as_one_types_and_their_fixes(pets: Text) -> None:
    (fault,) = pets.type("diameter(h)", "diametr(h)")
    assert (fault["code"], fault["severity"], pets.marked(fault["range"])) == ("E121", 1, "diametr")
    assert "did you mean 'diameter'?" in fault["message"]
    (action,) = pets.ask("codeAction", range=fault["range"], context={"diagnostics": [fault]})
    (edit,) = action["edit"]["changes"][pets.uri]
    assert (action["kind"], edit["newText"], pets.marked(edit["range"])) == ("quickfix", "diameter", "diametr")
    assert pets.type("diametr(h)", "diameter(h)") == []


def test_related_places(pets: Text) -> None:
    (fault,) = pets.type("\nloss", "\nparam weight = 3\nloss")
    (related,) = fault["relatedInformation"]
    assert related["location"]["range"]["start"] == {"line": 3, "character": 6}


@pytest.mark.parametrize("line", [-1, 2**31, 2**63, 10**400, "x", None])
@pytest.mark.parametrize("what", ["hover", "completion", "definition", "rename"])
def test_absurd_positions_are_refused(pets: Text, what: str, line: object) -> None:
    for place in ({"line": line, "character": 0}, {"line": 0, "character": line}):
        with pytest.raises(RuntimeError, match="Invalid Params"):
            pets.ask(what, position=place, newName="x")
    assert pets.ask("hover", "wei|ght") is not None


def test_hover(pets: Text) -> None:
    assert "parameter = 2 in [0, 10]" in pets.ask("hover", "wei|ght * size")["contents"]["value"]
    shown = pets.ask("hover", "dia|meter(h)")["contents"]["value"]
    assert "`diameter(h)`: set function" in shown
    assert "| monotone | proved |" in shown
    assert "# diameter" in shown
    assert pets.ask("hover", "#| Pets.") is None


def test_completion_in_a_half_typed_statement(pets: Text) -> None:
    assert pets.type("\nloss bill", "\nlet x = count(h.\nloss bill") != []
    offered = pets.ask("completion", "count(h.|")["items"]
    assert [x["label"] for x in offered] == ["kind", "node", "level"]
    pets.type("count(h.", 'any({ tab\ncosts c from "pets.csv" column ')
    assert [x["label"] for x in pets.ask("completion", "tab|\n")["items"]] == ["tabby"]
    assert [x["label"] for x in pets.ask("completion", "column |\nloss")["items"]] == ["name", "kind", "cost"]


def test_definition_in_the_text_and_in_a_data_file(pets: Text) -> None:
    (place,) = pets.ask("definition", "5 * bo|th")
    assert (place["uri"], pets.marked(place["range"]), place["range"]["start"]["line"]) == (pets.uri, "both", 4)
    (place,) = pets.ask("definition", "kind.d|og")
    assert place["uri"].endswith("/pets.csv")
    assert place["range"]["start"]["line"] == 3


def test_references_and_rename(pets: Text) -> None:
    everywhere = pets.ask("references", "wei|ght * size", context={"includeDeclaration": True})
    assert [x["range"]["start"]["line"] for x in everywhere] == [3, 7]
    uses = pets.ask("references", "wei|ght * size", context={"includeDeclaration": False})
    assert [x["range"]["start"]["line"] for x in uses] == [7]
    assert pets.ask("prepareRename", "wei|ght * size")["placeholder"] == "weight"
    edits = pets.ask("rename", "wei|ght * size", newName="price")["changes"][pets.uri]
    assert [(pets.marked(x["range"]), x["newText"]) for x in edits] == [("weight", "price")] * 2
    for wrong, why in (("size", "cannot name"), ("both", "declared already"), ("a b", "cannot name")):
        with pytest.raises(RuntimeError, match=why):
            pets.ask("rename", "wei|ght * size", newName=wrong)
    with pytest.raises(RuntimeError, match="column on disk"):
        pets.ask("prepareRename", "levels ki|nd")
    with pytest.raises(RuntimeError, match="no name here"):
        pets.ask("prepareRename", "# P|ets.")


def test_outline_and_folding(pets: Text) -> None:
    outline = pets.ask("documentSymbol")
    assert [x["name"] for x in outline] == ["labels", "h", "weight", "both", "bill"]
    assert outline[1]["detail"] == "hierarchy of 3 labels: kind (2)"
    assert [(x["startLine"], x["endLine"]) for x in pets.ask("foldingRange")] == [(6, 9)]


def test_colours(editor: Editor, pets: Text) -> None:
    legend = editor.features["semanticTokensProvider"]["legend"]["tokenTypes"]
    data = pets.ask("semanticTokens/full")["data"]
    found: dict[str, str] = {}
    line = character = 0
    for i in range(0, len(data), 5):
        down, right, length, kind, _ = data[i : i + 5]
        line, character = line + down, right if down else character + right
        found.setdefault(pets.text.split("\n")[line][character : character + length], legend[kind])
    wanted = {"# Pets.": "comment", "labels": "keyword", "name": "property", "h": "class", "kind": "property",
              "weight": "parameter", "any": "function", "cat": "enumMember", "both": "variable", "2": "number",
              '"pets.csv"': "string", "+": "operator", "and": "keyword"}  # fmt: skip
    assert {word: found[word] for word in wanted} == wanted


def test_formatting(pets: Text) -> None:
    assert pets.ask("formatting", options={"tabSize": 4, "insertSpaces": True}) == []
    pets.type("weight * size", "(weight)*size   # each")
    (edit,) = pets.ask("formatting", options={"tabSize": 4, "insertSpaces": True})
    assert edit["newText"] == SPEC.replace("weight * size", "weight * size  # each")
    pets.type("5 * both", "5 * * both")
    assert pets.ask("formatting", options={"tabSize": 4, "insertSpaces": True}) == []


def test_what_an_oracle_costs_and_takes(pets: Text) -> None:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = pets.ask("inlayHint", range=whole)
    assert any("separable" in x["label"] and "no ratio" in x["label"] for x in hints)
    assert all(x["position"]["line"] in (4, 7, 8, 9) for x in hints)
    (lens,) = pets.ask("codeLens")
    assert lens["range"]["start"]["line"] == 6
    assert "per row" in lens["command"]["title"]
    assert "price (" in lens["command"]["title"]
    pets.type("loss bill", "loss bill bill")
    assert pets.ask("codeLens") == []
    assert pets.ask("inlayHint", range=whole) == []


def test_data_files_are_watched(editor: Editor, pets: Text, tmp_path: Path) -> None:
    (asked,) = [x for x in editor.asked if x["method"] == "client/registerCapability"]
    assert "csv" in json.dumps(asked["params"])
    file = tmp_path / "pets.csv"
    file.write_text(ROWS.replace("dog", "wolf"))
    editor.notify("workspace/didChangeWatchedFiles", changes=[{"uri": file.as_uri(), "type": 2}])
    (fault,) = editor.diagnostics(pets.uri, 1)
    assert fault["code"] == "E214"
    file.unlink()
    editor.notify("workspace/didChangeWatchedFiles", changes=[{"uri": file.as_uri(), "type": 3}])
    assert {x["code"] for x in editor.diagnostics(pets.uri, 1)} == {"E301"}
    file.write_text(ROWS)
    editor.notify("workspace/didChangeWatchedFiles", changes=[{"uri": file.as_uri(), "type": 1}])
    assert editor.diagnostics(pets.uri, 1) == []


def test_a_text_without_a_file(editor: Editor) -> None:
    item = {"uri": "untitled:Untitled-1", "languageId": "loss", "version": 1, "text": SPEC}
    editor.notify("textDocument/didOpen", textDocument=item)
    assert {x["code"] for x in editor.diagnostics("untitled:Untitled-1", 1)} == {"E301"}
    editor.notify("textDocument/didClose", textDocument={"uri": "untitled:Untitled-1"})


def test_over_a_socket() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with started("--tcp", str(port)) as process:
        deadline = time.monotonic() + 60
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=60)
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with connection, connection.makefile("rwb") as stream:
            params = {"processId": None, "rootUri": None, "capabilities": {}}
            data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
            stream.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
            stream.flush()
            assert stream.readline().startswith(b"Content-Length")
        process.terminate()
        process.wait(30)
