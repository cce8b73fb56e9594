"""What the whole suite keeps to, and what several test files share.

One tree is tested: processes that a test starts import it too, and so find the kernels that are compiled already. The
whole suite runs in several processes, ordered so that they seldom compile the same kernel at once; a part of it runs in
this one. How much is tried is decided here alone, by one of two profiles (`Sizes`): a part of the suite is tried as
the whole is, and `-m slow` tries everything that has a size again, with larger ones and fresh examples.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.machinery
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

T = TypeVar("T")
SeenAmong: TypeAlias = "Callable[[st.SearchStrategy[Any], Callable[[Any], Iterable[str]], set[str]], set[str]]"
ExamplesOf: TypeAlias = "Callable[[st.SearchStrategy[Any]], list[Any]]"

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
        udcp_dsl/predict/calibrate/ udcp_dsl/rows/ udcp_dsl/predict/test_writing
        udcp_dsl/test_datasets udcp_dsl/test_diagnostics udcp_dsl/test_loss
        udcp_dsl/cli/test_eval udcp_dsl/cli/test_format udcp_dsl/cli/test_mistakes
        udcp_dsl/cli/test_new udcp_dsl/cli/test_process
    """.split()
)

# Tests that call nearly all kernels: one worker begins with them, and compiles what kernels share once.
ALL_KERNELS = ("tests/test_coverage", "tests/test_stored_scores", "tests/udcp_solvers/")


@dataclass(frozen=True)
class Sizes:
    """How much is tried; a test takes these from the fixture `sizes`, and has no sizes of its own."""

    examples: int  # of a property of hypothesis
    seeds: int  # of a test that takes `seed`
    cases: int  # rows, sets or problems of each kind, where brute force judges them
    problems: int  # classification problems on which coverage is held to its law: every kind of classifier at 17
    draws: int  # of a simulation
    repeats: int  # of a simulation that calibrates, or does as much, in every draw
    mutants: int  # of specs, files and texts
    terms: int  # of a sum or a nesting that is longer than any stack


DEFAULT = Sizes(examples=25, seeds=8, cases=3, problems=17, draws=1_000, repeats=100, mutants=500, terms=2_000)
SLOW = Sizes(examples=500, seeds=40, cases=12, problems=204, draws=4_000, repeats=1_000, mutants=10_000, terms=5_000)

# A spec takes tens of milliseconds to draw, and a folder may serve all examples: no sign of anything wrong.
_EXPECTED = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.filter_too_much,
    HealthCheck.function_scoped_fixture,
)
_COMMON: dict[str, Any] = {"deadline": None, "print_blob": True, "suppress_health_check": _EXPECTED}
settings.register_profile("default", max_examples=DEFAULT.examples, derandomize=True, **_COMMON)
settings.register_profile("slow", max_examples=SLOW.examples, **_COMMON)


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
    settings.load_profile("slow" if slow_run(config) else "default")
    if not slow_run(config):
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
    """The slow run has everything that has a size; and of two processes one begins with kernels, one without."""
    if slow_run(config):
        for item in items:
            if _has_a_size(item):
                item.add_marker(pytest.mark.slow)
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


def _has_a_size(item: pytest.Item) -> bool:
    """Whether a profile decides how much this test tries: a property, or a test that takes `sizes` or `seed`."""
    used = getattr(item, "fixturenames", ())
    return "sizes" in used or "seed" in used or getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `seed` is run for the seeds of the profile."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(_sizes(metafunc.config).seeds))


@pytest.fixture(scope="session")
def sizes(pytestconfig: pytest.Config) -> Sizes:
    """How much the tests of this run try."""
    return _sizes(pytestconfig)


def _sizes(config: pytest.Config) -> Sizes:
    return SLOW if slow_run(config) else DEFAULT


def whole(config: pytest.Config) -> bool:
    """Whether the whole suite was asked for, not a part of it."""
    told: bool | None = getattr(config, "workerinput", {}).get("whole")
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS if told is None else told


def slow_run(config: pytest.Config) -> bool:
    """Whether sizes are those of the slow run, and examples drawn anew instead of the same in every run."""
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


# What generators give, which is the same in both profiles: so many examples are looked at.
_GENERATED = settings(
    settings.get_profile("default"), max_examples=400, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="session")
def seen_among() -> SeenAmong:
    """(strategy, features, expected) -> the features of its examples, until all that are expected were seen."""

    def seen_among(
        strategy: st.SearchStrategy[Any], features: Callable[[Any], Iterable[str]], expected: set[str]
    ) -> set[str]:
        seen: set[str] = set()

        def complete(example: Any) -> bool:
            seen.update(features(example))
            return expected <= seen

        with contextlib.suppress(NoSuchExample):
            find(strategy, complete, settings=_GENERATED)
        return seen

    return seen_among


@pytest.fixture(scope="session")
def examples_of() -> ExamplesOf:
    """(strategy) -> hundreds of its examples."""

    def examples_of(strategy: st.SearchStrategy[Any]) -> list[Any]:
        found: list[Any] = []

        @_GENERATED
        @given(strategy)
        def collect(example: Any) -> None:
            found.append(example)

        collect()
        return found

    return examples_of


@pytest.fixture
def promised() -> None:
    """For a test in which validation is to try promises."""


@pytest.fixture
def few_promises(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation tries no promises, or where a test is `promised` some trials of each, a third of all its time. The
    slow run tries all of them, and so does tests/udcp_dsl/check/test_promises.py."""
    if slow_run(request.config) or request.path.name.endswith("promises.py"):
        return
    from udcp_dsl.check import promises

    monkeypatch.setattr(promises, "_TRIALS", promises._FEWEST)
    if "promised" not in request.fixturenames:
        monkeypatch.setattr(promises, "promises", lambda *asked: [])


@pytest.fixture
def every_classifier() -> None:
    """For a test in which validation is to try coverage with every kind of classifier."""


@pytest.fixture
def few_classifiers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation tries coverage with three kinds of classifiers, in a fifth of the time, but for `every_classifier` and
    in the slow run."""
    from udcp_dsl.check import coverage

    if not slow_run(request.config) and "every_classifier" not in request.fixturenames:
        monkeypatch.setattr(coverage, "TRIED", ("overconfident", "saturated", "tied"))


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


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
AXE = Path(__file__).parent.parent / "udcp_dsl/studio/page/node_modules/axe-core/axe.min.js"
SCHEMES = {"light": "1", "dark": "0"}  # of Chromium's --blink-settings=preferredColorScheme
_JUDGE = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  axe.run(document, { resultTypes: ["violations"] }).then((r) => {
    document.body.dataset.judged = JSON.stringify(r.violations.map(
      (v) => [v.impact, v.id, v.nodes.map((n) => n.target.join(" ")).slice(0, 4)]));
  });
});</script>"""


@pytest.fixture
def chromium(tmp_path: Path) -> Callable[..., str]:
    """Open a file in headless Chromium, which reaches no network; what it prints."""
    if BROWSER is None:
        pytest.skip("no browser: install Debian's package chromium, or Chrome")
    browser = BROWSER

    def run(file: Path, *flags: str) -> str:
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            "--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000",
            f"--user-data-dir={tmp_path / 'profile'}", *flags, file.as_uri(),
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return run


@pytest.fixture
def judged(chromium: Callable[..., str]) -> Callable[[str, Path], list[list[Any]]]:
    """What axe-core finds serious in the text of a page, light and dark; `file` is written to show it."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in udcp_dsl/studio/page")

    def judge(text: str, file: Path) -> list[list[Any]]:
        bare = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", text)
        script = AXE.read_text(encoding="utf-8").replace("</script", "<\\/script")
        file.write_text(bare.replace("</body>", f"<script>{script}</script>{_JUDGE}</body>"), encoding="utf-8")
        found = []
        for scheme in SCHEMES.values():
            flags = f"--blink-settings=preferredColorScheme={scheme}", "--virtual-time-budget=20000", "--dump-dom"
            (data,) = re.findall(r'data-judged="(.*?)"', chromium(file, *flags))
            found += [one for one in json.loads(unescape(data)) if one[0] in ("serious", "critical")]
        return found

    return judge
