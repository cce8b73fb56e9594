"""The server: passes an editor's requests to the features, over stdin and stdout or a socket. Only it imports pygls.

A text is compiled shortly after its last keystroke. What may take longer than a keystroke (facts, oracles, fixes) runs
in a thread, so that typing is never blocked.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import converters
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import to_fs_path

import udcp_dsl
from udcp_dsl.diagnostics import InputError
from udcp_dsl.lsp.colours import MODIFIERS, TYPES, semantic_tokens
from udcp_dsl.lsp.completion import completion
from udcp_dsl.lsp.document import Document, Reader
from udcp_dsl.lsp.editor_diagnostics import code_actions, diagnostics
from udcp_dsl.lsp.hints import code_lenses, inlay_hints
from udcp_dsl.lsp.hover import hover
from udcp_dsl.lsp.navigation import definition, folding, formatting, references, renamable, rename, symbols

_DEBOUNCE_SECONDS = 0.03  # seconds without a keystroke before diagnostics are computed
_WATCHED = "**/*.{csv,json,npy}"

T = TypeVar("T")
_converter = converters.get_converter()


def _typed(data: object, kind: type[T]) -> T:
    """Convert plain data to a type of the protocol, which pygls sends."""
    return _converter.structure(data, kind)


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
        found = [_typed(x, lsp.Diagnostic) for x in diagnostics(self.document(uri))]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )


def make_server() -> Server:
    """A server with all its features, not yet started."""
    server = Server()
    _add_text_features(server)
    _add_display_features(server)
    _add_navigation_features(server)
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


def _add_display_features(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    @server.thread()
    def on_hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover | None:
        found = hover(ls.document(params.text_document.uri), _at(params.position))
        return None if found is None else _typed(found, lsp.Hover)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "(", '"', "{", ","]))
    def on_completion(ls: Server, params: lsp.CompletionParams) -> lsp.CompletionList:
        return _typed(completion(ls.document(params.text_document.uri), _at(params.position)), lsp.CompletionList)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    @server.thread()
    def on_code_action(ls: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = ls.document(params.text_document.uri)
        found = code_actions(document, _at(params.range.start), _at(params.range.end))
        return [_typed(x, lsp.CodeAction) for x in found]

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    @server.thread()
    def on_inlay_hint(ls: Server, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        return [_typed(x, lsp.InlayHint) for x in inlay_hints(ls.document(params.text_document.uri))]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    @server.thread()
    def on_code_lens(ls: Server, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        return [_typed(x, lsp.CodeLens) for x in code_lenses(ls.document(params.text_document.uri))]

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend(list(TYPES), list(MODIFIERS)))
    def on_semantic_tokens(ls: Server, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        return _typed(semantic_tokens(ls.document(params.text_document.uri)), lsp.SemanticTokens)


def _add_navigation_features(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def on_definition(ls: Server, params: lsp.DefinitionParams) -> list[lsp.Location]:
        found = definition(ls.document(params.text_document.uri), _at(params.position))
        return [_typed(x, lsp.Location) for x in found]

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def on_references(ls: Server, params: lsp.ReferenceParams) -> list[lsp.Location]:
        document = ls.document(params.text_document.uri)
        found = references(document, _at(params.position), params.context.include_declaration)
        return [_typed(x, lsp.Location) for x in found]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def on_prepare_rename(ls: Server, params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder:
        found = _as_protocol_error(renamable, ls.document(params.text_document.uri), _at(params.position))
        return _typed(found, lsp.PrepareRenamePlaceholder)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def on_rename(ls: Server, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        document = ls.document(params.text_document.uri)
        return _typed(_as_protocol_error(rename, document, _at(params.position), params.new_name), lsp.WorkspaceEdit)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def on_symbols(ls: Server, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return [_typed(x, lsp.DocumentSymbol) for x in symbols(ls.document(params.text_document.uri))]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def on_folding(ls: Server, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        return [_typed(x, lsp.FoldingRange) for x in folding(ls.document(params.text_document.uri))]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def on_formatting(ls: Server, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        return [_typed(x, lsp.TextEdit) for x in formatting(ls.document(params.text_document.uri))]


def _as_protocol_error(feature: Any, *arguments: object) -> Any:
    """Call a feature; its InputError becomes an error of the protocol, whose message the editor shows."""
    try:
        return feature(*arguments)
    except InputError as error:
        raise JsonRpcInvalidParams(str(error)) from None
