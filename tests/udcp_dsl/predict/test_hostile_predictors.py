"""Saved predictors made by an attacker, whose hash fits: they are read or refused with an InputError, and neither hang
nor fill the memory. Named attacks, and files of every kind with each value replaced by hostile ones."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import InputError, SetPredictor

resource = pytest.importorskip("resource")

CORPUS = Path(__file__).parents[2] / "corpus" / "saved"
SECONDS, MEGABYTES = 5, 500
LOSS = udcp.loads(
    "labels {a, b, c, d}  costs harm {a: 5, b: 1, c: 0.5, d: 0}  category g {a, b}  category h {c, d} "
    "loss l = size + 3 * (any(g) and any(h))",
    name="letters.loss",
)
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 200)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)
GROUPS, WEIGHTS = ["u", "v"] * 100, rng.random(200)

KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "anchors": ("price", {"alpha": [0.1, 0.3]}, {}),
    "group": ("price", {"alpha": 0.2, "conditional": "group"}, {"groups": GROUPS}),
    "difficulty": ("price", {"alpha": 0.2, "conditional": "difficulty", "bins": 2, "repair": "temperature"}, {}),
    "class": ("lac", {"alpha": 0.2, "conditional": "class", "pool": True}, {}),
    "confidence": (
        "lac",
        {
            "alpha": 0.2,
            "conditional": "difficulty",
            "confidence": 0.8,
            "simultaneous": True,
            "repair": udcp.Repair(0.5),
        },
        {},
    ),
    "randomize": ("lac", {"alpha": 0.2, "randomize": True, "conditional": "class"}, {}),
    "risk": ("price", {"alpha": 0.3, "risk": "harm"}, {}),
    "weights": ("lac", {"alpha": 0.3, "risk": "harm"}, {"weights": WEIGHTS}),
    "tuned": ("penalized", {"alpha": 0.2, "nonempty": True}, {}),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The content of a saved file of each kind, of this format and of older ones."""
    folder, found = tmp_path_factory.mktemp("good"), {}
    for kind, (oracle, settings, beside) in KINDS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SetPredictor(LOSS, oracle, **settings).calibrate(P, Y, **beside).save(folder / kind)
        found[kind] = json.loads((folder / kind).read_text())
    older = [path for path in sorted(CORPUS.glob("format*.json")) if not path.name.endswith("-sets.json")]
    return found | {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in older}


def sealed(content: dict[str, Any]) -> str:
    """The text of a file with the hash that it would have had, whatever numbers it holds."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return json.dumps(rest | {"sha256": hashlib.sha256(text.encode()).hexdigest()})


@contextmanager
def limits() -> Iterator[None]:
    """What takes longer, in time of the processor, or more memory, fails."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"it takes longer than {SECONDS} seconds")

    before, (soft, hard) = signal.signal(signal.SIGPROF, too_long), resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (MEGABYTES << 20), hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def judged(text: str, file: Path) -> str:
    """Whether a file is read, and predicts a row, or is refused."""
    file.write_text(text, encoding="utf-8")
    try:
        with limits(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictor = SetPredictor.load(file)
            K, fitted = predictor.loss.K, predictor.fitted
            beside: dict[str, Any] = {}
            if predictor.conditional == "group":
                beside = {"groups": fitted.context.strata.names[:1]}
            beside |= {"weights": [1.0]} if fitted.thresholds.calibration.weighted else {}
            row = np.full((1, K), 1 / K)
            assert len(predictor.predict_set(row, alpha=predictor.alphas[0], **beside).labels) == 1
            assert predictor.p_values(row, **beside).shape == (1, K)
        return "read"
    except (InputError, udcp.SpecError, udcp.OracleError):
        return "refused"


def thresholds(content: Any) -> Any:
    return content["fits"][0]["calibration"]


def anchors(content: Any) -> Any:
    return content["fits"][0]["stages"][0]


def thinned(content: Any, n: int, parts: int) -> None:
    """Scores of which a file says that there are n, in so many parts."""
    thresholds(content)["cells"][0]["n"] = n
    content["scores"][0][0].update(n=n, parts=parts, values=[1.0], below=[0], upto=[n], ranks=[])


def tiny_alpha(content: Any, alpha: str) -> None:
    """A level that needs more points than can be counted one by one."""
    content["promise"].update(alpha=[alpha], conditional=None, bins=None, simultaneous=False)
    content["fits"] = [{**content["fits"][0], "alpha": alpha}]
    content["stages"], content["strata"]["names"] = [], []
    thresholds(content)["cells"] = thresholds(content)["cells"][:1]


ATTACKS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "a level of 100 million digits among anchors": (
        "anchors",
        lambda c: c["fits"][0].update(alpha="1e-99999999"),
    ),
    "an alpha of 100 million digits": ("tuned", lambda c: c["promise"].update(alpha=["1e-99999999"])),
    "a group without its alphas": ("group", lambda c: anchors(c)["by_stratum"].update(u={})),
    "an anchor too large for a float": ("anchors", lambda c: anchors(c).update(overall=10**400)),
    "NaN": ("tuned", lambda c: thresholds(c)["cells"][0].update(threshold=float("nan"))),
    "infinity": ("tuned", lambda c: thresholds(c)["cells"][0].update(threshold=float("inf"))),
    "minus infinity": ("tuned", lambda c: c["promise"].update(seed=float("-inf"))),
    "a count of 2**63": ("tuned", lambda c: c["scores"][0][0].update(below=[2**63])),
    "a count of 10**400": ("tuned", lambda c: c["scores"][0][0].update(upto=[10**400])),
    "a temperature of 10**400": ("confidence", lambda c: c["promise"].update(temperature=10**400)),
    "ranks by the billion": ("tuned", lambda c: thinned(c, 10**12, 10**11)),
    "a power of a billion digits": ("confidence", lambda c: tiny_alpha(c, "1/1000000000")),
    "a level that is 0 as a float": ("confidence", lambda c: tiny_alpha(c, f"1/1{'0' * 900}")),
    "a spec of a million labels and hundreds of terms": (
        "class",
        lambda c: c["spec"].update(text=f"labels 0..999999\nloss l = {' + '.join(['size'] * 500)}", labels=None),
    ),
    "half of a surrogate pair": ("class", lambda c: c["spec"].update(name="\ud800")),
    "rows that are no number": ("tuned", lambda c: c["stages"][0].update(rows="12")),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_named_attack_is_refused(name: str, good: dict[str, Any], tmp_path: Path) -> None:
    kind, attack = ATTACKS[name]
    content = copy.deepcopy(good[kind])
    assert judged(sealed(content), tmp_path / "p.json") == "read"
    attack(content)
    assert judged(sealed(content), tmp_path / "p.json") == "refused"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seed": 0', '"seed": 0, "seed": 0', "the key 'seed' appears twice"),
        ('"seed": 0', '"seed": NaN', "NaN is not a JSON number"),
        ('"seed": 0', '"seed": -Infinity', "-Infinity is not a JSON number"),
        ('"seed": 0', '"seed": 1e999', "a number is too large"),
        ('"seed": 0', f'"seed": {"[" * 900}{"]" * 900}', "it is not JSON, or cut short|lists are too deep|was changed"),
    ],
)
def test_what_json_leaves_open_is_refused(
    old: str, new: str, message: str, good: dict[str, Any], tmp_path: Path
) -> None:
    text = sealed(good["class"])
    assert old in text
    (tmp_path / "p.json").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        SetPredictor.load(tmp_path / "p.json")


HOSTILE: list[Any] = [
    *(10**400, -(10**400), -1, 0, 1, 2**31, 2**62, 2**63, 10**9, 1e308, 5e-324, 1.5),
    *(float("inf"), float("nan"), None, True, [], {}, [[]], [10**400], {"a": 1}),
    *("", "inf", "nan", "1e-99999999", "1e99999999", "1e-300", "9" * 5000, "1/" + "9" * 4000, "x" * 10**6, "\0", "ilp"),
]
HOSTILE.append(json.loads("[" * 150 + "]" * 150))


def places(thing: Any) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to everything inside; of a long list to its ends alone."""
    items = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for key, value in items:
        if isinstance(thing, dict) or key in (0, len(thing) - 1):
            yield (key,)
            yield from ((key, *rest) for rest in places(value))


def mutant(content: Any, path: tuple[Any, ...], choice: random.Random) -> Any:
    content = copy.deepcopy(content)
    above = content
    for step in path[:-1]:
        above = above[step]
    how = choice.random()
    if how < 0.05:
        del above[path[-1]]
    elif how < 0.1 and isinstance(above, dict):
        above["renamed"] = above.pop(path[-1])
    else:
        above[path[-1]] = copy.deepcopy(choice.choice(HOSTILE))
    return content


def attacked(good: dict[str, Any], seed: object, each: int, file: Path) -> Counter[str]:
    choice, became = random.Random(str(seed)), Counter[str]()
    for kind, content in good.items():
        for path in places(content):
            for _ in range(each):
                text = sealed(mutant(content, path, choice))
                try:
                    became[judged(text, file)] += 1
                except Exception as error:
                    raise AssertionError(f"{kind}, {path}: {type(error).__name__}: {error}\n{text[:2000]}") from error
    return became


def test_a_text_that_could_not_be_saved_again_is_refused(good: dict[str, Any], tmp_path: Path) -> None:
    content = copy.deepcopy(good["class"])
    content["spec"]["name"] = "\ud800"
    (tmp_path / "p.json").write_text(sealed(content))
    with pytest.raises(InputError, match="half of a surrogate pair"):
        SetPredictor.load(tmp_path / "p.json")
    content["spec"]["name"] = "\U0001f600"  # both halves, as escapes
    (tmp_path / "p.json").write_text(sealed(content))
    SetPredictor.load(tmp_path / "p.json").save(tmp_path / "again.json")
    with pytest.raises(InputError, match="half of a surrogate pair"):
        udcp.loads("loss l = size", labels=["a", "\udc00"])


def test_files_with_hostile_values_are_read_or_refused(good: dict[str, Any], tmp_path: Path) -> None:
    became = attacked(good, 0, 1, tmp_path / "p.json")
    assert became["refused"] > 1000


@pytest.mark.slow
def test_new_hostile_values_in_every_run(good: dict[str, Any], tmp_path: Path) -> None:
    attacked(good, random.SystemRandom().getrandbits(64), 10, tmp_path / "p.json")
