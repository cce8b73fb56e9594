"""Real classifiers with real mistakes, built from installed packages or stored as arrays: nothing is downloaded.

`source_code` and `icons` come with the package and need nothing; `languages` and `texts_through_torch` need the extra
`demo` (the second torch too), `digits` needs scikit-learn, `medicine` the extra `medicine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from udcp_dsl.lazy_imports import on_first_use

if TYPE_CHECKING:
    from udcp_dsl.datasets.digit_images import Digits, digits
    from udcp_dsl.datasets.kept_rows import KeptRows, icons, source_code
    from udcp_dsl.datasets.language_strings import Languages, languages
    from udcp_dsl.datasets.medical_terms import Medicine, medicine
    from udcp_dsl.datasets.torch_texts import TorchTexts, texts_through_torch

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

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "digit_images": "Digits digits",
        "kept_rows": "KeptRows icons source_code",
        "language_strings": "Languages languages",
        "medical_terms": "Medicine medicine",
        "torch_texts": "TorchTexts texts_through_torch",
    },
)
