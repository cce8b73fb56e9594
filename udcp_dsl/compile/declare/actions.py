"""`actions`: the loss of each action under each truth."""

from __future__ import annotations

import numpy as np

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.compile.declare.matching import ending, key_column, require_all_keys, require_ending, rows_of
from udcp_dsl.compile.sources import FileFault, finite, read_json
from udcp_dsl.expression.domain import Actions
from udcp_dsl.language import ast


def build_actions(d: Declared, x: ast.Actions) -> Actions:
    file = x.body
    if ending(file) == "csv":
        table, rows = rows_of(d, file)
        key = table.keyed(key_column(d, file, table))[0]
        columns = [i for i in range(len(table.header)) if i != key]
        actions = tuple(table.header[i] for i in columns)
        values = [[table.number(row, i) for i in columns] for row in rows]
    else:
        require_ending(file, "actions", "csv", "json")
        value = read_json(file.path, d.files.read(file.path))
        if not isinstance(value, dict) or not all(isinstance(row, dict) for row in value.values()):
            raise FileFault(
                "E303", f"{file.path} is not an object of objects", 'write {"label": {"action": 1.5, ...}, ...}'
            )
        require_all_keys(d, file, value, d.labels, "label")
        actions = tuple(value[d.labels[0]])
        for label in d.labels:
            if set(value[label]) != set(actions):
                raise FileFault(
                    "E303",
                    f"{file.path}: {label!r} has other actions than {d.labels[0]!r}",
                    "give each label all actions",
                )
        values = [[finite(value[label][a], f"{file.path}: {label!r}: {a!r}") for a in actions] for label in d.labels]
    if not actions:
        raise FileFault("E303", f"{file.path} has no action", "give at least one column of losses")
    return Actions(x.name.text, actions, np.array(values, dtype=np.float64))
