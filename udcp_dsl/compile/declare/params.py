"""`param`: a number that the caller may set, within its range."""

from __future__ import annotations

import math
from collections.abc import Mapping

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.diagnostics import Related
from udcp_dsl.language import ast


def build_param(d: Declared, x: ast.Param, params: Mapping[str, float]) -> float:
    name, written = x.name.text, x.value.value
    value = params.get(name, written)
    low = -math.inf if x.low is None else x.low.value
    high = math.inf if x.high is None else x.high.value
    if x.low is not None and x.high is not None and low > high:
        d.error(
            "E251", x.low.span.to(x.high.span), f"the range [{low:g}, {high:g}] is empty", "write the smaller end first"
        )
        raise DeclarationFailed
    for number, span in ((written, x.value.span), (value, x.name.span)):
        if not low <= number <= high:
            message = f"parameter {name} = {number:g} is outside [{low:g}, {high:g}]"
            ends = [] if x.low is None or x.high is None else [Related(x.low.span.to(x.high.span), "its range")]
            d.error("E250", span, message, "choose a value in the range, or widen it", related=ends)
            raise DeclarationFailed
    return float(value)
