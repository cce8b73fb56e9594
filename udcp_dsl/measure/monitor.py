"""`Monitor`: tests, row by row or in batches, whether new rows are still like the calibration rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl import __version__
from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.expression.given import one_row
from udcp_dsl.files import PathLike, atomic_write
from udcp_dsl.measure.betting import Bools, Floats, Ints
from udcp_dsl.measure.monitored import NOT_OURS, Alarm, Ranks, Stream, Watch, WatchedRows, known
from udcp_dsl.predict.calibrate import Level, exact_level, show_level
from udcp_dsl.predict.chain import codes_of
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.rows.rows import Rows
from udcp_dsl.showing import Column, Description, Result, Table

if TYPE_CHECKING:
    from udcp_dsl.predict.chain import Fitted

FORMAT, FORMAT_VERSION = "udcp_dsl monitor", 1

_WATCHED = ("both", "misses", "ranks")
_SHOWN = 10  # streams that are shown, besides that of all rows
_COLUMNS = (
    Column("rows", lambda stream: "all" if stream.name is None else stream.name),
    Column("seen", "seen", ",d"),
    Column("missed", "missed", ",d"),
    Column("expected", lambda stream: known(stream.expected), ".1f"),
    Column("coverage", "coverage", ".4f"),
    Column("most evidence", "most", ".3g"),
    Column("alarm above", lambda stream: 1 / stream.level, ".4g"),
    Column("alarm at", lambda stream: stream.alarm and f"row {stream.alarm.row:,}", kind="number"),
)


class Monitor(Result):
    """Watch whether new rows are still like the calibration rows, on which every guarantee rests.

    If they are, the probability that it *ever* raises an alarm is at most `level`, however long it runs and however
    often you look (an anytime-valid test). It bets against two assumptions: that truths are missed no more often than
    expected, and that scores of true labels rank as they did in calibration. The second also finds shifts that do not
    hurt coverage. If the predictor has groups, classes or bins, half of the level goes to all rows and half to the
    parts, so that an alarm says where. It continues after an alarm; the first alarm of each stream counts.

    Parameters
    ----------
    predictor : SetPredictor
        A calibrated predictor. Predictors that were calibrated with weights, or saved before version 0.2, are refused.
    level : float, default 0.05
        Largest probability of a false alarm.
    alpha : float, optional
        Which alpha to watch, if several were calibrated.
    watch : {"both", "misses", "ranks"}, default "both"
        What to watch.
    seed : int, default 0
        Random seed for breaking ties.

    Examples
    --------
    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  loss l = size")
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], 1200)
    >>> y = np.array([rng.choice(3, p=p) for p in probs])
    >>> predictor = udcp.SetPredictor(loss, "lac").calibrate(probs[:600], y[:600])
    >>> monitor = udcp.Monitor(predictor)
    >>> monitor.update(probs[600:], y[600:])  # rows like those of calibration
    ()
    >>> wrong = monitor.update(probs[600:], (y[600:] + 1) % 3)
    >>> wrong[0].row, wrong[0].why
    (624, 'ranks')
    """

    def __init__(
        self,
        predictor: SetPredictor,
        *,
        level: Level = 0.05,
        alpha: Level | None = None,
        watch: Watch = "both",
        seed: int = 0,
    ) -> None:
        if not isinstance(predictor, SetPredictor):
            raise TypeError(f"predictor is a {type(predictor).__name__}, not a SetPredictor")
        if watch not in _WATCHED:
            raise InputError(f"watch is {watch!r}: choose {', '.join(map(repr, _WATCHED))}")
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed is {seed!r}: give a whole number, 0 or more")
        fitted = predictor.at(alpha)
        calibration = fitted.thresholds.calibration
        if calibration.weighted:
            raise InputError(
                "calibrated with weights, so new rows are meant to differ from the calibration rows, and the monitor "
                "cannot test them: calibrate without weights"
            )
        if calibration.label_weights is not None:
            raise InputError(
                "adapted to a new mix of labels, so new rows are meant to differ from the calibration rows: monitor "
                "the original predictor"
            )
        if fitted.thresholds.scores is None:
            raise InputError(
                "the predictor was saved by a version before 0.2.0, which kept no calibration scores: "
                "calibrate and save again"
            )
        self.predictor = predictor
        self.alpha = fitted.alpha
        self.level = float(exact_level(level, "level"))
        self.watch: Watch = watch
        self.seed = int(seed)
        self.rows = 0
        self.untested = 0  # rows of groups without calibration rows
        self._cells = [
            Ranks.among(counts, fitted.thresholds.rank(cell), np.random.default_rng((self.seed, 1, cell)))
            for cell, counts in enumerate(fitted.thresholds.scores)
        ]
        if watch == "misses" and all(ranks.first_miss_gap is None for ranks in self._cells):
            raise InputError(
                "the thresholds of this predictor are not ranks (harm is bounded, or all sets are full), so "
                'ranks say nothing about misses: give watch="ranks" or "both"'
            )
        names = [predictor.loss.labels[x] if isinstance(x, int) else x for x in calibration.strata.shown]
        parts = names if len(names) > 1 else []
        share = self.level / 2 if parts else self.level
        self._streams = [Stream(None, share, watch), *(Stream(name, share / len(parts), watch) for name in parts)]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All rows and, if there are several groups, classes or bins, each of them."""
        return tuple(self._streams)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The first alarm of every stream that has raised one, in the order of rows."""
        found = [stream.alarm for stream in self._streams if stream.alarm is not None]
        return tuple(sorted(found, key=lambda alarm: alarm.row))

    def update(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        class_names: Sequence[object] | None = None,
    ) -> tuple[Alarm, ...]:
        """Take one or more rows with their true labels, in the order in which they came.

        One batch or many give the same result.

        Parameters
        ----------
        probs : array, tensor, frame or nested lists, shape (n, K) or (K,)
            Probabilities.
        y : sequence or label
            True labels.
        groups, inputs, ids, ignore, class_names
            As for `evaluate`.

        Returns
        -------
        tuple of Alarm
            Alarms that are new.

        Raises
        ------
        InputError
            The data are invalid. The message names the row.
        """
        read = self._read(probs, y, groups, ids, inputs, ignore=ignore, class_names=class_names)
        new = [alarm for rows in read.blocks() for alarm in self._update(rows)]
        return tuple(sorted(new, key=lambda alarm: alarm.row))

    def _update(self, rows: Rows) -> list[Alarm]:
        if len(rows) == 0:
            return []
        watched, cells = self._watched_rows(rows)
        had = [stream.alarm is not None for stream in self._streams]
        streams = [self._streams[0].after(watched)]
        if len(self._streams) > 1:
            order = np.argsort(cells, kind="stable")
            ends = np.searchsorted(cells[order], np.arange(len(self._streams)))
            for i, stream in enumerate(self._streams[1:]):
                own = order[ends[i] : ends[i + 1]]
                streams.append(stream.after(watched.take(own)) if len(own) else stream)
        first = self.rows
        self.rows += len(rows)
        for i, stream in enumerate(streams):
            if stream.alarm is not None and not had[i] and rows.ids is not None:
                named = replace(stream.alarm, id=str(rows.ids[stream.alarm.row - first - 1]))
                streams[i] = replace(stream, alarm=named)
        self._streams = streams
        return [stream.alarm for stream, before in zip(streams, had, strict=True) if stream.alarm and not before]

    def _read(self, probs: Any, y: Any, groups: Any, ids: Any, inputs: Any, **columns: Any) -> Rows:
        predictor = self.predictor
        if getattr(probs, "ndim", None) == 1:
            probs, y = probs[None, :], y if y is None or np.ndim(y) else [y]
            groups, ids = (x if x is None or np.ndim(x) else [x] for x in (groups, ids))
            inputs = inputs if inputs is None else one_row(predictor.inputs, inputs)
        if getattr(probs, "shape", (1,))[:1] == (0,):  # without rows, only the columns are checked
            y = groups = ids = None
        rows = predictor.rows(probs, y, groups=groups, inputs=inputs, ids=ids, **columns, empty=True)
        if len(rows) and predictor.promise.by_group and rows.groups is None:
            raise InputError(
                "calibrated by group, so the monitor needs the group of each row: give " + worded("groups=", "--group")
            )
        if len(rows) and rows.y is None:
            raise InputError("the monitor needs the true label of each row: give y")
        return rows

    def _watched_rows(self, rows: Rows) -> tuple[WatchedRows, Ints]:
        """The rows of known cells with their p-values and misses, and their cells. Updates the ranks of these cells."""
        fitted = self.predictor.at(self.alpha)
        prepared = fitted.prepare(rows)
        codes = codes_of(fitted.context, prepared)
        cells = np.zeros(len(rows), dtype=np.intp) if codes is None else codes
        scores, missed = self._scores(fitted, rows, prepared)
        bits = np.random.PCG64((self.seed, 0))
        bits.advance(2 * self.rows)  # each row has its own draws, whatever the batches
        draws = np.random.Generator(bits).random((len(rows), 2))
        p, chance, above_threshold = np.empty(len(rows)), np.empty(len(rows)), np.zeros(len(rows), dtype=bool)
        known = cells >= 0
        for cell in np.unique(cells[known]).tolist():
            own, ranks = np.flatnonzero(cells == cell), self._cells[cell]
            gaps = ranks.places(scores[own], draws[own, 0])
            self._cells[cell], p[own], above_threshold[own], chance[own] = ranks.after(gaps, draws[own, 1])
        self.untested += int(np.count_nonzero(~known))
        watched = WatchedRows(self.rows + np.arange(1, len(rows) + 1), p, above_threshold, chance, missed)
        return watched.take(np.flatnonzero(known)), cells[known]

    def _scores(self, fitted: Fitted, rows: Rows, prepared: Rows) -> tuple[Floats, Bools]:
        """The scores of the true labels, and whether the sets miss them."""
        places, scores = np.arange(len(rows)), fitted.true_scores(prepared)
        if self.predictor.randomize:
            return scores, ~self.predictor.sets(rows, self.alpha)[places, rows.truth]
        tau = fitted.thresholds.tau(prepared)
        return scores, scores > np.broadcast_to(tau, rows.P.shape)[places, rows.truth]

    # Output

    def table(self) -> dict[str, list[Any]]:
        """The streams as columns, one row per stream.

        Returns
        -------
        dict of lists
            `alarm` is the row of the first alarm.
        """
        rows = [{**stream.as_dict(), "alarm": stream.alarm and stream.alarm.row} for stream in self._streams]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def __repr__(self) -> str:
        all_rows, alarms = self._streams[0], self.alarms
        found = f"alarm at row {alarms[0].row:,}" if alarms else "no alarm"
        covered = "" if all_rows.coverage is None else f", coverage {all_rows.coverage:.4f}"
        return f"Monitor({self.rows:,} rows{covered}, level {self.level:g}: {found})"

    def describe(self) -> Description:
        """What is printed: all rows and each part; of many parts, those with the most evidence."""
        cells = sorted(self._streams[1:], key=lambda s: (s.alarm is None, -s.log_most))
        more, untested = len(cells) - _SHOWN, self.untested
        streams = Table(
            _COLUMNS if self.alarms else _COLUMNS[:-1],
            self._streams,
            note=f"and {more:,} more with less evidence" if more > 0 else "",
            key="streams",
            shown=[self._streams[0], *cells[:_SHOWN]],
        )
        unknown = f"{untested:,} rows of groups without calibration rows are not tested"
        loss, oracle = self.predictor.loss.name, self.predictor.oracle.name
        watched = f"{self.rows:,} rows watched at level {self.level:g}"
        return Description(
            title=f"{loss} by {oracle}, alpha {show_level(self.alpha)}: {watched}",
            tables=(streams,),
            notes=(unknown,) if untested else (),
            verdict=tuple(f"alarm: {alarm}" for alarm in self.alarms)
            or ("no alarm: no evidence that the rows differ from the calibration rows",),
            data={
                "loss": loss,
                "oracle": oracle,
                "alpha": float(self.alpha),
                **{name: getattr(self, name) for name in ("level", "watch", "rows", "untested", "alarms")},
            },
        )

    def plot(self) -> Any:
        """Draw evidence and coverage over time.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        from udcp_dsl.report.drawing import plot_monitor

        return plot_monitor(self)

    # Saving and loading

    def save(self, path: PathLike) -> None:
        """Save the state as a JSON file, from which `load` continues.

        Parameters
        ----------
        path : str or path
            The file.
        """
        content: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "version": __version__,
            "predictor": self._fingerprint(),
            "level": self.level,
            "alpha": str(self.alpha),
            "watch": self.watch,
            "seed": self.seed,
            "rows": self.rows,
            "untested": self.untested,
            "cells": [ranks.counts.tolist() for ranks in self._cells],
            "streams": [stream.state() for stream in self._streams],
        }
        content["sha256"] = _hash(content)
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(content) + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: PathLike, predictor: SetPredictor) -> Monitor:
        """Load a monitor that was saved.

        Parameters
        ----------
        path : str or path
            The file.
        predictor : SetPredictor
            The predictor that it watches.

        Returns
        -------
        Monitor
            It continues where the saved one stopped.

        Raises
        ------
        InputError
            The file was changed, or belongs to another predictor.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"there is no file {str(path)!r}") from None
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            raise InputError(f"{path}: {NOT_OURS}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("sha256") != _hash(content):
            raise InputError(f"{path}: {NOT_OURS}")
        if content.get("format_version") != FORMAT_VERSION:
            raise InputError(
                f"{path} is of format {content.get('format_version')}, saved by udcp_dsl {content.get('version')}; "
                f"this one ({__version__}) reads format {FORMAT_VERSION}"
            )
        try:
            return cls._restored(content, predictor)
        except (KeyError, TypeError, AttributeError, IndexError):
            raise InputError(f"{path}: {NOT_OURS}") from None
        except ValueError as error:
            raise InputError(f"{path} cannot be continued: {error}") from error

    @classmethod
    def _restored(cls, content: Mapping[str, Any], predictor: SetPredictor) -> Monitor:
        monitor = cls(
            predictor, level=content["level"], alpha=content["alpha"], watch=content["watch"], seed=content["seed"]
        )
        if content["predictor"] != monitor._fingerprint():
            raise InputError("it belongs to another predictor; start a new monitor")
        counts = [np.array(own, dtype=np.int64) for own in content["cells"]]
        fits = [own.shape for own in counts] == [ranks.counts.shape for ranks in monitor._cells]
        if not fits or len(content["streams"]) != len(monitor._streams):
            raise InputError(NOT_OURS)
        monitor._cells = [replace(ranks, counts=own) for ranks, own in zip(monitor._cells, counts, strict=True)]
        monitor._streams = [
            stream.restored(state) for stream, state in zip(monitor._streams, content["streams"], strict=True)
        ]
        monitor.rows, monitor.untested = int(content["rows"]), int(content["untested"])
        return monitor

    def _fingerprint(self) -> str:
        """A hash that identifies the predictor at this alpha: of labels, oracle, and the edges for ranks."""
        digest = hashlib.sha256(repr((self.predictor.loss.labels, self.predictor.oracle.name)).encode())
        for ranks in self._cells:
            digest.update(repr((ranks.first_miss_gap, ranks.counts.size)).encode())
            digest.update(np.ascontiguousarray(ranks.values, dtype="<f8").tobytes())
        return digest.hexdigest()


def _hash(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode("ascii")).hexdigest()
