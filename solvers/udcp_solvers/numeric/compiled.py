"""Compiled kernels, and rows in threads: the one place that touches numba's decorators.

A kernel is a plain loop over the rows `start` to `stop`; `over_rows` runs blocks of rows in threads (kernels release
the interpreter lock). Not numba's own `prange`: its thread pools end the process after a fork (OpenMP) or when two
Python threads score at once (workqueue), and its kernels take longer to compile.

numba is imported when the first kernel is called, so that oracles can be loaded and asked what they would do (`udcp
check`) in a tenth of the time that importing it takes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from udcp_dsl.per_row import Patched, PerRow
from udcp_dsl.threads import over_blocks
from udcp_solvers.numeric.compile_notice import announce_compilation

F = TypeVar("F", bound=Callable[..., Any])

# Versions of numba with which `parts` is tested; with others kernels are compiled by numba's public interface alone.
TESTED = ((0, 60), (0, 68))


@cache
def _fingerprint(module: str) -> str:
    """A hash of a module of this package and of all that it imports from the package."""
    digest = hashlib.sha256()
    waiting, seen = [module], set()
    while waiting:
        name = waiting.pop()
        path = Path(__file__).parents[2].joinpath(*name.split(".")).with_suffix(".py")
        if name not in seen and path.is_file():
            seen.add(name)
            text = path.read_text(encoding="utf-8")
            digest.update(text.encode())
            waiting += re.findall(r"\budcp_solvers\.[\w.]+", text)
    return digest.hexdigest()[:12]


@cache
def _own_compilers() -> tuple[Any, Any] | None:
    """The compilers of kernels and of their parts that are quicker than numba's own; None for numba's own.

    They are made of numba's insides, so only versions are taken with which they are tested. `UDCP_PLAIN_NUMBA=1` asks
    for numba's own.
    """
    import numba

    version = tuple(int(x) for x in re.findall(r"\d+", numba.__version__)[:2])
    if os.environ.get("UDCP_PLAIN_NUMBA") or not TESTED[0] <= version <= TESTED[1]:
        return None
    try:
        from udcp_solvers.numeric.parts import KernelCompiler, PartCompiler
    except Exception:  # whatever has changed there: the other way is always open
        return None
    return KernelCompiler, PartCompiler


class Kernel:
    """A function that is handed to numba when it is first called, from Python or from another kernel.

    Compiled code finds its callees among the globals of its module, and numba asks those that it does not know for
    their `_numba_type_`: it gets that of a part. All else that it wants to know of a callee it asks of its dispatcher.
    Where compiling by our own compilers fails, every kernel is compiled by numba's from then on.
    """

    _every: ClassVar[list[Kernel]] = []
    _plain: ClassVar[bool] = False

    def __init__(self, function: Callable[..., Any], fastmath: Iterable[str] = (), counted: bool = True) -> None:
        self._every.append(self)
        self.function, self._name = function, function.__qualname__
        self._settings = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
        self._counted = counted

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function for Python; compiled for the types of its arguments when it is called."""
        import numba

        announce_compilation()
        compilers, settings = self._compilers, dict(self._settings)
        if compilers is not None:
            settings |= {"pipeline_class": compilers[0], "_nrt": self._counted}
        # numba's cache on disk looks only at the file of a kernel, not at the files of what it calls, and would go on
        # using the old code of those. The name of the kernel is part of the key, so their state goes into the name.
        function = self.function
        how = "" if compilers is not None else "-plain"
        function.__qualname__ = f"{self._name}-{_fingerprint(function.__module__)}{how}"
        njit: Any = numba.njit  # untyped before numba 0.66
        # A function made of others is part of the kernel that calls it, and numba would store it under changing names.
        kept = function.__closure__ is None
        try:
            return njit(cache=kept, **settings)(function)
        except RuntimeError:  # no folder that can be written to
            return njit(**settings)(function)

    @cached_property
    def _part(self) -> Any:
        """What numba makes of the function for other kernels."""
        import numba

        compilers = self._compilers
        if compilers is None:
            return self.dispatcher
        njit: Any = numba.njit
        types: Any = numba.types
        part = njit(pipeline_class=compilers[1], _nrt=self._counted, **self._settings)(self.function)
        # Numbers that stand in the text of a caller are types of their own to numba, each compiled by itself.
        template = part.get_call_template
        part.get_call_template = lambda given, kws: template([types.unliteral(kind) for kind in given], kws)
        return part

    @property
    def _numba_type_(self) -> Any:
        return self._part._numba_type_

    @property
    def _compilers(self) -> tuple[Any, Any] | None:
        return None if Kernel._plain else _own_compilers()

    def __call__(self, *arguments: object) -> Any:
        try:
            return self.dispatcher(*arguments)
        except Exception:
            if self._compilers is None:
                raise
            Kernel.compile_anew(plain=True)
            try:
                return self.dispatcher(*arguments)
            except Exception:  # the kernel is at fault, not its compiler
                Kernel.compile_anew(plain=False)
                raise

    @classmethod
    def compile_anew(cls, *, plain: bool) -> None:
        """Compile every kernel when it is next called, by numba's own compiler or by ours."""
        cls._plain = plain
        for kernel in cls._every:
            kernel.__dict__.pop("dispatcher", None)
            kernel.__dict__.pop("_part", None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def jit(function: F) -> F:
    """Compile with IEEE arithmetic exactly as written."""
    return cast(F, Kernel(function))


def jit_uncounted(function: F) -> F:
    """Compile without counting who refers to an array, sooner and for quicker code: for kernels that make no array and
    are called by none that counts."""
    return cast(F, Kernel(function, counted=False))


def jit_any_order(function: F) -> F:
    """Compile a loop whose sums may be taken in any order (so that it vectorises); never for a value that is kept."""
    return cast(F, Kernel(function, ("reassoc", "nnan")))


def over_rows(kernel: Callable[..., None], n: int, K: int, *arguments: object) -> None:
    """Call kernel(start, stop, *arguments) on blocks that cover the n rows (of K cells each), in threads; row by row
    where they differ in an argument, or in a field of one (`PerRow`)."""
    import numba

    settings: Any = numba.config
    cores = int(settings.NUMBA_NUM_THREADS)
    given = [_of_one_type(argument) for argument in arguments]
    of_row = _by_row(tuple(given), n)

    def work(start: int, stop: int) -> None:
        if of_row is None:
            kernel(start, stop, *given)
            return
        for i in range(start, stop):
            kernel(i, i + 1, *of_row(i))

    over_blocks(work, n, n * K, cores)


def _by_row(argument: Any, n: int) -> Callable[[int], Any] | None:
    """What an argument is for each row; None where it is the same for all of them."""
    if isinstance(argument, PerRow | Patched):
        if argument.n != n:
            raise ValueError(f"numbers of {argument.n} rows for {n} rows")
        return argument.row
    if not isinstance(argument, tuple):
        return None
    fields = [(field, _by_row(field, n)) for field in argument]
    if all(of_row is None for _, of_row in fields):
        return None
    make = getattr(argument, "_make", tuple)  # the fields may have names
    return lambda i: make([field if of_row is None else of_row(i) for field, of_row in fields])


def _of_one_type(argument: object) -> object:
    """A vector that cannot be written to, such as one threshold for all rows, is a type of its own to numba, for which
    it would compile the kernel anew; a matrix of rows is not worth a copy."""
    column = isinstance(argument, np.ndarray) and argument.ndim == 1 and not argument.flags.writeable
    return np.array(argument) if column else argument
