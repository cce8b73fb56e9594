"""The table of atoms: one line each. Adding an atom: its file, its line here, its page of the reference."""

from __future__ import annotations

from udcp_dsl.expression.atoms.all import All
from udcp_dsl.expression.atoms.any import Any
from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.atoms.count import Count
from udcp_dsl.expression.atoms.diameter import Diameter
from udcp_dsl.expression.atoms.empty import Empty
from udcp_dsl.expression.atoms.max import Max
from udcp_dsl.expression.atoms.min import Min
from udcp_dsl.expression.atoms.radius import Radius
from udcp_dsl.expression.atoms.size import Size
from udcp_dsl.expression.atoms.spread import Spread
from udcp_dsl.expression.atoms.sum import Sum
from udcp_dsl.expression.atoms.within import Within
from udcp_dsl.expression.atoms.worst import Worst

ATOMS: dict[str, type[Atom]] = {
    atom.name: atom for atom in (Size, Sum, Max, Min, Diameter, Spread, Radius, Count, Any, All, Within, Empty, Worst)
}

__all__ = ["ATOMS", "Atom", "Held", "Increment", "Sets"]
