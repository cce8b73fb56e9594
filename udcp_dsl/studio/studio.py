"""The studio itself: the state, three threads that compute its consequences, and the board that they write on.

The first thread compiles the text and costs the set: it is always quick, so that errors are shown as one types. The
second scores rows; between its steps it checks whether its work is still wanted, and updates the shown row if that has
changed. The third tries the cases beside the spec.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.loss import Loss
from udcp_dsl.measure.comparison import CostCurve
from udcp_dsl.studio.assist import Assistant, words
from udcp_dsl.studio.cases import cases_data
from udcp_dsl.studio.fitting import Fitted, curve, fit
from udcp_dsl.studio.instances import Instances, Supply, dragged, generated
from udcp_dsl.studio.spec_folder import SpecFolder
from udcp_dsl.studio.state import QUICK_ORACLES, State, changed
from udcp_dsl.studio.views.chosen_set import labels_data, set_data
from udcp_dsl.studio.views.overall import overall_data
from udcp_dsl.studio.views.row import row_data
from udcp_dsl.studio.views.spec import Checked, check, copied, same_meaning
from udcp_dsl.studio.work import Board, Worker, error_text

# Edits that follow each other within so many seconds are one: a slider passes many values on its way.
_ONE_EDIT = 1.5
_FEW = 6  # most labels in the set of the opening row


class Superseded(Exception):
    """The result that was being computed is no longer wanted."""


class Stopped(Exception):
    """The user has stopped the computation."""


class Studio:
    """One spec, its rows, and what is known about them."""

    def __init__(
        self, place: SpecFolder, text: str, supply: Supply = generated, *, alpha: Fraction = Fraction(1, 10)
    ) -> None:
        self.board = Board()
        self.assistant = Assistant()
        self._supply, self._supply_version = supply, 0
        self._lock = threading.RLock()
        self.writing = threading.Lock()  # held while files are written, so that two writers do not mix
        self.state = State(place, text, alpha=alpha, saved=text)
        # Used by the first thread.
        self._checked: tuple[object, Checked] | None = None
        self.loss: Loss | None = None  # of the last text that compiled
        self._set_of: object = None
        # Used by the second thread.
        self._instances: tuple[tuple[tuple[str, ...], int, tuple[Any, ...]], Instances] | None = None
        self._fits: dict[str, Fitted] = {}
        self._missing: dict[str, str] = {}
        self._curves: dict[str, CostCurve] = {}
        self._fitted_for: tuple[Loss, Fraction] | None = None  # the loss and alpha of the three above
        self._fit_before_edit: Fitted | None = None  # the main oracle's fit before the last edit
        self._edited = -float("inf")
        self._row_of: object = None
        self._opening: tuple[int, bool] | None = None  # the row it opens on, and whether the main oracle chose it
        self._members_chosen = False
        # The predictors whose sets are shown, and the probabilities of the shown row.
        self.shown_row: tuple[Mapping[str, Fitted], Any] | None = None
        self._stop = threading.Event()
        self._stopped: set[str] = set()
        self._checks = Worker("checks", self._check, self._on_error, self._on_idle)
        self._scores = Worker("scores", self._score, self._on_error, self._on_idle)
        self._cases = Worker("cases", self._try_cases, self._on_error, self._on_idle)
        self.board.put("words", words())
        self.board.put("state", self.state.as_data())
        self._begin_work(self._checks)

    def close(self) -> None:
        """End the threads; one that computes ends at its next step."""
        self._stop.set()
        for worker in (self._checks, self._scores, self._cases):
            worker.end()

    @property
    def idle(self) -> bool:
        return self._checks.idle and self._scores.idle and self._cases.idle

    # Requests of the page

    def change(self, change: object) -> None:
        """Apply a change; raises InputError if it is invalid."""
        if isinstance(change, dict) and "members" in change:
            self._members_chosen = True
        self._update_state(lambda state: changed(state, change))

    def open(self, place: SpecFolder, text: str) -> None:
        """Switch to another spec."""
        self._opening, self._members_chosen = None, False
        self._update_state(lambda state: State(place, text, alpha=state.alpha, oracles=state.oracles, saved=text))

    def saved_to(self, place: SpecFolder, text: str) -> None:
        """Record that this text was saved, perhaps in another place."""
        self._update_state(lambda state: replace(state, place=place, saved=text))

    def use_rows(self, supply: Supply) -> None:
        """Switch to other rows."""
        with self._lock:
            self._supply, self._supply_version = supply, self._supply_version + 1
        self._update_state(lambda state: replace(state, row=None, drags=()))

    def try_cases(self) -> None:
        """Try the cases beside the spec again, as they have changed."""
        self._begin_work(self._cases)

    def stop(self) -> None:
        """End all scoring, for the page at once; none starts again before a change or `again`.

        A step that is under way (mostly compiling) runs to its end, and its result is dropped.
        """
        with self._lock:
            if not self._scores.idle:
                self._stop.set()
            self._stopped = set(self.state.oracles) - set(self._fits) - set(self._missing)
        self.board.put("doing", None)
        if self._instances is not None:
            self._show_overall(self._instances[1])

    def again(self) -> None:
        """Start again what was stopped."""
        with self._lock:
            self._stopped.clear()
            self._stop = threading.Event()  # work that is still under way keeps the old event, which is set
        self._begin_work(self._scores)

    def _update_state(self, next_of: Callable[[State], State]) -> None:
        with self._lock:
            self.state = next_of(self.state)
            self.board.put("state", self.state.as_data())
            self._begin_work(self._checks, self._scores, self._cases)

    # The view "doing": set from the first request on, and None only when no thread has anything left to do

    def _begin_work(self, *workers: Worker) -> None:
        with self._lock:
            if self.board.get("doing") is None:
                self._doing("", "starting", 0, 0)
            for worker in workers:
                worker.poke()

    def _on_idle(self) -> None:
        with self._lock:
            if self._scores.idle:
                self._stop = threading.Event()  # a stop may have come after the end
            if self.idle:
                self.board.put_new("doing", None)

    # The first thread

    def _check(self) -> None:
        state = self.state
        key = (state.place, state.text, state.moved, state.loss)
        if self._checked is None or self._checked[0] != key:
            found = check(state.text, state.place, state.moved, state.loss)
            self._checked = (key, found)
            if found.loss is not None:
                before = self.loss
                # Comments and spaces change nothing that is computed.
                self.loss = before if before is not None and same_meaning(before, found.loss) else found.loss
                labels = labels_data(found.loss)
                if before is None or labels != self.board.get("labels"):
                    self.board.put("labels", labels)
                self._scores.poke()
                self._cases.poke()
            self.board.put("spec", found.data)
        if self._checked[1].loss is not None:
            made, sliders = self._checked[1].loss, self._checked[1].sliders
            moved = {slider.name: slider.value for slider in sliders if slider.value != slider.default}
            self.board.put_new("copied", copied(state, made.name, made.name != made.losses[-1], moved, self._main()))
        loss = self.loss
        of_row = (self.board.get("row") or {}).get("inputs")
        if loss is not None and self._set_of != (loss, state.members, state.inputs, of_row):
            self._set_of = (loss, state.members, state.inputs, of_row)
            self.board.put("set", set_data(loss, state.members, state.inputs, of_row))

    # The third thread, as a case may need an oracle

    def _try_cases(self) -> None:
        loss = self.loss
        if loss is not None:
            self.board.put_new("cases", cases_data(loss, self.state.place))

    # The second thread

    def _score(self) -> None:
        loss = self.loss
        if loss is None:
            return
        stop = self._stop
        try:
            self._fit_all(loss, stop)
        except Superseded:
            self._scores.poke()
        finally:
            with self._lock:
                if self._stop is stop:
                    self._stop = threading.Event()

    def _fit_all(self, loss: Loss, stop: threading.Event) -> None:
        state = self.state
        instances = self._rows_of(loss)
        alpha = state.alpha
        if self._fitted_for != (loss, alpha):
            self._begin(loss, alpha)
        quick = [name for name in QUICK_ORACLES if name in state.oracles]
        for name in dict.fromkeys((*quick, self._main(), *state.oracles)):
            if name in self._fits or name in self._missing or name in self._stopped:
                continue
            try:
                on_step = self._step_callback(loss, alpha, name, stop)
                on_step(0, 0, stage="compiling, the first time on this machine")
                found = fit(loss, name, alpha, instances, on_step)
                if name not in self._stopped:
                    self._fits[name] = found
            except (OracleError, InputError) as error:
                self._missing[name] = str(error)
            except Stopped:
                with self._lock:
                    if self._stop is stop:  # else it was started again
                        self._stopped.add(name)
            self._show(instances)
        self._show(instances)
        for name, one in self._current().items():
            if name in self._curves:
                continue
            try:
                on_step = partial(self._step_callback(loss, alpha, name, stop), stage="cost against coverage")
                self._curves[name] = curve(one, instances, on_step)
            except Stopped:
                if self._stop is stop:
                    self._curves[name] = CostCurve()
            except InputError:  # too few rows: the table says so
                self._curves[name] = CostCurve()
            self._show_overall(instances)

    def _rows_of(self, loss: Loss) -> Instances:
        with self._lock:
            supply, wanted = self._supply, (loss.labels, self._supply_version, tuple(loss.declared_inputs.items()))
        if self._instances is None or self._instances[0] != wanted:
            self._doing("rows", "making rows", 0, 0)
            self._instances = (wanted, supply(loss))
            self._fit_before_edit, self._fitted_for, self._opening = None, None, None
        return self._instances[1]

    def _begin(self, loss: Loss, alpha: Fraction) -> None:
        """Begin with another loss or level; earlier results are kept only for comparison."""
        if self._fitted_for is not None and self._fitted_for[0] is not loss:
            now = time.monotonic()
            main = self._current().get(self._main())
            if main is not None and now - self._edited > _ONE_EDIT:
                self._fit_before_edit = main
            self._edited = now
        elif self._fitted_for is not None:
            self._fit_before_edit = None  # another alpha: no edit of the spec
        self._fits, self._curves, self._missing = {}, {}, {}
        self._stopped = set()
        self._fitted_for = (loss, alpha)

    def _current(self) -> Mapping[str, Fitted]:
        return {name: self._fits[name] for name in self.state.oracles if name in self._fits}

    def _main(self) -> str:
        """The main oracle: `price`, or else the first."""
        order = self.state.oracles
        return "price" if "price" in order else order[0]

    def _step_callback(self, loss: Loss, alpha: Fraction, name: str, stop: threading.Event) -> Callable[..., None]:
        def on_step(done: int, of: int, stage: str = "working") -> None:
            if self._instances is not None and self._instances[0][1] != self._supply_version:
                raise Superseded
            if self.loss is not loss or self.state.alpha != alpha or name not in self.state.oracles:
                raise Superseded
            if stop.is_set():
                raise Stopped
            self._doing(name, stage, done, of)
            self._show_row()

        return on_step

    def _show(self, instances: Instances) -> None:
        self._show_overall(instances)
        self._show_row()

    def _show_overall(self, instances: Instances) -> None:
        found = self._current()
        if found:
            main = self._main()
            stopped = dict.fromkeys(self._stopped, "stopped: ask for it again, or change something")
            missing = {name: why for name, why in {**self._missing, **stopped}.items() if name in self.state.oracles}
            self.board.put(
                "overall", overall_data(found, self._curves, instances, missing, self._fit_before_edit, main)
            )

    def _show_row(self) -> None:
        found = self._current()
        if not found or self._instances is None:
            return
        state, instances = self.state, self._instances[1]
        row = self._opening_row(found, instances) if state.row is None else min(state.row, len(instances.shown) - 1)
        key = (tuple(found.values()), row, state.drags, state.why)
        if key == self._row_of:
            return
        self._row_of = key
        p = instances.shown.P[row].astype("float64")
        for label, value in state.drags:
            if label < len(p):
                p = dragged(p, label, value)
        self.shown_row = (found, p)
        self.board.put("row", row_data(found, instances, row, p, state.why, bool(state.drags)))
        self._checks.poke()  # the set is costed with the inputs of the row

    def _opening_row(self, found: Mapping[str, Fitted], instances: Instances) -> int:
        """The row to open on: chosen once the main oracle is fitted, and kept while alpha or a parameter changes."""
        main = found.get(self._main())
        if self._opening is None or (main is not None and not self._opening[1]):
            if main is None:
                self._opening = (_instructive_row(next(iter(found.values())), None, instances), False)
            else:
                rival = next((found[name] for name in QUICK_ORACLES if name in found), None)
                self._opening = (_instructive_row(main, rival, instances), True)
                if not self._members_chosen:
                    self._members_chosen = True
                    members = main.evaluation.sets.labels[self._opening[0]]
                    self._update_state(lambda state: replace(state, members=tuple(members)))
        return self._opening[0]

    def _doing(self, name: str, what: str, done: int, of: int) -> None:
        self.board.put("doing", {"oracle": name, "what": what, "done": done, "of": of})

    def _on_error(self, error: BaseException) -> None:
        self.board.put("fault", f"the studio has a fault, please report it: {error_text(error)}")


def _instructive_row(fitted: Fitted, rival: Fitted | None, instances: Instances) -> int:
    """The row to open on: its set holds the truth, has a few labels, and saves most against the rival's.

    The rival's set also holds the truth. If no such row saves anything, the first row whose set has a few labels and
    holds the truth; if there is none, the first row.
    """
    sets, truth = fitted.evaluation.sets, instances.shown.truth
    rows = np.arange(len(truth))
    good = sets.mask[rows, truth] & (sets.sizes >= 2) & (sets.sizes <= _FEW)
    saved = np.zeros(len(truth))
    if rival is not None:
        theirs = rival.evaluation.sets
        few = theirs.mask[rows, truth] & (theirs.sizes <= 2 * _FEW)
        saved = np.where(few, theirs.costs - sets.costs, 0.0)
    ranked = np.where(good, 1.0 + np.maximum(saved, 0.0), 0.0)
    return int(np.argmax(ranked))
