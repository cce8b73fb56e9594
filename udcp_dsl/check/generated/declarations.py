"""Random declarations of every kind and every form, in place and from CSV, JSON and .npy files held in memory.

All of them are well formed, so that a spec made of them compiles. Numbers are mostly small and dyadic, so that sums are
exact in any order; there are decimals such as 0.1, too, so that rounding is also tried.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from udcp_dsl.diagnostics import Source, Span
from udcp_dsl.language import ast

T = TypeVar("T")
Members = Sequence[int]

MAGNITUDES = st.sampled_from((1.0, 0.0, 2.0, 0.5, 3.0, 0.25, 4.0, 0.1, 0.3, 0.7))
_SIGNS = st.sampled_from((1.0, -1.0))

_WORDS = (
    "a b c nevus wart size default labels loss any if column edge root level node x1 _ 0 7 12 007 3.14 -1 Ärger 漢字 "
    "e\u0301 1e3 .. # // \U0001f600"
).split()
_PHRASES = ("basal cell", 'say "hi"', "back\\slash", "a,b", "tab\there", "two\nlines", "{brace}", "it's", "x\u2028y")
# Cells of a CSV file are stripped, and a byte-order mark at its start is skipped: labels have neither space nor mark.
_TEXT = (
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff"), min_size=1, max_size=4)
    .map(str.strip)
    .filter(bool)
)
LABELS = st.one_of(st.sampled_from(_WORDS), st.sampled_from(_PHRASES), _TEXT)

_NODES = ("benign", "malignant", "x", "y", "two words", "size", "Ä", "default", "labels", "7")
_NODES_OF = {few: st.sampled_from(_NODES[:few]) for few in (2, 3, len(_NODES))}
_LEVELS = st.sampled_from(("kind", "family", "level", "the node", "costs", "by", "of", "labels", "1"))
_RANGES = ((0.0, 4.0), (-2.0, 3.0), (0.5, 2.0), (-1.0, 1.0), (3.0, 3.0), (0.0, 0.0))  # of numbers per row
_COLUMNS = ("cost", "the cost", "column", "0", "größe", "of", "by", "labels", "from")
_COIN = st.booleans()
# Generated trees have no position in a text: the text is made from them.
NOWHERE = Span(Source("<generated>", ""), 0, 0)


def named(text: str) -> ast.Name:
    return ast.Name(text, span=NOWHERE)


def reference(head: str, *parts: ast.Name | ast.Indexed) -> ast.Ref:
    return ast.Ref(named(head), parts, span=NOWHERE)


def indexed(kind: str, argument: str) -> ast.Indexed:
    return ast.Indexed(kind, named(argument), span=NOWHERE)


@dataclass
class Vocabulary:
    """References to the declarations that expressions of a spec can use, filled while these are drawn."""

    labels: tuple[str, ...]
    categories: list[ast.Ref] = field(default_factory=list)
    families: list[tuple[ast.Ref, tuple[str, ...]]] = field(default_factory=list)  # with the names of the categories
    costs: list[ast.Ref] = field(default_factory=list)
    family_costs: list[tuple[ast.Ref, ast.Ref]] = field(default_factory=list)  # the family, its costs
    metrics: list[ast.Ref] = field(default_factory=list)
    family_metrics: list[ast.Ref] = field(default_factory=list)  # between the categories of a family
    hierarchies: list[ast.Ref] = field(default_factory=list)
    actions: list[ast.Ref] = field(default_factory=list)
    params: list[tuple[ast.Ref, float]] = field(default_factory=list)
    inputs: list[tuple[ast.Ref, float]] = field(default_factory=list)  # numbers per row, with their upper ends


class Draws:
    """The draws that a spec is made of, from cached strategies: a spec needs hundreds, and making them takes time."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def coin(self) -> bool:
        return self.draw(_COIN)

    def number(self, least: int, most: int) -> int:
        return self.draw(_numbers(least, most))

    def pick(self, options: Sequence[T]) -> T:
        words = options if isinstance(options, tuple) and isinstance(options[0], str) else None
        return options[self.draw(_places(len(options), words))]

    def several(self, of: st.SearchStrategy[T], least: int, most: int, *, unique: bool = False) -> list[T]:
        """`least` to `most` draws of a strategy, which must be a lasting object, as lists of it are cached."""
        return self.draw(_lists(of, least, most, unique))

    def some(self, below: int) -> list[int]:
        """One or more of the numbers from 0 to `below` - 1, in ascending order."""
        return sorted(self.draw(_subsets(below)))

    def shuffled(self, options: Sequence[T]) -> list[T]:
        return [options[i] for i in self.draw(_orders(len(options)))]


@cache
def _numbers(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


@lru_cache(maxsize=1000)
def _places(many: int, words: tuple[Any, ...] | None) -> st.SearchStrategy[int]:
    """With `words`, hypothesis recognises draws of one kind and can replace one by another."""
    return st.sampled_from(range(many)) if words is None else st.sampled_from(words).map(words.index)


@cache
def _lists(of: st.SearchStrategy[Any], least: int, most: int, unique: bool) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, min_size=least, max_size=most, unique=unique)


@cache
def _subsets(below: int) -> st.SearchStrategy[set[int]]:
    return st.sets(_numbers(0, below - 1), min_size=1)


@cache
def _orders(n: int) -> st.SearchStrategy[list[int]]:
    return st.permutations(range(n))


class DeclarationGenerator(Draws):
    """Draws the declarations of one spec; `vocabulary` holds references to them, `files` what they read."""

    def __init__(self, draw: st.DrawFn, max_labels: int, inputs: bool = False) -> None:
        super().__init__(draw)
        self.files: dict[str, bytes] = {}
        self.declarations: list[ast.Declaration] = []
        self.given: tuple[str, ...] | None = None
        self._key = "the label"
        self._labels_have_column = False
        self.vocabulary = Vocabulary(self._labels(self.number(1, max_labels)))
        for kind in (self._costs, self._category, self._categories, self._hierarchy):
            for number in range(1, 1 + self.number(0, 2)):
                kind(number)
        for kind in (self._actions, self._distance, self._param, self._family_costs, self._family_distance):
            if self.coin():
                kind(1)
        if inputs:
            self._input(1)
            for kind in (self._input, self._row_costs, self._row_family_costs):
                if self.coin():
                    kind(2)

    @property
    def K(self) -> int:
        return len(self.vocabulary.labels)

    @property
    def _unambiguous(self) -> list[tuple[ast.Ref, tuple[str, ...]]]:
        """The families whose categories have different names."""
        return [x for x in self.vocabulary.families if len(set(x[1])) == len(x[1])]

    # Labels

    def _labels(self, K: int) -> tuple[str, ...]:
        how = self.pick(("in place", "range", "outside", "csv", "json"))
        if how == "range" or self.pick((False, False, True)):
            first = self.pick((0, 1, 8, 98))
            labels = tuple(str(first + i) for i in range(K))
        else:
            labels = tuple(self.several(LABELS, K, K, unique=True))
        while self._key in labels:
            self._key += "'"
        body: tuple[ast.Item, ...] | ast.File = self._items(labels)
        if how == "range":
            body = (ast.Range(int(labels[0]), int(labels[-1]), span=NOWHERE),)
        elif how == "outside":
            self.given = labels
            return labels
        elif how == "csv":
            self._labels_have_column = True
            self.files["labels.csv"] = _csv([self._key, "other"], [[label, "-"] for label in labels])
            column = named(self._key) if self.coin() else None
            body = ast.File("labels.csv", column, span=NOWHERE)
        elif how == "json":
            body = self._json_file("labels", list(labels))
        self.declarations.append(ast.Labels(body, span=NOWHERE))
        return labels

    def _items(self, labels: Sequence[str]) -> tuple[ast.Item, ...]:
        """A list of labels; neighbouring numbers may be written as a range."""
        items: list[ast.Item] = []
        for label in labels:
            last = items[-1] if items else None
            end = last.last if isinstance(last, ast.Range) else int(last.text) if last and _whole(last.text) else None
            if last is not None and end is not None and label == str(end + 1) and self.coin():
                first = last.first if isinstance(last, ast.Range) else end
                items[-1] = ast.Range(first, end + 1, span=NOWHERE)
            else:
                items.append(named(label))
        return tuple(items)

    def _members(self) -> list[int]:
        return self.some(self.K)

    def members(self) -> ast.SetLiteral:
        """A set of labels in place of a category."""
        chosen = [self.vocabulary.labels[y] for y in self._members()]
        return ast.SetLiteral(self._items(chosen), span=NOWHERE)

    # Numbers and files

    def _numbers(self, n: int) -> list[float]:
        sign = self.pick(("nonnegative", "any", "nonpositive", "equal"))
        values = self.several(MAGNITUDES, n, n)
        if sign == "equal":
            return values[:1] * n
        if sign == "any":
            signs = self.several(_SIGNS, n, n)
            return [s * v if v else 0.0 for s, v in zip(signs, values, strict=True)]
        return values if sign == "nonnegative" else [-v if v else 0.0 for v in values]

    def _table(
        self, name: str, keys: Sequence[str], columns: Mapping[str, Sequence[object]], *, of_labels: bool = True
    ) -> tuple[str, ast.Name | None]:
        """A CSV file with rows and columns in random order: its path, and the column of its `by` clause, if any."""
        key_first = self.pick((True, True, False))
        order = self.shuffled(range(len(keys)))
        header = [self._key, *columns] if key_first else [*columns, self._key]
        rows = []
        for i in order:
            cells = [_cell(column[i]) for column in columns.values()]
            rows.append([keys[i], *cells] if key_first else [*cells, keys[i]])
        path = f"{name}.csv"
        self.files[path] = (b"\xef\xbb\xbf" if self.coin() else b"") + _csv(header, rows)
        found_anyway = key_first or (of_labels and self._labels_have_column)
        return path, None if found_anyway and self.coin() else named(self._key)

    def _json_file(self, name: str, value: object) -> ast.File:
        self.files[f"{name}.json"] = _json(value)
        return ast.File(f"{name}.json", span=NOWHERE)

    # Declarations, by kind

    def _costs(self, number: int) -> None:
        name = f"c{number}"
        body, default = self._cost_body(name, self.vocabulary.labels, of_labels=True)
        self.declarations.append(ast.Costs(named(name), None, body, default, span=NOWHERE))
        self.vocabulary.costs.append(reference(name))

    def _family_costs(self, number: int) -> None:
        if not self._unambiguous:
            return
        name = f"w{number}"
        family, names = self.pick(self._unambiguous)
        body, default = self._cost_body(name, names, of_labels=False)
        self.declarations.append(ast.Costs(named(name), family, body, default, span=NOWHERE))
        self.vocabulary.family_costs.append((family, reference(name)))

    def _cost_body(
        self, name: str, keys: Sequence[str], *, of_labels: bool
    ) -> tuple[tuple[ast.CostEntry, ...] | ast.File, ast.Signed | None]:
        values = self._numbers(len(keys))
        how = self.pick(("in place", "csv", "json", "npy"))
        if how == "csv":
            column = self.pick(_COLUMNS)
            path, by = self._table(name, keys, {column: values, "other": keys}, of_labels=of_labels)
            return ast.File(path, named(column), by, span=NOWHERE), None
        if how == "json":
            return self._json_file(name, dict(zip(keys, values, strict=True))), None
        if how == "npy":
            self.files[f"{name}.npy"] = _npy(np.array(values))
            return ast.File(f"{name}.npy", span=NOWHERE), None
        default = self.pick((None, *sorted(set(values))))
        listed = [(k, v) for k, v in zip(keys, values, strict=True) if v != default]
        if not listed:  # a list is never empty
            listed = [(keys[0], values[0])]
        entries = tuple(ast.CostEntry(named(k), _signed(v), span=NOWHERE) for k, v in listed)
        return entries, None if default is None else _signed(default)

    def _category(self, number: int) -> None:
        name = f"C{number}"
        inside = self._members()
        labels = [self.vocabulary.labels[y] for y in inside]
        how = self.pick(("in place", "csv", "json"))
        body: tuple[ast.Item, ...] | ast.File = self._items(labels)
        if how == "csv":
            column = self.pick(_COLUMNS)
            flags = [int(y in inside) for y in range(self.K)]
            path, by = self._table(name, self.vocabulary.labels, {column: flags})
            body = ast.File(path, named(column), by, span=NOWHERE)
        elif how == "json":
            body = self._json_file(name, labels)
        self.declarations.append(ast.Category(named(name), body, span=NOWHERE))
        self.vocabulary.categories.append(reference(name))

    def _categories(self, number: int) -> None:
        name = f"F{number}"
        labels = self.vocabulary.labels
        shape = self.pick(("overlapping", "disjoint", "singletons"))
        names = self.several(_NODES_OF[len(_NODES)], 1, 4, unique=True)
        if shape == "overlapping":
            members = {n: self._members() for n in names}
        elif shape == "singletons":
            members = {n: [self.number(0, self.K - 1)] for n in names}
        else:
            chosen = [self.pick(("", *names)) for _ in labels]
            members = {n: [y for y in range(self.K) if chosen[y] == n] for n in names}
            members = {n: inside for n, inside in members.items() if inside} or {names[0]: [0]}
        how = self.pick(("in place", "json", "csv"))
        of_label = {y: n for n, inside in members.items() for y in inside}
        if how == "csv" and len(of_label) == sum(map(len, members.values())):
            column = self.pick(_COLUMNS)
            path, by = self._table(name, labels, {column: [of_label.get(y, "") for y in range(self.K)]})
            body: tuple[ast.Member, ...] | ast.File = ast.File(path, named(column), by, span=NOWHERE)
            members = {n: members[n] for n in dict.fromkeys(of_label[y] for y in sorted(of_label))}
        elif how == "json":
            body = self._json_file(name, {n: [labels[y] for y in inside] for n, inside in members.items()})
        else:
            body = tuple(
                ast.Member(named(n), self._items([labels[y] for y in inside]), span=NOWHERE)
                for n, inside in members.items()
            )
        self.declarations.append(ast.Categories(named(name), body, span=NOWHERE))
        self.vocabulary.families.append((reference(name), tuple(members)))
        self.vocabulary.categories.extend(reference(name, named(n)) for n in members)

    def _hierarchy(self, number: int) -> None:
        name = f"h{number}"
        labels = self.vocabulary.labels
        nodes = self.pick(tuple(_NODES_OF.values()))
        deepest = self.pick((1, 2, 3))
        paths = [tuple(self.several(nodes, 0, deepest)) for _ in labels]
        how = self.pick(("in place", "json", "csv"))
        levels: tuple[str, ...] = ()
        body: tuple[ast.Branch | ast.Item, ...] | ast.File
        if how == "csv":
            levels = tuple(self.several(_LEVELS, 3, 3, unique=True))
            columns = {level: [(*p, "", "", "")[d] for p in paths] for d, level in enumerate(levels)}
            path, by = self._table(name, labels, columns)
            body = ast.File(path, None, by, tuple(map(named, levels)), span=NOWHERE)
        elif how == "json":
            body = self._json_file(name, _nested(labels, paths, ()))
        else:
            body = self._branches(paths, ())
        self.declarations.append(ast.Hierarchy(named(name), body, span=NOWHERE))
        self.vocabulary.metrics.append(reference(name))
        self.vocabulary.hierarchies.append(reference(name))
        self._levels(name, levels, paths)

    def _branches(self, paths: Sequence[tuple[str, ...]], above: tuple[str, ...]) -> tuple[ast.Branch | ast.Item, ...]:
        d = len(above)
        leaves = [self.vocabulary.labels[y] for y, p in enumerate(paths) if p == above]
        inner = dict.fromkeys(p[d] for p in paths if len(p) > d and p[:d] == above)
        return (
            *self._items(leaves),
            *(ast.Branch(named(n), self._branches(paths, (*above, n)), span=NOWHERE) for n in inner),
        )

    def _levels(self, name: str, levels: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> None:
        """Record what refers to a hierarchy: levels as families, nodes (unless two share a name) as categories."""
        labels = self.vocabulary.labels
        every: dict[str, set[tuple[int, ...]]] = {}
        for depth in range(1 + max(len(levels), *(len(p) + 1 for p in paths))):
            below: dict[tuple[str, ...] | int, list[int]] = {}
            for y, p in enumerate(paths):
                below.setdefault(p[:depth] if len(p) >= depth else y, []).append(y)
            names = {node: labels[node] if isinstance(node, int) else ("root", *node)[-1] for node in below}
            part = named(levels[depth - 1]) if 0 < depth <= len(levels) else indexed("level", str(depth))
            self.vocabulary.families.append((reference(name, part), tuple(names[node] for node in below)))
            here: dict[str, set[tuple[int, ...]]] = {}
            for node, inside in below.items():
                here.setdefault(names[node], set()).add(tuple(inside))
                every.setdefault(names[node], set()).add(tuple(inside))
            self.vocabulary.categories.extend(
                reference(name, part, named(n)) for n, sets in here.items() if len(sets) == 1
            )
        for y, label in enumerate(labels):
            every.setdefault(label, set()).add((y,))
        every.setdefault("root", set()).add(tuple(range(self.K)))
        self.vocabulary.categories.extend(
            reference(name, indexed("node", n)) for n, sets in every.items() if len(sets) == 1
        )

    def _distance(self, number: int) -> None:
        name = f"d{number}"
        hierarchies = [x.name.text for x in self.declarations if isinstance(x, ast.Hierarchy)]
        self.vocabulary.metrics.append(reference(name))
        if hierarchies and self.coin():
            edge = self.pick((None, 2.0, 0.5, 1.0, 0.1))
            path = ast.Path(named(self.pick(hierarchies)), None if edge is None else _signed(edge), span=NOWHERE)
            self.declarations.append(ast.Distance(named(name), None, path, span=NOWHERE))
            return
        file = self._matrix(name, self.vocabulary.labels)
        self.declarations.append(ast.Distance(named(name), None, file, span=NOWHERE))

    def _family_distance(self, number: int) -> None:
        if not self.vocabulary.families:
            return
        name = f"g{number}"
        family, names = self.pick(self.vocabulary.families)
        file = self._matrix(name, names)
        self.declarations.append(ast.Distance(named(name), family, file, span=NOWHERE))
        self.vocabulary.family_metrics.append(reference(name))

    def _matrix(self, name: str, keys: Sequence[str]) -> ast.File:
        """A file of distances between the keys; keys with equal names are told apart by their order alone."""
        many = len(keys)
        matrix = np.zeros((many, many))
        apart = many * (many - 1) // 2
        matrix[np.triu_indices(many, 1)] = self.several(MAGNITUDES, apart, apart)
        matrix = matrix + matrix.T
        how = self.pick(("npy", "csv", "json")) if len(set(keys)) == many else "npy"
        order = list(range(many)) if how == "npy" else self.shuffled(range(many))
        rows, ordered = matrix[np.ix_(order, order)], [keys[i] for i in order]
        if how == "npy":
            self.files[f"{name}.npy"] = _npy(rows)
        elif how == "csv":
            cells = [[key, *map(_cell, row.tolist())] for key, row in zip(ordered, rows, strict=True)]
            self.files[f"{name}.csv"] = _csv([self._key, *ordered], cells[::-1])
        else:
            self.files[f"{name}.json"] = _json({"labels": ordered, "matrix": rows.tolist()})
        return ast.File(f"{name}.{how}", span=NOWHERE)

    def _actions(self, number: int) -> None:
        name = f"u{number}"
        actions = ("wait", "cut", "the knife")[: self.number(1, 3)]
        columns = {action: self._numbers(self.K) for action in actions}
        by = None
        if self.coin():
            path, by = self._table(name, self.vocabulary.labels, columns)
        else:
            path = f"{name}.json"
            rows = {label: {a: columns[a][y] for a in actions} for y, label in enumerate(self.vocabulary.labels)}
            self.files[path] = _json(rows)
        self.declarations.append(ast.Actions(named(name), ast.File(path, None, by, span=NOWHERE), span=NOWHERE))
        self.vocabulary.actions.append(reference(name))

    def _param(self, number: int) -> None:
        name = f"p{number}"
        value = self._numbers(1)[0]
        low, high = (None, None) if self.coin() else (_signed(value - 1), _signed(value + 2))
        self.declarations.append(ast.Param(named(name), _signed(value), low, high, span=NOWHERE))
        self.vocabulary.params.append((reference(name), value))

    # Inputs of rows

    def _input(self, number: int) -> None:
        name, (low, high) = self._own_name(f"r{number}"), self.pick(_RANGES)
        self.declarations.append(ast.Input(named(name), _signed(low), _signed(high), span=NOWHERE))
        self.vocabulary.inputs.append((reference(name), high))

    def _row_costs(self, number: int) -> None:
        name = self._per_row(f"rc{number}", None)
        self.vocabulary.costs.append(reference(name))

    def _row_family_costs(self, number: int) -> None:
        if self._unambiguous:
            family, _ = self.pick(self._unambiguous)
            name = self._per_row(f"rw{number}", family)
            self.vocabulary.family_costs.append((family, reference(name)))

    def _per_row(self, name: str, of: ast.Ref | None) -> str:
        name, (low, high) = self._own_name(name), self.pick(_RANGES)
        body = ast.PerRow(_signed(low), _signed(high), span=NOWHERE)
        self.declarations.append(ast.Costs(named(name), of, body, None, span=NOWHERE))
        return name

    def _own_name(self, name: str) -> str:
        """A name that no label has, since an input may not share a name with a label."""
        while name in self.vocabulary.labels:
            name += "_"
        return name


def _whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and text == str(int(text))


def _signed(value: float) -> ast.Signed:
    return ast.Signed(value, span=NOWHERE)


def _nested(labels: Sequence[str], paths: Sequence[tuple[str, ...]], above: tuple[str, ...]) -> object:
    """A hierarchy in JSON: an object if all children are inner nodes, else an array of labels and an object."""
    d = len(above)
    leaves = [labels[y] for y, p in enumerate(paths) if p == above]
    inner = dict.fromkeys(p[d] for p in paths if len(p) > d and p[:d] == above)
    objects = {n: _nested(labels, paths, (*above, n)) for n in inner}
    if not leaves:
        return objects
    return [*leaves, objects] if objects else leaves


def _cell(value: object) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([header, *rows])
    return out.getvalue().encode()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _npy(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()
