"""The oracle protocol: what is checked before anything is scored, and how oracles are found."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
import udcp_dsl.predict.oracle
from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.predict.oracle import Oracle, as_thresholds, make_oracle, oracle_names
from udcp_dsl.rows.rows import rows_of

LOSS: Any = SimpleNamespace(labels=("a", "b", "c"), inputs={})
P = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


class Counting(Oracle):
    """A subclass with nothing but `_scores`: score = column + shift, except that ties are left where p is even."""

    name = "counting"

    def __init__(self, loss: Any, *, shift: float = 0.0, needed: int) -> None:
        super().__init__(loss, shift=shift, needed=needed)
        self.shift = shift

    def _scores(self, P: Any) -> Any:
        return np.where(P == 0.1, -1.0, np.arange(P.shape[1]) + self.shift)


class Stranger:
    """Not a subclass: minus p, times a factor."""

    def __init__(self, loss: Any, factor: float = 1.0) -> None:
        self.options = {"factor": factor}
        self.factor = factor

    def scores(self, P: Any) -> Any:
        return -P * self.factor

    def score_of(self, P: Any, y: Any) -> Any:
        return self.scores(P)[np.arange(len(P)), y]

    def sets(self, P: Any, tau: Any) -> Any:
        return self.scores(P) <= tau


class Broken(Stranger):
    def scores(self, P: Any) -> Any:
        return np.full(P.shape, np.nan)

    def score_of(self, P: Any, y: Any) -> Any:
        return [0.0]

    def sets(self, P: Any, tau: Any) -> Any:
        return np.ones(P.shape)


class Inept:
    def __init__(self, loss: Any) -> None:
        pass

    def scores(self, P: Any) -> Any:
        return P


def accepts_anything(loss: Any, **options: Any) -> Stranger:
    return Stranger(loss, factor=options.get("anything", 1.0))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of this test: good ones, one that fails on import, one name claimed twice."""
    module = ModuleType("strange_oracles")
    for thing in (Counting, Stranger, Broken, Inept, accepts_anything):
        setattr(module, thing.__name__, thing)
    monkeypatch.setitem(sys.modules, "strange_oracles", module)
    group = "udcp_dsl.oracles"
    entries = [
        EntryPoint("counting", "strange_oracles:Counting", group),
        EntryPoint("counting", "strange_oracles:Counting", group),
        EntryPoint("stranger", "strange_oracles:Stranger", group),
        EntryPoint("broken", "strange_oracles:Broken", group),
        EntryPoint("inept", "strange_oracles:Inept", group),
        EntryPoint("lax", "strange_oracles:accepts_anything", group),
        EntryPoint("absent", "no_such_module_anywhere:Oracle", group),
        EntryPoint("twice", "strange_oracles:Stranger", group),
        EntryPoint("twice", "strange_oracles:Broken", group),
    ]
    monkeypatch.setattr(udcp_dsl.predict.oracle, "_registered", lambda path: entries)


def test_our_oracles_are_found_like_a_strangers() -> None:
    assert {"base", "lac", "raps"} <= set(oracle_names())
    made = make_oracle("base", LOSS)
    assert (made.name, made.options, made.loss) == ("base", {"mass": "before"}, LOSS)


def install(folder: Path, name: str) -> None:
    """A package with one oracle of this name, as an installer leaves it in a folder."""
    info = folder / f"strange_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: strange-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[udcp_dsl.oracles]\n{name} = udcp_solvers.lac:Lac\n")
    importlib.invalidate_caches()


def test_packages_are_read_once_and_what_is_installed_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = []

    def counted(*, group: str) -> Any:
        readings.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(udcp_dsl.predict.oracle, "entry_points", counted)
    udcp_dsl.predict.oracle._registered.cache_clear()
    for _ in range(3):
        make_oracle("base", LOSS)
        assert "late" not in oracle_names()
    assert readings == ["udcp_dsl.oracles"]
    install(tmp_path / "first", "early")
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert "early" in oracle_names()
    install(tmp_path / "first", "late")  # into a folder that was read before
    assert make_oracle("late", LOSS).name == "lac"
    assert "late" in oracle_names()


def test_an_unknown_name_offers_the_nearest_and_lists_all() -> None:
    with pytest.raises(OracleError, match=r"there is no oracle 'bass': did you mean 'base'.*\(all: base, .*raps"):
        make_oracle("bass", LOSS)


@pytest.mark.usefixtures("registered")
def test_an_oracle_that_fails_to_import_hurts_only_itself() -> None:
    assert oracle_names() == ("absent", "broken", "counting", "inept", "lax", "stranger", "twice")
    assert make_oracle("counting", LOSS, needed=1).name == "counting"
    with pytest.raises(OracleError, match=r"'absent' \(no_such_module_anywhere:Oracle\) cannot be loaded: Module"):
        make_oracle("absent", LOSS)


@pytest.mark.usefixtures("registered")
def test_two_oracles_of_one_name_are_refused() -> None:
    with pytest.raises(OracleError, match="'twice' is claimed by strange_oracles:Broken and strange_oracles:Stranger"):
        make_oracle("twice", LOSS)


@pytest.mark.usefixtures("registered")
def test_options_are_checked_by_name() -> None:
    assert make_oracle("counting", LOSS, needed=2, shift=1.5).options == {"shift": 1.5, "needed": 2}
    with pytest.raises(OracleError, match=r"'counting' has no option 'shfit': did you mean 'shift'\? \(its options: "):
        make_oracle("counting", LOSS, needed=2, shfit=1)
    with pytest.raises(OracleError, match=r"'counting': missing a required argument: 'needed' \(its options"):
        make_oracle("counting", LOSS)
    with pytest.raises(OracleError, match=r"'inept' has no option 'shift'; it takes no options"):
        make_oracle("inept", LOSS, shift=1)


@pytest.mark.usefixtures("registered")
def test_a_strangers_class_is_adopted() -> None:
    made = make_oracle("stranger", LOSS, factor=2.0)
    assert (made.name, made.options) == ("stranger", {"factor": 2.0})
    assert (made.scores(P) == -2 * P).all()
    assert (made.score_of(P, [0, 2]) == [-1.0, -1.6]).all()
    assert (made.sets(P, -0.6) == [[True, True, False], [False, False, True]]).all()
    assert made.first(P).tolist() == [0, 2]
    assert (make_oracle("lax", LOSS, anything=3.0).scores(P) == -3 * P).all()


@pytest.mark.usefixtures("registered")
def test_what_a_stranger_answers_is_checked() -> None:
    made = make_oracle("broken", LOSS)
    with pytest.raises(OracleError, match="'broken': scores returned NaN"):
        made.scores(P)
    with pytest.raises(OracleError, match=r"'broken': score_of returned shape \(1,\), not \(2,\)"):
        made.score_of(P, [0, 1])
    with pytest.raises(OracleError, match=r"'broken': sets returned float64 \(2, 3\), not bool \(2, 3\)"):
        made.sets(P, 0.0)
    with pytest.raises(OracleError, match="'inept' has no method score_of and no method sets"):
        make_oracle("inept", LOSS)


def test_the_defaults_follow_from_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udcp_dsl.predict.oracle, "_BLOCK", 5)  # rows one at a time
    counting = Counting(LOSS, needed=0)
    assert counting.score_of(P, [2, 1]).tolist() == [2.0, -1.0]
    assert counting.sets(P, 0.0).tolist() == [[True, False, False], [True, True, False]]
    assert counting.sets(P, [[-1.0], [5.0]]).tolist() == [[False] * 3, [True] * 3]
    assert counting.sets(P, [[-1.0, 5.0, 2.0]]).tolist() == [[False, True, True], [True, True, True]]
    assert counting.first(P).tolist() == [0, 0]


def test_first_prefers_higher_p_then_lower_index_among_ties() -> None:
    class Flat(Counting):
        def _scores(self, P: Any) -> Any:
            return np.zeros(P.shape)

    assert Flat(LOSS, needed=0).first([[0.2, 0.4, 0.4], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 0.5, 0.0], r"shape \(n, 3\), one column per label, not \(3,\)"),
        ([[0.5, 0.5]], r"shape \(n, 3\), one column per label, not \(1, 2\)"),
        ([[0.5, 0.5], [1.0]], "probabilities must be an array of numbers"),
        ([["a", "b", "c"]], "probabilities must contain numbers, not <U1"),
        ([[0.5, 0.5, 0.0], [0.2, np.nan, 0.8]], "row 1, column 1: nan is not a probability"),
        ([[0.5, 0.6, -0.1]], "row 0, column 2: -0.1 is not a probability"),
        ([[0.5, np.inf, 0.1]], "row 0, column 1: inf is not a probability"),
        ([[3.0, 1.0, 2.0]], "row 0, column 0: 3.0 is not a probability"),
    ],
)
def test_what_cannot_be_probabilities_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_oracle("base", LOSS).scores(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0], r"shape \(2,\), one label index per row, not \(1,\)"),
        ([0, 3], "row 1: y is 3, but label indices run from 0 to 2"),
        ([-1, 0], "row 0: y is -1, but label indices run from 0 to 2"),
        ([0.0, 1.0], "label indices .integers., not float64"),
        ([True, False], "label indices .integers., not bool"),
        (["a", "b"], "y must contain numbers"),
    ],
)
def test_what_cannot_be_labels_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_oracle("base", LOSS).score_of(P, given)


def test_any_layout_and_width_is_taken() -> None:
    base = make_oracle("base", LOSS)
    expected = base.scores(P)
    strided = np.repeat(P, 2, axis=1)[:, ::2]
    for same in (P.tolist(), np.asfortranarray(P), P.astype(">f8"), P.astype(np.longdouble), strided):
        assert (base.scores(same) == expected).all()
    half = P.astype(np.float16)
    assert (base.scores(half) == base.scores(half.astype(np.float64))).all()
    assert (base.scores([[1, 0, 0]]) == [[-1, 2e-300, 3e-300]]).all()
    assert base.scores(np.empty((0, 3))).shape == (0, 3)
    assert base.score_of(np.empty((0, 3)), []).shape == (0,)
    assert base.sets(np.empty((0, 3)), 0.0).shape == (0, 3)


def test_thresholds() -> None:
    assert as_thresholds(0.5, 2, 3).tolist() == [[0.5], [0.5]]
    assert as_thresholds([1, 2], 2, 3).tolist() == [[1.0], [2.0]]
    assert as_thresholds([[1], [2]], 2, 3).tolist() == [[1.0], [2.0]]
    assert as_thresholds([1, 2, 3], 2, 3).tolist() == [[1.0, 2.0, 3.0]]
    assert as_thresholds([[1, 2, 3]], 2, 3).tolist() == [[1.0, 2.0, 3.0]]
    assert as_thresholds([[1], [2]], 2, 2).tolist() == [[1.0], [2.0]]
    assert as_thresholds([[1, 2]], 2, 2).tolist() == [[1.0, 2.0]]
    assert as_thresholds([[7]], 2, 3).tolist() == [[7.0], [7.0]]
    assert as_thresholds([7], 1, 1).tolist() == [[7.0]]
    with pytest.raises(InputError, match=r"\(2,\) could be by row or by class: give \(2, 1\) or \(1, 2\)"):
        as_thresholds([1, 2], 2, 2)
    with pytest.raises(InputError, match=r"a number, or have shape \(2, 1\) or \(1, 3\), not \(4,\)"):
        as_thresholds([1, 2, 3, 4], 2, 3)
    with pytest.raises(InputError, match="tau is NaN"):
        as_thresholds(np.nan, 2, 3)


def test_no_compiler_is_imported_before_something_is_scored() -> None:
    code = (
        "import sys, udcp_dsl, udcp_dsl.predict.oracle; "
        "print([m for m in ('numba', 'scipy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rows_for_another_number_of_labels_are_refused() -> None:
    oracle = make_oracle("lac", udcp.loads("labels {a, b, c} loss l = size"))
    with pytest.raises(InputError, match="the rows have probabilities of 2 labels, but the loss has 3"):
        oracle.scores(rows_of([[0.5, 0.5]], ["a", "b"]))
