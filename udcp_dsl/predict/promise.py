"""`Promise`: all guarantees that a predictor gives, in one frozen object. Each field declares one option.

To add an option, add its field here and its keyword to the signatures of `SetPredictor` and `UtilitySetClassifier`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import Field, InitVar, dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from udcp_dsl.deprecation import deprecated
from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.predict.calibrate import Conditional, Level, Rule, exact_level, levels_of, show_level
from udcp_dsl.predict.calibrate.strata import Cellwise, as_bins
from udcp_dsl.predict.harm import Harm
from udcp_dsl.predict.repair import Repair
from udcp_dsl.rows.columns import flag

if TYPE_CHECKING:
    from udcp_dsl.expression.given import RowInputs
    from udcp_dsl.loss import Loss

# An option of a promise, declared once: meaning, values, saved form, and the options that it excludes.
#
# The check in Python, the command-line option, the row of the reference table and the saved field all come from this
# declaration.


@dataclass(frozen=True)
class Option:
    """One option. `check` takes the option's value and name, and returns the value in canonical form or refuses it.

    On the command line, an option is a flag if its default is False, else one of its `choices`, else a text that
    `parse` reads; a `repeated` option may be given several times. A `compared` option is available in comparisons; an
    `alias` is a deprecated name of another option, and is not saved. `narrowed_help` replaces `help` in a command that
    allows only some of the choices.
    `refuse` returns the text of an error if the option cannot be combined with the rest of the promise, else None.
    `to_json` gives the saved form, which `check` reads back.
    """

    help: str
    values: str
    check: Callable[[Any, str], Any]
    default: Any = None
    choices: tuple[str, ...] = ()
    narrowed_help: str = ""
    parse: Callable[[str, str], Any] = lambda text, name: text
    metavar: str | None = None
    repeated: bool = False
    compared: bool = False
    alias: bool = False
    refuse: Callable[[Any], str | None] = lambda promise: None
    to_json: Callable[[Any], Any] = lambda value: value


def option(declared: Option) -> Any:
    """The field of a dataclass that holds an option."""
    return field(default=declared.default, metadata={"option": declared})


def options_of(promise: Any) -> dict[str, Option]:
    """The options of a promise, or of its class, by name."""
    return {own.name: own.metadata["option"] for own in fields(promise) if _declared(own)}


def _declared(own: Field[Any]) -> bool:
    return "option" in own.metadata


def as_flag(value: Any, name: str) -> bool:
    """True or False."""
    return flag(value, name)


def one_of(*choices: str) -> Callable[[Any, str], Any]:
    """A check: None, or one of the choices."""

    def check(value: Any, name: str) -> Any:
        if value is not None and value not in choices:
            named = ", ".join(f'"{choice}"' for choice in choices[:-1])
            raise InputError(f'{name} is {value!r}: choose None, {named} or "{choices[-1]}"')
        return value

    return check


def as_whole_number(value: Any, name: str) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name} is {value!r}: give a whole number, 0 or more")
    return int(value)


def read_whole_number(text: str, name: str) -> int:
    """A whole number, 0 or more, from the command line."""
    try:
        return as_whole_number(int(text), f"--{name}")
    except ValueError:
        raise InputError(f"--{name} is {text!r}: give a whole number, 0 or more") from None


def reference_table(options: Mapping[str, Option]) -> str:
    """The options as a Markdown table, for the reference manual."""
    lines = ["| option | values | default | meaning |", "|---|---|---|---|"]
    for name, own in options.items():
        lines.append(f"| `{name}` | {own.values} | `{own.default!r}` | {own.help} |")
    return "\n".join(lines) + "\n"


Temperature: TypeAlias = Literal["fit"] | float | None

DEFAULT_BINS = 4
# The largest alpha that `miss` may find: beyond it, abstaining is cheaper.
LARGEST_FOUND = Fraction(1, 2)


def _as_bins(value: object, name: str) -> int | None:
    return None if value is None else as_bins(value)


def _as_confidence(value: Any, name: str) -> Fraction | None:
    return None if value is None else exact_level(value, name)


def _as_costs_name(value: Any, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} is {value!r}: give the name of costs that the spec declares")
    return value


def _as_worth(value: Any, name: str) -> float | None:
    if value is None:
        return None
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 < value <= sys.float_info.max:
        raise InputError(f"{name} is {value!r}: give the worth of a miss in the unit of the loss, a number above 0")
    return float(value)


def _read_worth(text: str, name: str) -> float | None:
    try:
        return _as_worth(float(text), f"--{name}")
    except ValueError:
        raise InputError(f"--{name} is {text!r}: give the worth of a miss, a number above 0") from None


def _as_repair(value: Any, name: str) -> Literal["auto", "temperature"] | Repair | None:
    if value is None or isinstance(value, Repair) or value in ("auto", "temperature"):
        return value  # type: ignore[no-any-return]  # one of these
    if isinstance(value, Mapping):  # from a file
        return Repair.from_dict(value)
    raise InputError(f'{name} is {value!r}: give "auto", "temperature", None, or a Repair that was made before')


def _read_repair(text: str, name: str) -> str | None:
    if text not in ("auto", "temperature", "none"):
        raise InputError(f"--{name} is {text!r}: give auto, temperature or none")
    return None if text == "none" else text


def as_temperature(value: Any, name: str) -> Temperature:
    """None, "fit" or a finite number above 0."""
    if value is None or value == "fit":
        return value  # type: ignore[no-any-return]  # one of the two
    number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    if not number or not 0 < value <= sys.float_info.max:
        raise InputError(f'{name} is {value!r}: give "fit", or a finite number above 0 (1 changes nothing)')
    return float(value)


def _read_temperature(text: str, name: str) -> Temperature:
    if text == "fit":
        return "fit"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--{name} is {text!r}: give fit, or a number above 0") from None


@dataclass(frozen=True, kw_only=True)
class Promise(Cellwise):
    """What a predictor guarantees and for which rows, as one value.

    Invalid options, and options that exclude each other, raise an error with the reason.

    Parameters
    ----------
    alpha : float or sequence of float, default 0.1
        Share of true labels that sets may miss. With `risk`, the largest mean harm. Kept as a tuple of fractions.
    miss : float, optional
        Cost of a missed true label, in the unit of the loss. Replaces alpha, which is then chosen for you.
    conditional : {"group", "class", "difficulty", "decision"}, optional
        Guarantee coverage in each group, class, bin by difficulty or decision instead of over all rows.
    bins : int, default 4
        Number of bins for `conditional="difficulty"`.
    confidence : float, optional
        Probability, over the draw of the calibration rows, that this predictor covers at least 1 - alpha.
    simultaneous : bool, default False
        Apply `confidence` to all groups, classes or bins jointly.
    risk : str, optional
        Name of costs in the spec: the harm of missing a label. Alpha then bounds its mean.
    repair : {"auto", "temperature"}, Repair or None, default "auto"
        Correction of the probabilities before anything else.
    temperature : float or "fit", optional
        Deprecated; use `repair`.
    nonempty : bool, default False
        Never return an empty set.
    randomize : bool, default False
        Cover exactly 1 - alpha by randomising labels at the threshold.
    pool : bool, default False
        Groups or classes with too few rows use the threshold of all rows.
    seed : int, default 0
        Random seed for the folds and for `randomize`.
    confidence_level : float, optional
        The same as `alpha=1 - confidence_level`.

    Raises
    ------
    InputError
        An option is invalid, or two options exclude each other.

    Examples
    --------
    >>> Promise(alpha=0.1, conditional="group").guarantee(Fraction(1, 10))
    'covers the true label with probability at least 0.9, within each group'
    """

    alpha: Any = option(
        Option(
            "Largest share of true labels to miss (default 0.1); with --risk, the largest mean harm; may be repeated.",
            "a level between 0 and 1, or several; with `risk` a mean harm",
            compared=True,
            check=lambda value, name: value,  # checked together with other options, in __post_init__
            metavar="LEVEL",
            repeated=True,
            to_json=lambda alphas: [str(alpha) for alpha in alphas],
        )
    )
    miss: float | None = option(
        Option(
            "Cost of a missed true label, in the unit of the loss. Replaces --alpha, which is then chosen for you.",
            "a number above 0, or None",
            compared=True,
            check=_as_worth,
            parse=_read_worth,
            metavar="WORTH",
            refuse=lambda p: None if p.miss is None else _refused_with_miss(p),
        )
    )
    conditional: Conditional = option(
        Option(
            "Guarantee coverage in each group (implied by --group), class, bin by difficulty (--bins), or decision.",
            '"group", "class", "difficulty", "decision" or None',
            compared=True,
            check=one_of("group", "class", "difficulty", "decision"),
            choices=("group", "class", "difficulty", "decision"),
            narrowed_help="Add a second table, with coverage guaranteed in each bin by difficulty or each decision.",
            refuse=lambda p: None if p.conditional != "decision" else _refused_with_decision(p),
        )
    )
    bins: int | None = option(
        Option(
            f"Number of bins by difficulty (measured by a row's highest probability; default {DEFAULT_BINS}).",
            "a whole number, 2 or more",
            compared=True,
            check=_as_bins,
            parse=read_whole_number,
            metavar="NUMBER",
            refuse=lambda p: (
                worded('bins= needs conditional="difficulty"', "--bins needs --conditional difficulty")
                if p.bins is not None and not p.by_difficulty
                else None
            ),
        )
    )
    confidence: Any = option(
        Option(
            "Required probability that this predictor covers at least 1 - alpha "
            "(default: coverage holds only on average over calibrations).",
            "a level between 0 and 1, or None",
            compared=True,
            check=_as_confidence,
            metavar="LEVEL",
            to_json=lambda level: None if level is None else str(level),
            refuse=lambda p: (
                "confidence and randomize exclude each other: a random threshold has no Beta distribution of coverage"
                if p.confidence is not None and p.randomize
                else None
            ),
        )
    )
    simultaneous: bool = option(
        Option(
            "Apply --confidence to all groups, classes or bins jointly.",
            "True or False",
            check=as_flag,
            default=False,
            refuse=lambda p: (
                None
                if not p.simultaneous
                else worded("simultaneous=True needs confidence", "--simultaneous needs --confidence")
                + ", which it shares among the parts"
                if p.confidence is None
                else worded("simultaneous=True needs conditional", "--simultaneous needs --conditional")
                + ": without it there is one threshold"
                if p.is_marginal
                else None
            ),
        )
    )
    risk: str | None = option(
        Option(
            "Costs in the spec that give the harm of missing each label; --alpha then bounds the mean harm.",
            "the name of costs of the spec, or None",
            compared=True,
            check=_as_costs_name,
            metavar="COSTS",
            refuse=lambda p: None if p.risk is None else _refused_with_risk(p),
        )
    )
    repair: Literal["auto", "temperature"] | Repair | None = option(
        Option(
            "How to correct the probabilities, fitted on separate rows: auto, temperature or none.",
            '"auto", "temperature", None, or a `Repair` that was made before',
            compared=True,
            check=_as_repair,
            default="auto",
            parse=_read_repair,
            metavar="auto|temperature|none",
            to_json=lambda value: value.as_dict() if isinstance(value, Repair) else value,
        )
    )
    temperature: Temperature = option(
        Option(
            "Deprecated; use --repair temperature.",
            'deprecated: `repair="temperature"`, or `repair=Repair(exponent=1 / T)`',
            compared=True,
            check=as_temperature,
            parse=_read_temperature,
            metavar="fit|NUMBER",
            alias=True,
        )
    )
    nonempty: bool = option(Option("Never return an empty set.", "True or False", check=as_flag, default=False))
    randomize: bool = option(
        Option(
            "Cover exactly 1 - alpha, by randomising labels at the threshold.",
            "True or False",
            check=as_flag,
            default=False,
            refuse=lambda p: (
                "randomize and nonempty exclude each other: a set that is never empty covers more"
                if p.randomize and p.nonempty
                else None
            ),
        )
    )
    pool: bool = option(
        Option(
            "Let groups or classes with too few rows use the threshold of all rows.",
            "True or False",
            check=as_flag,
            default=False,
            refuse=lambda p: (
                worded('pool=True needs conditional="group" or "class"', "--pool needs --group or --conditional class")
                + (": bins by difficulty have equal sizes, so use fewer of them" if p.by_difficulty else "")
                + (": decisions with too few rows are already merged" if p.by_decision else "")
                if p.pool and p.conditional not in ("group", "class")
                else None
            ),
        )
    )
    seed: int = option(
        Option(
            "Random seed for the folds of the calibration rows and for --randomize.",
            "a whole number, 0 or more",
            compared=True,
            check=as_whole_number,
            default=0,
            parse=read_whole_number,
            metavar="NUMBER",
        )
    )
    confidence_level: InitVar[Level | None] = None
    # Whether no level was given, so that alpha is 0.1; summaries say so.
    alpha_is_default: bool = field(default=False, init=False, repr=False, compare=False)
    # Whether alpha is still to be found from `miss`; until then it is LARGEST_FOUND.
    alpha_is_open: bool = field(default=False, init=False, repr=False)

    def __post_init__(self, confidence_level: Level | None) -> None:
        declared = options_of(self)
        by_worth = self.miss is not None
        open_before = isinstance(self.alpha, tuple) and self.alpha == (LARGEST_FOUND,)  # copied by `replace`
        given = self.alpha is not None and not open_before
        if by_worth and (given or confidence_level is not None):
            raise InputError("miss chooses alpha: give miss or alpha, not both")
        object.__setattr__(self, "alpha_is_open", by_worth)
        object.__setattr__(self, "alpha_is_default", self.alpha is None and confidence_level is None and not by_worth)
        if by_worth:
            object.__setattr__(self, "alpha", LARGEST_FOUND)
        for name, own in declared.items():
            object.__setattr__(self, name, own.check(getattr(self, name), name))
        if self.risk is not None and not by_worth and (confidence_level is not None or self.alpha is None):
            way_out = f"give {worded('alpha=', '--alpha')}"
            raise InputError(f"risk needs alpha, the largest mean harm, in the units of the harm: {way_out}")
        if self.temperature is not None:
            object.__setattr__(self, "repair", self._temperature_as_repair())
            object.__setattr__(self, "temperature", None)
        below = Fraction(1) if self.risk is None else None  # with risk, the largest harm, which only the loss knows
        object.__setattr__(self, "alpha", levels_of(self.alpha, confidence_level, below=below))
        for own in declared.values():
            if (reason := own.refuse(self)) is not None:
                raise InputError(reason)
        if self.confidence is not None and self.alpha_is_default:
            raise InputError(_confidence_alone(self.confidence))

    def _temperature_as_repair(self) -> Literal["temperature"] | Repair:
        if self.repair != OPTIONS["repair"].default:
            raise InputError("repair and temperature are both given: leave out temperature, the old name")
        deprecated("temperature=", 'repair="temperature" or a Repair', as_of="0.3", removed_in="0.5", level=6)
        return "temperature" if self.temperature == "fit" else Repair(1 / float(self.temperature or 1))

    @property
    def alphas(self) -> tuple[Fraction, ...]:
        """The values of alpha, in the order in which they were given."""
        return self.alpha  # type: ignore[no-any-return]  # made so above

    @property
    def shown_alphas(self) -> str:
        """The values of alpha as text, with "(default)" if none was given.

        Examples
        --------
        >>> Promise(alpha=[0.1, 0.2]).shown_alphas, Promise().shown_alphas
        ('0.1, 0.2', '0.1 (default)')
        """
        if self.alpha_is_open:
            return f"to be found, a miss worth {self.miss:g}"
        found = "" if self.miss is None else f" (a miss worth {self.miss:g})"
        return ", ".join(map(show_level, self.alphas)) + (" (default)" if self.alpha_is_default else found)

    @property
    def bin_count(self) -> int:
        """Number of parts by difficulty."""
        return DEFAULT_BINS if self.bins is None else self.bins

    def at(self, alphas: Level | Sequence[Level]) -> Promise:
        """The same promise with other values of alpha.

        Parameters
        ----------
        alphas : float or sequence of float
            The new values.

        Returns
        -------
        Promise
            A new promise.
        """
        if self.miss is None:
            return replace(self, alpha=alphas)
        found = copy(self)
        object.__setattr__(found, "alpha", levels_of(alphas))
        object.__setattr__(found, "alpha_is_open", False)
        return found

    @property
    def at_alpha(self) -> Promise:
        """The same promise with its current alpha fixed, without `miss`."""
        return replace(self, alpha=self.alphas, miss=None)

    @property
    def before_fit(self) -> Promise:
        """The promise as it was before calibration, where `miss` leaves alpha open."""
        return self if self.miss is None else replace(self, alpha=None)

    def harm(self, loss: Loss, inputs: RowInputs | None = None) -> Harm | None:
        """The harm that alpha bounds under a loss.

        Parameters
        ----------
        loss : Loss
            The loss whose spec has the costs that `risk` names.
        inputs : RowInputs, optional
            Inputs of the rows, if those costs are given per row.

        Returns
        -------
        Harm or None
            None without `risk`.

        Raises
        ------
        InputError
            The spec has no such costs, or alpha is above the largest harm.
        """
        if self.risk is None:
            return None
        harm = Harm.of(loss, self.risk)
        levels_of(self.alphas, below=harm.max_harm)
        return replace(harm, inputs=inputs)

    def reads(self, loss: Loss) -> Loss:
        """The loss with all inputs that have to be given with each row, including those of the harm.

        Parameters
        ----------
        loss : Loss
            The loss.

        Returns
        -------
        Loss
            The loss that also asks for the inputs of `risk`.
        """
        return loss if self.risk is None else loss.reading(self.risk)

    def rule(self, cells: int, harm: Harm | None) -> Rule:
        """What each of `cells` thresholds has to guarantee."""
        confidence: Fraction | None = self.confidence
        if confidence is not None and self.simultaneous:
            confidence = 1 - (1 - confidence) / cells
        return Rule(confidence, None if harm is None else harm.max_harm)

    def guarantee(self, alpha: Fraction) -> str:
        """What is guaranteed at one alpha, as a clause.

        Parameters
        ----------
        alpha : Fraction
            One of `alphas`.

        Returns
        -------
        str
            Text for messages.
        """
        if self.risk is not None:
            text = f"keeps the mean of {self.risk!r} over missed true labels at most {show_level(alpha)}"
        else:
            text = (
                f"covers the true label with probability {'' if self.randomize else 'at least '}{float(1 - alpha):.10g}"
            )
        text += self.within
        if self.confidence is None:
            return text
        of = ", in all at once" if self.simultaneous else ", in each separately" if self.conditional else ""
        return f"{text}, with confidence {float(self.confidence):.10g} over the draw of the calibration rows{of}"

    @property
    def within(self) -> str:
        """The parts of the rows in which the guarantee holds, as the end of a clause; "" for all rows together."""
        bins = f", within each of {self.bin_count} bins by difficulty"
        parts = {"group": ", within each group", "class": ", within each class", "decision": ", within each decision"}
        return "" if self.conditional is None else parts.get(self.conditional, bins)

    def refuse_weights(self) -> None:
        """Raise an error if weights of rows cannot be combined with this promise."""
        if self.randomize:
            raise InputError("weights and randomize exclude each other: the randomised rank counts rows, not weights")
        if self.confidence is not None:
            raise InputError(
                "weights and confidence exclude each other: under weights, the coverage of one calibration has no Beta "
                "distribution"
            )

    def as_dict(self) -> dict[str, Any]:
        """The promise as plain data for JSON.

        Returns
        -------
        dict
            One entry per option; `from_dict` makes an equal promise from it.
        """
        saved = {name: own.to_json(getattr(self, name)) for name, own in options_of(self).items() if not own.alias}
        return saved if self.miss is None else {**saved, "alpha": None}  # the stage that found alpha saves it

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Promise:
        """A promise from what `as_dict` returned.

        Parameters
        ----------
        data : mapping
            Options by name. Missing options have their defaults.

        Returns
        -------
        Promise
            An equal promise.

        Raises
        ------
        InputError
            An option is unknown.
        """
        unknown = sorted(set(data) - set(OPTIONS))
        if unknown:
            raise InputError(f"its option {unknown[0]!r} is unknown; save it again")
        return cls(**data)


OPTIONS = options_of(Promise)
# The options that comparisons offer; they leave the others at their defaults.
COMPARED = tuple(name for name, own in OPTIONS.items() if own.compared)


def promise_from(promise: Promise | None, keywords: Mapping[str, Any]) -> Promise:
    """The given promise, or one made from the keywords of an explicit signature; refuses both at once."""
    given = {name: keywords[name] for name in (*OPTIONS, "confidence_level") if name in keywords}
    if promise is None:
        return Promise(**given)
    if not isinstance(promise, Promise):
        raise TypeError(f"promise is a {type(promise).__name__}: make one with udcp.Promise(...)")
    also = [name for name, value in given.items() if value is not getattr(OPTIONS.get(name), "default", None)]
    if also:
        raise InputError(f"promise= and {also[0]}= are both given: put {also[0]} into the promise")
    return promise


def _confidence_alone(confidence: Fraction) -> str:
    given, rest = show_level(confidence), show_level(1 - confidence)
    level = worded(f"confidence_level={given} or, which is the same, alpha={rest}. ", f"--alpha {rest}. ")
    both = worded(
        f"alpha too, as in alpha=0.1, confidence={given}", f"--alpha too, as in --alpha 0.1 --confidence {given}"
    )
    return (
        f"{worded(f'confidence={given}', f'--confidence {given}')} is given without {worded('alpha', '--alpha')}. "
        f"For sets that contain the true label with probability {given} give {level}"
        f"{worded('confidence', '--confidence')} is something else: the probability, over the draw of the calibration "
        f"rows, that this predictor covers 1 - alpha of new rows; it needs {both}"
    )


def _refused_with_risk(promise: Promise) -> str | None:
    if promise.by_class:
        return (
            'risk and conditional="class" exclude each other: within a class every miss does the same harm, so '
            "it is the coverage of the class that counts: leave out risk, or take "
            + worded('conditional="group" or "difficulty"', "--group or --conditional difficulty")
        )
    if promise.confidence is not None:
        return "risk and confidence exclude each other: the distribution of a mean harm over calibrations is not known"
    if promise.randomize:
        return "risk and randomize exclude each other: a bound on harm has no exact randomised form here"
    return None


def _refused_with_miss(promise: Promise) -> str | None:
    if promise.risk is not None:
        return "miss and risk exclude each other: risk bounds the harm of misses, and alpha is that bound"
    if promise.conditional not in (None, "group"):
        return (
            f'miss and conditional="{promise.conditional}" exclude each other: miss finds one alpha for '
            "all rows, or one for each group: give alpha, or " + worded('conditional="group"', "--group")
        )
    if promise.by_group and (promise.pool or promise.randomize):
        other = "pool" if promise.pool else "randomize"
        group = worded('conditional="group"', "--group")
        return f"miss with {group} finds an alpha for each group, and cannot be combined with {other}"
    return None


def _refused_with_decision(promise: Promise) -> str | None:
    if promise.risk is not None:
        return 'risk and conditional="decision" exclude each other: decisions are made at a price of coverage'
    if len(promise.alphas) > 1:
        return 'conditional="decision" takes one alpha, at which the decision is made: give one'
    return None
