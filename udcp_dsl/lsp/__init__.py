"""The language server: what editors show of a spec while it is written.

Each feature is a function of a `Document` (a text and the folder of its files) and a position, and returns plain data
in the shapes of the Language Server Protocol. Only `server`, which connects them to editors, imports pygls.

>>> document = Reader().read("labels { a, b }  loss l = sizee")
>>> [x["message"] for x in diagnostics(document)]
["there is no 'sizee'\\nhelp: did you mean 'size'?"]
"""

from udcp_dsl.lsp.completion import completion
from udcp_dsl.lsp.decorations import code_actions, code_lenses, diagnostics, inlay_hints, semantic_tokens
from udcp_dsl.lsp.document import Document, Reader
from udcp_dsl.lsp.hover import hover
from udcp_dsl.lsp.navigation import definition, folding, formatting, references, renamable, rename, symbols

__all__ = [
    "Document",
    "Reader",
    "code_actions",
    "code_lenses",
    "completion",
    "definition",
    "diagnostics",
    "folding",
    "formatting",
    "hover",
    "inlay_hints",
    "references",
    "renamable",
    "rename",
    "semantic_tokens",
    "symbols",
]
