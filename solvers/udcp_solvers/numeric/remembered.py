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

_GC_THRESHOLD = 50_000  # new objects per run of the garbage collector


class _CallCache:
    """Cached signatures and implementations of calls, by function, types and flags; cached sizes of variables, by
    type."""

    def __init__(self) -> None:
        self.active = False
        self.original_signature: Any = None
        self.original_size: Any = None
        self._signatures: dict[Any, Any] = {}
        self._sizes: dict[tuple[type, str], int] = {}
        self._flags: Any = None
        self._text: Any = None

    def signature(self, function: Any, context: Any, types: Any, keywords: Any) -> Any:
        if keywords:
            return self.original_signature(function, context, types, keywords)
        key = (function, context, types, self._flags_text())
        if key not in self._signatures:
            found = self.original_signature(function, context, types, keywords)
            self._signatures[key] = found, function.get_impl_key(found)
        signature, implementation = self._signatures[key]
        # A function stores one implementation per signature: that for the flags of its last call.
        function._impl_keys[signature.args] = implementation
        return signature

    def size(self, context: Any, kind: Any) -> int:
        key = type(context), str(kind)
        if key not in self._sizes:
            self._sizes[key] = self.original_size(context, kind)
        return self._sizes[key]

    def _flags_text(self) -> Any:
        """The flags of the function that is being compiled, as text; each function has its own flags object."""
        flags = _config.ConfigStack.top_or_none()
        if flags is not self._flags:
            self._flags, self._text = flags, str(flags.values())
        return self._text


_calls = _CallCache()


@contextmanager
def cached_calls() -> Iterator[None]:
    """A context in which each kind of call and each size is looked up once; the caller holds numba's compiler lock."""
    if _calls.active:
        yield
        return
    functions, contexts, thresholds = _functions.BaseFunction, _base.BaseContext, gc.get_threshold()
    _calls.original_signature, _calls.original_size = functions.get_call_type, contexts.get_abi_sizeof
    functions.get_call_type = lambda *call: _calls.signature(*call)
    contexts.get_abi_sizeof = lambda *asked: _calls.size(*asked)
    gc.set_threshold(max(_GC_THRESHOLD, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    _calls.active = True
    try:
        yield
    finally:
        _calls.active = False
        gc.set_threshold(*thresholds)
        functions.get_call_type, contexts.get_abi_sizeof = _calls.original_signature, _calls.original_size
