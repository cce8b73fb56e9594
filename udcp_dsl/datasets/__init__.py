"""Real classifiers with real mistakes, built from installed packages or kept as arrays: nothing is downloaded.

`source_code` and `icons` come with the package and need nothing; `languages` and `texts_through_torch` need the extra
`demo` (the second torch too), `digits` needs scikit-learn, `medicine` the extra `medicine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from udcp_dsl.datasets.code_snippets import source_code
    from udcp_dsl.datasets.digit_images import Digits, digits
    from udcp_dsl.datasets.icon_drawings import icons
    from udcp_dsl.datasets.kept_rows import KeptRows
    from udcp_dsl.datasets.language_strings import Languages, languages
    from udcp_dsl.datasets.medical_terms import Medicine, medicine
    from udcp_dsl.datasets.torch_texts import TorchTexts, texts_through_torch

_WHERE = {
    "Digits": "digit_images",
    "KeptRows": "kept_rows",
    "Languages": "language_strings",
    "Medicine": "medical_terms",
    "TorchTexts": "torch_texts",
    "digits": "digit_images",
    "icons": "icon_drawings",
    "languages": "language_strings",
    "medicine": "medical_terms",
    "source_code": "code_snippets",
    "texts_through_torch": "torch_texts",
}

__all__ = [
    "Digits",
    "KeptRows",
    "Languages",
    "Medicine",
    "TorchTexts",
    "digits",
    "icons",
    "languages",
    "medicine",
    "source_code",
    "texts_through_torch",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'udcp_dsl.datasets' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"udcp_dsl.datasets.{_WHERE[name]}"), name)
