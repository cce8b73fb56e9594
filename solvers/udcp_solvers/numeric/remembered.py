"""Caches what numba looks up about calls while kernels are compiled; numba itself looks it up again at every call.

To find the implementation of an operator or builtin for given types, numba tries its templates one after another (a
dozen for each subscript, and twice each), and every try compares all flags of the compilation. The answer depends only
on the function, the types and the flags. For the size of a variable, numba has LLVM parse a module of text each time.
Python's garbage collector runs less often meanwhile, since there is little garbage to find.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# numba is only partly typed; its untyped members are used through these.
_functions: Any = import_module("numba.core.types.functions")
_config: Any = import_module("numba.core.targetconfig")
_base: Any = import_module("numba.core.base")

_OBJECTS = 50_000  # new objects per run of the garbage collector


class _Calls:
    """Cached signatures and implementations of calls, by function, types and flags; cached sizes of variables, by
    type."""

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
        # A function stores one implementation per signature: that for the flags of its last call.
        function._impl_keys[signature.args] = implementation
        return signature

    def size(self, context: Any, kind: Any) -> int:
        key = type(context), str(kind)
        if key not in self._sizes:
            self._sizes[key] = self.asked_size(context, kind)
        return self._sizes[key]

    def _of_flags(self) -> Any:
        """The flags of the function that is being compiled, as text; each function has its own flags object."""
        flags = _config.ConfigStack.top_or_none()
        if flags is not self._flags:
            self._flags, self._told = flags, str(flags.values())
        return self._told


_calls = _Calls()


@contextmanager
def remembered_calls() -> Iterator[None]:
    """A context in which each kind of call and each size is looked up once; the caller holds numba's compiler lock."""
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
