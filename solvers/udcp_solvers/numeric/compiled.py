"""Compiled kernels, and rows in threads: the one module that uses numba's decorators.

A kernel is a plain loop over the rows `start` to `stop`; `over_rows` runs blocks of rows in threads (kernels release
the interpreter lock). Not numba's own `prange`: its thread pools end the process after a fork (OpenMP) or when two
Python threads score at once (workqueue), and its kernels take longer to compile.

numba is imported when the first kernel is called. So oracles can be loaded and can report their algorithm (`udcp
check`) in a tenth of the time that this import takes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from udcp_dsl.per_row import Patched, PerRow
from udcp_dsl.threads import over_blocks
from udcp_solvers.numeric.compile_notice import announce_compilation

F = TypeVar("F", bound=Callable[..., Any])

# Range of numba versions with which `parts` is tested; other versions use only numba's public interface.
TESTED = ((0, 60), (0, 68))


@cache
def _fingerprint(module: str) -> str:
    """A hash of a module of this package and of all modules of the package that it imports, directly or not."""
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
    """Our compilers for kernels and for parts, which are faster than numba's own; None to use numba's own.

    They rely on numba's internals, so they are used only with tested versions. `UDCP_PLAIN_NUMBA=1` selects numba's
    own.
    """
    import numba

    version = tuple(int(x) for x in re.findall(r"\d+", numba.__version__)[:2])
    if os.environ.get("UDCP_PLAIN_NUMBA") or not TESTED[0] <= version <= TESTED[1]:
        return None
    try:
        from udcp_solvers.numeric.parts import KernelCompiler, PartCompiler
    except Exception:  # numba's internals have changed: use its own compilers
        return None
    return KernelCompiler, PartCompiler


def _survive_damage(cache: Any) -> None:
    """Let this cache of a kernel on disk be emptied if it cannot be read, so that the kernel is compiled again, and be
    left alone if it cannot be written; numba would raise an error each time that the kernel is called first.

    numba's folder of a cache is shared by processes, and a process that is killed, or a full disk, can damage it.
    """
    if not all(hasattr(cache, name) for name in ("load_overload", "save_overload", "flush", "disable", "cache_path")):
        return  # numba's internals have changed
    load, save = cache.load_overload, cache.save_overload

    def load_or_empty(*key: Any) -> Any:
        try:
            return load(*key)
        except Exception:  # whatever unpickling damaged bytes raises
            with _disabling_on_error(cache):
                cache.flush()
            return None

    def save_or_not(*entry: Any) -> None:
        with _disabling_on_error(cache):
            save(*entry)

    cache.load_overload, cache.save_overload = load_or_empty, save_or_not


@contextmanager
def _disabling_on_error(cache: Any) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        cache.disable()
        _tell_unkept(cache.cache_path, str(getattr(error, "strerror", None) or error))


@cache
def _tell_unkept(folder: str, why: str) -> None:
    """Once per process: many kernels have their caches in one folder."""
    logging.getLogger("udcp_dsl.compiling").warning(
        f"udcp_dsl: compiled code cannot be kept in {folder} ({why}), so each start compiles again: make room there, "
        "or remove that folder"
    )


class Kernel:
    """A function that numba compiles when it is first called, from Python or from another kernel.

    numba looks up a callee among the globals of the caller's module and asks unknown objects for `_numba_type_`: a
    kernel returns that of its part. All other attributes are forwarded to the dispatcher. If our compilers fail where
    numba's own succeed, all kernels are compiled by numba's own from then on.
    """

    _all_kernels: ClassVar[list[Kernel]] = []
    _plain: ClassVar[bool] = False

    def __init__(
        self, function: Callable[..., Any], fastmath: Iterable[str] = (), counted: bool = True, inlined: bool = False
    ) -> None:
        self._all_kernels.append(self)
        self.function, self._name = function, function.__qualname__
        self._settings = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath), "forceinline": inlined}
        self._counted = counted

    @cached_property
    def dispatcher(self) -> Any:
        """numba's dispatcher for calls from Python; it compiles for the types of the arguments when it is called."""
        import numba

        announce_compilation()
        compilers, settings = self._compilers, dict(self._settings)
        if compilers is not None:
            settings |= {"pipeline_class": compilers[0], "_nrt": self._counted}
        # numba's disk cache checks only the file of a kernel, not those of its callees, whose old code it would keep
        # using. The name of the kernel is part of the cache key, so a hash of all these files goes into the name.
        function = self.function
        how = "" if compilers is not None else "-plain"
        function.__qualname__ = f"{self._name}-{_fingerprint(function.__module__)}{how}"
        njit: Any = numba.njit  # untyped before numba 0.66
        # A closure is part of the kernel that calls it, and numba would cache it under changing names.
        cached = function.__closure__ is None
        try:
            dispatcher = njit(cache=cached, **settings)(function)
        except RuntimeError:  # no writable cache folder
            return njit(**settings)(function)
        if cached:
            _survive_damage(getattr(dispatcher, "_cache", None))
        return dispatcher

    @cached_property
    def _part(self) -> Any:
        """numba's dispatcher for calls from other kernels."""
        import numba

        compilers = self._compilers
        if compilers is None:
            return self.dispatcher
        njit: Any = numba.njit
        types: Any = numba.types
        part = njit(pipeline_class=compilers[1], _nrt=self._counted, **self._settings)(self.function)
        # numba gives each literal number in a caller its own type, and would compile the part again for each.
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
        """Recompile every kernel at its next call: by numba's own compiler if `plain`, else by ours."""
        cls._plain = plain
        for kernel in cls._all_kernels:
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
    """Compile without reference counts of arrays, which compiles and runs faster. Only for kernels that create no array
    and are called by no kernel that counts references."""
    return cast(F, Kernel(function, counted=False))


def jit_inlined(function: F) -> F:
    """Compile as `jit_uncounted` does, and into the code of each caller: for a short kernel that takes many arrays and
    is called in an inner loop, where passing them on would take as long as its work."""
    return cast(F, Kernel(function, counted=False, inlined=True))


def jit_any_order(function: F) -> F:
    """Compile a loop whose sums may be taken in any order, so that it vectorises; never for a value that must be
    exact."""
    return cast(F, Kernel(function, ("reassoc", "nnan")))


def over_rows(kernel: Callable[..., None], n: int, K: int, *arguments: object) -> None:
    """Call kernel(start, stop, *arguments) on blocks that cover the n rows (of K cells each), in threads. If an
    argument, or a field of one, differs by row (`PerRow`), the kernel is called once per row."""
    import numba

    settings: Any = numba.config
    cores = int(settings.NUMBA_NUM_THREADS)
    given = [_writable_vector(argument) for argument in arguments]
    of_row = _by_row(tuple(given), n)

    def work(start: int, stop: int) -> None:
        if of_row is None:
            kernel(start, stop, *given)
            return
        for i in range(start, stop):
            kernel(i, i + 1, *of_row(i))

    over_blocks(work, n, n * K, cores)


def _by_row(argument: Any, n: int) -> Callable[[int], Any] | None:
    """A function from a row to its value of an argument; None if the argument is the same for all rows."""
    if isinstance(argument, PerRow | Patched):
        if argument.n != n:
            raise ValueError(f"numbers of {argument.n} rows for {n} rows")
        return argument.row
    if not isinstance(argument, tuple):
        return None
    fields = [(field, _by_row(field, n)) for field in argument]
    if all(of_row is None for _, of_row in fields):
        return None
    make = getattr(argument, "_make", tuple)  # keeps named tuples
    return lambda i: make([field if of_row is None else of_row(i) for field, of_row in fields])


def _writable_vector(argument: object) -> object:
    """A writable copy of a read-only vector, such as one threshold for all rows; any other argument as it is. To numba,
    read-only arrays are a type of their own, for which it would compile the kernel again; a matrix is not worth a
    copy."""
    column = isinstance(argument, np.ndarray) and argument.ndim == 1 and not argument.flags.writeable
    return np.array(argument) if column else argument
