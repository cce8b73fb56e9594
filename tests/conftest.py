"""What the whole suite keeps to, and what several test files share.

One tree is tested: processes that a test starts import it too, and so find the kernels that are compiled already. The
whole suite runs in several processes, ordered so that they seldom compile the same kernel at once; a part of it runs in
this one. Generated examples are the same in every run, in any order; with `-m slow` every property gets fresh ones. A
run of the whole suite tries a property on an eighth of its examples, a run of a part and the slow one on all.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.machinery
import os
import random
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

# Before numpy is imported, for workers and what they start too: products of small matrices would wake a thread for each
# core, which spins there while another worker needs it.
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# What processes print is compared: whether kernels have been compiled by then is not part of it.
os.environ.setdefault("UDCP_QUIET", "1")

# Tests that call no compiled kernel, or hardly any.
WITHOUT_KERNELS = tuple(
    f"tests/{path}"
    for path in """
        test_deep test_generated test_house test_mutated test_reference
        udcp_dsl/compile/ udcp_dsl/expression/ udcp_dsl/language/ udcp_dsl/torch/
        udcp_dsl/prediction/calibrate/ udcp_dsl/prediction/rows/ udcp_dsl/prediction/test_writing
        udcp_dsl/test_datasets udcp_dsl/test_diagnostics udcp_dsl/test_loss
        udcp_dsl/cli/test_eval udcp_dsl/cli/test_format udcp_dsl/cli/test_mistakes
        udcp_dsl/cli/test_new udcp_dsl/cli/test_process
    """.split()
)

# Tests that call nearly all kernels: one worker begins with them, and compiles what kernels share once.
ALL_KERNELS = ("tests/test_coverage", "tests/test_stored_scores", "tests/udcp_solvers/")

# A run of the whole suite tries a property on one example of so many, but on no fewer than LEAST; and of the seeds of a
# test it takes one of so many.
ONE_OF, LEAST = 8, 12
ONE_SEED_OF = 3

settings.register_profile("same", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without", action="append", default=[], metavar="PACKAGE", help="As if this package were not installed."
    )


def pytest_configure(config: pytest.Config) -> None:
    hide(config.getoption("--without"))
    # Kernels are kept beside the source, and so is bytecode: each process would make it anew, in half a second.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Thousands of tests and all modules are objects that stay: to look for garbage among them takes a tenth of the run.
    gc.set_threshold(100_000, 50, 50)
    roots = [str(path) for path in config.getini("pythonpath")]
    if roots:  # none where what is tested is an installed package
        os.environ["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [os.environ.get("PYTHONPATH")])])
    if fresh(config):
        settings.load_profile("fresh")
    else:
        settings.load_profile("same")
        # hypothesis also draws the numbers and words in the source of whatever modules are loaded by then: other
        # examples for each order of the tests. It has no setting for this; tests/test_examples.py sees that it holds.
        with contextlib.suppress(ImportError, AttributeError):
            from hypothesis.internal.conjecture import providers

            vars(providers)["_get_local_constants"] = providers.Constants


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Programs that tests run stand beside them; they hold no examples."""
    return True if collection_path.suffix == ".py" and not collection_path.name.startswith("test_") else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples in docstrings are looked for in the package, not in its tests."""
    return [collector for collector in (yield) if type(collector) is pytest.Module]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """A part of the suite runs in this process: soon there, and open to a debugger; the whole, as xdist decides."""
    return None if whole(config) else 0


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker is given every path by name: what was asked for is known here alone."""
    node.workerinput["whole"] = whole(node.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second worker reads the folders from their end: of the bytecode of all test files, which takes a good part
    of collecting them, each worker then makes its share and finds that of the other."""
    report = yield
    if isinstance(collector, pytest.Directory) and os.environ.get("PYTEST_XDIST_WORKER", "").endswith(tuple("13579")):
        report.result = report.result[::-1]
    return report


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What a run of the whole leaves to the slow one; and of two processes one begins with kernels, one without."""
    properties = [item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)]
    if fresh(config) or whole(config):
        left = [item for item in items if _seed(item) % ONE_SEED_OF]
        for item in [*left, *properties] if fresh(config) else left:  # properties, with fresh examples
            item.add_marker(pytest.mark.slow)
    if whole(config) and not fresh(config):
        for test in {id(item.obj): item.obj for item in properties}.values():  # type: ignore[attr-defined]  # functions
            try_fewer(test)
    if hasattr(config, "workerinput"):
        items.sort(key=_place)  # the same in every worker
        slow = [item for item in items if item.get_closest_marker("slow")]
        quick = [item for item in items if not item.get_closest_marker("slow")]
        kernels = [item for item in quick if not item.nodeid.startswith(WITHOUT_KERNELS)]
        kernels.sort(key=lambda item: not item.nodeid.startswith(ALL_KERNELS))
        others = [item for item in quick if item.nodeid.startswith(WITHOUT_KERNELS)]
        half = len(quick) // 2  # where xdist has the second of two begin
        items[:] = [*kernels[:half], *others, *kernels[half:], *slow]


def _place(item: pytest.Item) -> tuple[str, ...]:
    return item.path.relative_to(item.config.rootpath).parts


def _seed(item: pytest.Item) -> int:
    seed = item.callspec.params.get("seed", 0) if hasattr(item, "callspec") else 0
    return seed if isinstance(seed, int) else 0


def try_fewer(test: Any) -> None:
    """Let a property be tried on fewer examples. hypothesis has no public way; without this one it is tried on all."""
    declared = getattr(test, "_hypothesis_internal_use_settings", None)
    if declared is not None:
        fewer = max(LEAST, declared.max_examples // ONE_OF)
        test._hypothesis_internal_use_settings = settings(declared, max_examples=min(declared.max_examples, fewer))


def whole(config: pytest.Config) -> bool:
    """Whether the whole suite was asked for, not a part of it."""
    told: bool | None = getattr(config, "workerinput", {}).get("whole")
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS if told is None else told


def fresh(config: pytest.Config) -> bool:
    """Whether examples are drawn anew, not the same in every run."""
    return bool(config.getoption("markexpr") == "slow")


def hide(packages: Iterable[str]) -> None:
    """Let these be found by no import of this process. (None in sys.modules would do, but others look there.)"""
    hidden = frozenset(packages)
    if hidden:
        ours = sys.meta_path.index(importlib.machinery.PathFinder)

        class Finder(importlib.machinery.PathFinder):
            @classmethod
            def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
                return None if fullname.partition(".")[0] in hidden else super().find_spec(fullname, path, target)

        sys.meta_path[ours] = Finder


@pytest.fixture
def promised() -> None:
    """For a test in which validation is to try promises."""


@pytest.fixture
def few_promises(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation tries no promises, or where a test is `promised` some trials of each, a third of all its time:
    tests/udcp_dsl/validation/test_promises.py, where this does nothing, tries all of them."""
    if request.path.name.endswith("promises.py"):
        return
    from udcp_dsl.validation import promises

    monkeypatch.setattr(promises, "_TRIALS", promises._FEWEST)
    if "promised" not in request.fixturenames:
        monkeypatch.setattr(promises, "promises", lambda *asked: [])


@pytest.fixture
def every_classifier() -> None:
    """For a test in which validation is to try coverage with every kind of classifier."""


@pytest.fixture
def few_classifiers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation tries coverage with three kinds of classifiers, in a fifth of the time, but for `every_classifier`."""
    from udcp_dsl.testing.coverage import CLASSIFIERS
    from udcp_dsl.validation import coverage_trials

    if "every_classifier" not in request.fixturenames:
        kinds = ("overconfident", "saturated", "tied")
        monkeypatch.setattr(coverage_trials, "CLASSIFIERS", {kind: CLASSIFIERS[kind] for kind in kinds})


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages say what they say of figures, but the pictures are empty: matplotlib takes a third of a second for one."""
    empty = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
    monkeypatch.setattr(
        "udcp_dsl.report.drawing._rendered", lambda figure, formats: (dict.fromkeys(formats, empty), {})
    )


@pytest.fixture(scope="session")
def read_once() -> Iterator[None]:
    """From here on the catalogues and the classifier of the languages, seconds to read, are read once in a process."""
    from udcp_dsl.datasets import language_strings

    entries = functools.cache(language_strings.entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_strings, "entries", lambda codes: entries(frozenset(codes)))
        patch.setattr(language_strings, "load_identifier", functools.cache(language_strings.load_identifier))
        yield


@pytest.fixture(scope="session")
def mutate() -> Callable[[Sequence[Any], Sequence[Any], random.Random], list[Any]]:
    """(pieces, pool, rng) -> the pieces with one to four changes, new ones taken from the pool."""
    return _mutated


def _mutated(pieces: Sequence[T], pool: Sequence[T], rng: random.Random) -> list[T]:
    """One to four changes of a sequence."""
    found = list(pieces)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not found:
            break
        i, j = rng.randrange(len(found)), rng.randrange(len(found))
        match rng.choice(("drop", "swap", "neighbours", "double", "replace", "insert", "repeat", "cut")):
            case "drop":
                del found[i]
            case "swap":
                found[i], found[j] = found[j], found[i]
            case "neighbours":
                found[i : i + 2] = found[i : i + 2][::-1]
            case "double":
                found.insert(i, found[i])
            case "replace":
                found[i] = rng.choice(pool)
            case "insert":
                found.insert(i, rng.choice(pool))
            case "repeat":
                found[i] = found[j]
            case "cut":
                del found[i : i + rng.randrange(1, 12)]
    return found
