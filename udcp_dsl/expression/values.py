"""The cost of many sets at once, and of a set extended by one label.

Both evaluate the atoms first, each in its own way, and then the expression on the resulting arrays, of any shape.
"""

from __future__ import annotations

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.atoms import Held, Sets
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.inputs import Given, InputNode, RowLeaf
from udcp_dsl.expression.ir import Expression

# Sets are evaluated in blocks of about this many entries, which fit into the cache whatever n is. With smaller blocks,
# parallel threads wait for the interpreter lock at each step of each block, and take twice as long.
_BLOCK = 1 << 19


def node_values(expression: Expression, mask: Bools, inputs: Given | None = None) -> dict[int, Floats]:
    """The value of every node (by `id`) on each set, with the inputs of the same row; constants may be scalars."""
    return _node_values(expression, Sets(mask), inputs)


def _node_values(expression: Expression, sets: Sets, inputs: Given | None = None) -> dict[int, Floats]:
    values = {key: atom.batch(sets) for key, atom in expression.atoms.items()}
    read = [node for node in expression.nodes if isinstance(node, InputNode | RowLeaf)]
    if read and inputs is None:
        raise InputError(f"this reads row inputs, such as {read[0].name!r}, and none are given")
    values |= {node.given: node.read(sets, inputs) for node in read if inputs is not None}
    return expression.evaluate(values)


def batch(expression: Expression, sets: Sets, inputs: Given | None = None) -> Floats:
    """The value of the expression on each set, (n,), with the inputs of the same row."""
    n, K = sets.mask.shape
    values = [np.empty(0)]
    rows = max(1, _BLOCK // K)
    for start in range(0, n, rows):
        block = sets.block(start, start + rows)
        theirs = inputs and {name: column[start : start + rows] for name, column in inputs.items()}
        found = _node_values(expression, block, theirs)[id(expression.root)] + 0.0  # -0 becomes 0
        values.append(np.broadcast_to(found, len(block.mask)))
    return np.concatenate(values)


class Increments:
    """One growing set for each of n rows, and its cost after any one further label.

    >>> import udcp_dsl as udcp
    >>> grow = udcp.loads("labels {a, b, c}  loss l = size ^ 2").increments(1)
    >>> grow.push([1]); grow.value.tolist(), grow.after().tolist()
    ([1.0], [[4.0, 1.0, 4.0]])
    """

    def __init__(self, expression: Expression, n: int) -> None:
        self._expression = expression
        self._held = Held(n, expression.root.K)
        self._states = {key: atom.start(self._held) for key, atom in expression.atoms.items()}

    @property
    def mask(self) -> Bools:
        """The sets as they are now, (n, K)."""
        return self._held.mask

    @property
    def value(self) -> Floats:
        """L(S) for each row, (n,)."""
        return np.broadcast_to(self.nodes_now()[id(self._expression.root)], len(self.mask))

    def nodes_now(self) -> dict[int, Floats]:
        """The value of every node (by `id`) at S, (n,); constants may come out as scalars."""
        return self._expression.evaluate({key: state.value for key, state in self._states.items()})

    def after(self) -> Floats:
        """L(S + y) for every label y, (n, K); L(S) where y is in S."""
        return np.broadcast_to(self.nodes_after()[id(self._expression.root)], self.mask.shape)

    def nodes_after(self) -> dict[int, Floats]:
        """The value of every node (by `id`) at S + y, (n, K); constants may come out as scalars."""
        return self._expression.evaluate({key: state.after() for key, state in self._states.items()})

    def push(self, y: Ints | list[int]) -> None:
        """Add label y[i] to the set of row i; InputError if the set has this label already."""
        y = np.asarray(y)
        held = self._held
        n, K = held.mask.shape
        if y.shape != (n,) or y.dtype.kind not in "iu":
            raise InputError(f"one position for each of {n} sets is expected, not {y.dtype} of shape {y.shape}")
        outside = np.flatnonzero((y < 0) | (y >= K))
        if len(outside):
            raise InputError(
                f"row {outside[0]}: label {y[outside[0]]} is out of range: positions run from 0 to {K - 1}"
            )
        inside = np.flatnonzero(held.mask[held.rows, y])
        if len(inside):
            raise InputError(f"row {inside[0]}: label {y[inside[0]]} is in the set already")
        for state in self._states.values():
            state.push(y)
        held.mask[held.rows, y] = True
        held.size += 1
