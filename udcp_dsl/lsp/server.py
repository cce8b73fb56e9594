"""The server: passes an editor's requests to the features, over stdin and stdout or a socket. Only it imports pygls.

A text is compiled shortly after its last keystroke. What may take longer than a keystroke (facts, oracles, fixes) runs
in a thread, so that typing is never blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import converters
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import to_fs_path

import udcp_dsl
from udcp_dsl import lsp as features
from udcp_dsl.diagnostics import InputError
from udcp_dsl.lsp.decorations import MODIFIERS, TYPES
from udcp_dsl.lsp.document import Document, Reader

_DEBOUNCE_SECONDS = 0.03  # seconds without a keystroke before diagnostics are computed
_WATCHED = "**/*.{csv,json,npy}"

_converter = converters.get_converter()


def _at(position: lsp.Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}


class _ErrorReplyingProtocol(LanguageServerProtocol):
    """Answers invalid requests, too, such as one for line -1; otherwise the editor would wait forever."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise


class Server(LanguageServer):
    """The language server of `.loss` files."""

    def __init__(self) -> None:
        super().__init__("udcp", udcp_dsl.__version__, protocol_cls=_ErrorReplyingProtocol)
        self.reader = Reader()

    def document(self, uri: str) -> Document:
        text = self.workspace.get_text_document(uri)
        path = to_fs_path(uri) if uri.startswith("file:") else None
        return self.reader.read(text.source, None if path is None else Path(path).parent, uri)

    def publish_soon(self, uri: str) -> None:
        """Publish the diagnostics of a text after a moment, unless it changes before."""
        if uri in self.workspace.text_documents:
            version = self.workspace.text_documents[uri].version
            asyncio.get_running_loop().call_later(_DEBOUNCE_SECONDS, partial(self._publish, uri, version))

    def _publish(self, uri: str, version: int | None) -> None:
        open_text = self.workspace.text_documents.get(uri)
        if open_text is None or open_text.version != version:
            return
        found = _converter.structure(features.diagnostics(self.document(uri)), list[lsp.Diagnostic])
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )


def make_server() -> Server:
    """A server with all its features, not yet started."""
    server = Server()
    _add_text_features(server)
    _add_answers(server)
    return server


def _add_text_features(server: Server) -> None:
    @server.feature(lsp.INITIALIZED)
    def initialized(ls: Server, params: lsp.InitializedParams) -> None:
        workspace = ls.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace is not None else None
        if watched is not None and watched.dynamic_registration:
            watcher = lsp.DidChangeWatchedFilesRegistrationOptions([lsp.FileSystemWatcher(_WATCHED)])
            registration = lsp.Registration("data-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, watcher)
            ls.client_register_capability(lsp.RegistrationParams([registration]))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.publish_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: Server, params: lsp.DidChangeTextDocumentParams) -> None:
        ls.publish_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.publish_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.reader.forget(params.text_document.uri)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(ls: Server, params: lsp.DidChangeWatchedFilesParams) -> None:
        for uri in list(ls.workspace.text_documents):
            ls.publish_soon(uri)
        workspace = ls.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            ls.workspace_code_lens_refresh(None)
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            ls.workspace_inlay_hint_refresh(None)


def _of_text(feature: Callable[[Document], Any]) -> Callable[[Document, Any], Any]:
    return lambda document, params: feature(document)


def _of_place(feature: Callable[[Document, dict[str, int]], Any]) -> Callable[[Document, Any], Any]:
    return lambda document, params: feature(document, _at(params.position))


# Of each request: the feature that answers it, from the document and the parameters, and the type of the answer.
_ANSWERS: tuple[tuple[str, Callable[[Document, Any], Any], Any], ...] = (
    (lsp.TEXT_DOCUMENT_HOVER, _of_place(features.hover), lsp.Hover | None),
    (lsp.TEXT_DOCUMENT_COMPLETION, _of_place(features.completion), lsp.CompletionList),
    (
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lambda document, params: features.code_actions(document, _at(params.range.start), _at(params.range.end)),
        list[lsp.CodeAction],
    ),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, _of_text(features.inlay_hints), list[lsp.InlayHint]),
    (lsp.TEXT_DOCUMENT_CODE_LENS, _of_text(features.code_lenses), list[lsp.CodeLens]),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _of_text(features.semantic_tokens), lsp.SemanticTokens),
    (lsp.TEXT_DOCUMENT_DEFINITION, _of_place(features.definition), list[lsp.Location]),
    (
        lsp.TEXT_DOCUMENT_REFERENCES,
        lambda document, p: features.references(document, _at(p.position), p.context.include_declaration),
        list[lsp.Location],
    ),
    (lsp.TEXT_DOCUMENT_PREPARE_RENAME, _of_place(features.renamable), lsp.PrepareRenamePlaceholder),
    (
        lsp.TEXT_DOCUMENT_RENAME,
        lambda document, params: features.rename(document, _at(params.position), params.new_name),
        lsp.WorkspaceEdit,
    ),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _of_text(features.symbols), list[lsp.DocumentSymbol]),
    (lsp.TEXT_DOCUMENT_FOLDING_RANGE, _of_text(features.folding), list[lsp.FoldingRange]),
    (lsp.TEXT_DOCUMENT_FORMATTING, _of_text(features.formatting), list[lsp.TextEdit]),
)
_OPTIONS = {
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionOptions(trigger_characters=[".", "(", '"', "{", ","]),
    lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: lsp.SemanticTokensLegend(list(TYPES), list(MODIFIERS)),
    lsp.TEXT_DOCUMENT_RENAME: lsp.RenameOptions(prepare_provider=True),
}
_SLOW = ("hover", "codeAction", "inlayHint", "codeLens")  # they run in a thread


def _add_answers(server: Server) -> None:
    for request, feature, kind in _ANSWERS:

        def answer(ls: Server, params: Any, feature: Any = feature, kind: Any = kind) -> Any:
            try:
                return _converter.structure(feature(ls.document(params.text_document.uri), params), kind)
            except InputError as error:  # becomes an error of the protocol, whose message the editor shows
                raise JsonRpcInvalidParams(str(error)) from None

        server.feature(request, _OPTIONS.get(request))(server.thread()(answer) if request.endswith(_SLOW) else answer)
