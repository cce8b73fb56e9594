"""What is asked of a predictor, checked once: which promises, and which of them exclude each other, with the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate import Conditional, Level, Rule, exact_level, levels_of, show_level
from udcp_dsl.prediction.calibrate.calibration import MODES
from udcp_dsl.prediction.calibrate.difficulty import as_bins
from udcp_dsl.prediction.containers import flag
from udcp_dsl.prediction.promises.harm import Harm

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

Temperature: TypeAlias = Literal["fit"] | float | None

DEFAULT_BINS = 4


@dataclass(frozen=True, eq=False)
class Promises:
    """Made by `promised`. `bins` count by difficulty alone; `confidence` is as asked, before it is shared out."""

    alphas: tuple[Fraction, ...]
    conditional: Conditional
    bins: int
    confidence: Fraction | None
    simultaneous: bool
    harm: Harm | None
    temperature: Temperature
    nonempty: bool
    randomize: bool
    pool: bool

    def rule(self, cells: int) -> Rule:
        """What the threshold of each of so many cells keeps."""
        confidence = self.confidence
        if confidence is not None and self.simultaneous:
            confidence = 1 - (1 - confidence) / cells
        return Rule(confidence, None if self.harm is None else self.harm.most)

    def told(self, alpha: Fraction) -> str:
        """What is kept at one alpha, as a clause."""
        if self.harm is not None:
            text = f"keeps the mean of {self.harm.name!r} over missed truths at most {show_level(alpha)}"
        else:
            text = f"covers the truth with probability {'' if self.randomize else 'at least '}{float(1 - alpha):.10g}"
        within = {"group": ", within each group", "class": ", within each class", None: ""}
        text += within.get(self.conditional, f", within each of {self.bins} bins by difficulty")
        if self.confidence is None:
            return text
        of = ", in all at once" if self.simultaneous else ", in each by itself" if self.conditional else ""
        return f"{text}, with confidence {float(self.confidence):.10g} over the draw of the calibration rows{of}"


def promised(
    loss: Loss,
    *,
    alpha: Level | Sequence[Level] | None,
    confidence_level: Level | None,
    conditional: Conditional,
    bins: int | None,
    confidence: Level | None,
    simultaneous: bool,
    risk: str | None,
    temperature: Temperature,
    nonempty: bool,
    randomize: bool,
    pool: bool,
) -> Promises:
    """The promises of a predictor; refuses what is no value of its option, and what cannot be promised together."""
    nonempty, randomize, pool = flag(nonempty, "nonempty"), flag(randomize, "randomize"), flag(pool, "pool")
    simultaneous = flag(simultaneous, "simultaneous")
    if conditional not in MODES:
        raise InputError(f'conditional is {conditional!r}: choose None, "group", "class" or "difficulty"')
    if bins is not None and conditional != "difficulty":
        raise InputError(f'bins= goes with conditional="difficulty", and only with it (it is {conditional!r})')
    if randomize and nonempty:
        raise InputError("randomize and nonempty exclude each other: a set that is never empty covers more")
    if pool and conditional not in ("group", "class"):
        raise InputError(
            'pool=True goes with conditional="group" or "class"'
            + (": bins by difficulty are of one size, so take fewer of them" if conditional else "")
        )
    sure = None if confidence is None else exact_level(confidence, "confidence")
    if sure is None and simultaneous:
        raise InputError("simultaneous=True goes with confidence: it is the confidence that is shared")
    if simultaneous and conditional is None:
        raise InputError("simultaneous=True goes with conditional: without it there is one threshold")
    if sure is not None and randomize:
        raise InputError(
            "confidence and randomize exclude each other: a random threshold is no rank, and has no Beta law"
        )
    harm = None if risk is None else Harm.of(loss, risk)
    if harm is not None:
        _refuse_with_risk(confidence_level, alpha, conditional, sure, randomize)
    return Promises(
        alphas=levels_of(alpha, confidence_level, below=Fraction(1) if harm is None else harm.most),
        conditional=conditional,
        bins=DEFAULT_BINS if bins is None else as_bins(bins),
        confidence=sure,
        simultaneous=simultaneous,
        harm=harm,
        temperature=as_temperature(temperature),
        nonempty=nonempty,
        randomize=randomize,
        pool=pool,
    )


def _refuse_with_risk(
    confidence_level: Level | None, alpha: object, conditional: Conditional, sure: Fraction | None, randomize: bool
) -> None:
    if confidence_level is not None or alpha is None:
        raise InputError("risk needs alpha, the mean harm to stay below, in the units of the harm: give alpha=")
    if conditional == "class":
        raise InputError(
            'risk and conditional="class" exclude each other: within a class every miss does the same harm, so that '
            'it is the coverage of the class that counts: leave out risk, or take conditional="group" or "difficulty"'
        )
    if sure is not None:
        raise InputError("risk and confidence exclude each other: the law of a mean harm over draws is not known")
    if randomize:
        raise InputError("risk and randomize exclude each other: a bound on harm has no exact randomised form here")


def as_temperature(temperature: Temperature) -> Temperature:
    """None, "fit" or a finite number above 0."""
    if temperature is None or temperature == "fit":
        return temperature
    number = isinstance(temperature, int | float | np.floating) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < math.inf:
        raise InputError(f'temperature is {temperature!r}: give "fit", or a finite number above 0 (1 changes nothing)')
    return float(temperature)


def refuse_weights(promises: Promises) -> None:
    """Refuse weights of rows where they cannot be combined with what is promised."""
    if promises.randomize:
        raise InputError("weights and randomize exclude each other: the randomised rank counts points, not weights")
    if promises.confidence is not None:
        raise InputError(
            "weights and confidence exclude each other: the coverage of one calibration under weights has no Beta law"
        )
