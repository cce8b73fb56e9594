"""What numba finds out about a call, kept while kernels are compiled: it asks again at every place.

Which implementation an operator or a builtin has for given types numba finds by trying its templates one after
another, a dozen for each subscript and twice each, and every try compares all flags of the compilation. The answer
depends on the function, the types and the flags alone. How large a variable is it asks LLVM, by a module of text that
is parsed for each. Nor is there garbage meanwhile that is worth looking for.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# numba is typed in part: what is not is called through these.
_functions: Any = import_module("numba.core.types.functions")
_config: Any = import_module("numba.core.targetconfig")
_base: Any = import_module("numba.core.base")

_OBJECTS = 50_000  # new ones, after which Python looks for garbage among them


class _Calls:
    """Signatures of calls and what implements them, by function, types and flags; sizes of variables, by type."""

    def __init__(self) -> None:
        self.under_way = False
        self.original: Any = None
        self.asked_size: Any = None
        self._known: dict[Any, Any] = {}
        self._sizes: dict[tuple[type, str], int] = {}
        self._flags: Any = None
        self._told: Any = None

    def signature(self, function: Any, context: Any, types: Any, keywords: Any) -> Any:
        if keywords:
            return self.original(function, context, types, keywords)
        key = (function, context, types, self._of_flags())
        if key not in self._known:
            found = self.original(function, context, types, keywords)
            self._known[key] = found, function.get_impl_key(found)
        signature, implementation = self._known[key]
        # A function knows one implementation for a signature, that of the flags it was last asked with.
        function._impl_keys[signature.args] = implementation
        return signature

    def size(self, context: Any, kind: Any) -> int:
        key = type(context), str(kind)
        if key not in self._sizes:
            self._sizes[key] = self.asked_size(context, kind)
        return self._sizes[key]

    def _of_flags(self) -> Any:
        """The flags of the function that is compiled just now; every function has an object of its own for them."""
        flags = _config.ConfigStack.top_or_none()
        if flags is not self._flags:
            self._flags, self._told = flags, str(flags.values())
        return self._told


_calls = _Calls()


@contextmanager
def remembered_calls() -> Iterator[None]:
    """In the block, which holds numba's lock of the compiler, each kind of call and each size is looked up once."""
    if _calls.under_way:
        yield
        return
    functions, contexts, thresholds = _functions.BaseFunction, _base.BaseContext, gc.get_threshold()
    _calls.original, _calls.asked_size = functions.get_call_type, contexts.get_abi_sizeof
    functions.get_call_type = lambda *call: _calls.signature(*call)
    contexts.get_abi_sizeof = lambda *asked: _calls.size(*asked)
    gc.set_threshold(max(_OBJECTS, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    _calls.under_way = True
    try:
        yield
    finally:
        _calls.under_way = False
        gc.set_threshold(*thresholds)
        functions.get_call_type, contexts.get_abi_sizeof = _calls.original, _calls.asked_size
