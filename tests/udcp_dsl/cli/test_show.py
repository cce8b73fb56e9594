"""`udcp show`: all that a saved predictor says of itself, without compiling."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl import SetPredictor
from udcp_dsl.rows.columns import NamedPositions

Udcp = Callable[..., Result]
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 300)
Y = NamedPositions.of(np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1), ["cat", "dog", "wolf", "lynx"])
SITES = np.array(["north", "south\x1b"])[np.arange(300) % 2]


def saved(oracle: str = "lac", *, groups: bool = False, **settings: Any) -> SetPredictor:
    loss = udcp_dsl.load("pets.loss", params={"weight": 3})
    predictor = SetPredictor(loss, oracle, **{"alpha": 0.2, "repair": None, **settings})
    predictor.calibrate(P, Y, groups=SITES if groups else None)
    predictor.save("pets.json")
    return predictor


def run(udcp: Udcp, *arguments: str) -> Result:
    result = udcp("show", "pets.json", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result


def line(result: Result, name: str) -> str:
    return next(x for x in result.stdout.splitlines() if x.split(" ", 1)[0] == name)


def test_everything_is_told(udcp: Udcp, folder: Path) -> None:
    predictor = saved("raps", alpha=[0.2, "1/3"], options={"k": 2})
    Path("pets.loss").unlink()  # what is shown is in the file
    result = run(udcp)
    assert result.stdout.startswith(f"pets.json: pets by raps, saved by udcp_dsl {udcp_dsl.__version__}\n")
    assert "pets = weight * count(kinds.level(1)) + 5 * any(wild) + 0.01 * size" in line(result, "loss")
    assert "weight = 3" in line(result, "with")
    assert "submodular" in line(result, "proved")
    assert "separable" in line(result, "refuted")
    assert "cat, dog, wolf, lynx" in line(result, "labels")
    assert "raps, by " in line(result, "oracle")
    assert "k = 2" in line(result, "options")
    assert "covers the true label with probability at least 0.8; covers the true label" in line(result, "guarantee")
    assert line(result, "rows").endswith("300 rows")
    for alpha, shown in (("0.2", "0.2"), ("1/3", "1/3")):
        assert f"{shown} 300" in " ".join(result.stdout.split())
        assert f"{predictor.calibrated.thresholds(alpha):.10g}" in result.stdout


def test_as_data(udcp: Udcp) -> None:
    predictor = saved("penalized", nonempty=True, class_names=["lynx", "cat", "dog", "wolf"])
    data = json.loads(run(udcp, "--json").stdout)
    assert (data["ok"], data["version"], data["format"]) == (True, udcp_dsl.__version__, 4)
    assert (data["loss"], data["oracle"], data["params"]) == ("pets", "penalized", {"weight": 3.0})
    assert data["tuning"]["best"] == data["options"]["lam"] == predictor.oracle.options["lam"]
    assert data["promise"]["coverage"] == [0.8]
    assert (data["promise"]["nonempty"], data["promise"]["conditional"]) == (True, None)
    assert data["input"] == {
        "class_names": ["lynx", "cat", "dog", "wolf"],
        "columns": None,
        "logits": False,
        "normalize": False,
        "inputs": [],
    }
    assert data["spec"]["text"] == Path("pets.loss").read_text()
    assert data["facts"]["monotone"]["state"] == "proved"
    (at,) = data["thresholds"]
    assert at["cells"] == [{"name": None, "n": 100, "threshold": predictor.calibrated.thresholds()}]
    told = run(udcp).stdout
    assert f"lambda {predictor.oracle.options['lam']:g} of 0.001" in told
    assert "300 rows: 100 for thresholds, 200 for lambda" in told
    assert "no set is empty" in told


def test_groups_are_named_and_cannot_steer_the_terminal(udcp: Udcp) -> None:
    saved("lac", conditional="group", groups=True)
    result = run(udcp)
    assert "within each group" in result.stdout
    assert "north" in result.stdout
    assert "south\\x1b" in result.stdout
    assert "\x1b" not in result.stdout


def test_anchors(udcp: Udcp, folder: Path) -> None:
    text = Path("pets.loss").read_text() + "category tame { cat, dog }\nloss odd = any(wild) and any(tame)\n"
    Path("pets.loss").write_text(text + "loss both = odd + 0.1 * size\n".replace("odd", "(any(wild) and any(tame))"))
    predictor = saved("price")
    assert predictor.anchors is not None
    (anchor,) = predictor.anchors.values()
    assert f"at alpha 0.2: {anchor.overall:.6g}" in line(run(udcp), "anchor")
    assert "exact = False" not in run(udcp).stdout  # beside an algorithm that is exact
    assert "None" not in run(udcp).stdout  # the option `anchor` was not given; that one was found is told
    assert "300 rows: 225 for thresholds, 75 for the anchor" in line(run(udcp), "rows")
    assert json.loads(run(udcp, "--json").stdout)["anchors"] == {"1/5": anchor.as_dict()}


def test_the_spec_alone_can_be_compiled_again(udcp: Udcp) -> None:
    saved()
    spec = run(udcp, "--spec").stdout
    assert spec == Path("pets.loss").read_text()
    assert udcp("show", "pets.json", "--spec", "--json").exit_code == 2


def test_nothing_is_compiled(folder: Path) -> None:
    oracles = ["base", "greedy", "lac", "penalized", "price", "raps"]
    for oracle in oracles:
        saved(oracle)
        Path("pets.json").rename(f"{oracle}.json")
    program = (
        "import sys\n"
        "from udcp_dsl.cli import main\n"
        "heavy = 'numba scipy pulp highspy torch pandas pyarrow'.split()\n"
        "for oracle in sys.argv[1:]:\n"
        "    try: main(['show', f'{oracle}.json'])\n"
        "    except SystemExit as end: assert not end.code\n"
        "    print(oracle, [name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *oracles], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [f"{oracle} []" for oracle in oracles]


@pytest.mark.parametrize(
    ("text", "message"), [("{}", "is not a saved predictor"), ("[", "it is not JSON"), (None, "there is no file")]
)
def test_what_is_no_predictor(udcp: Udcp, folder: Path, text: str | None, message: str) -> None:
    if text is not None:
        Path("odd.json").write_text(text)
    result = udcp("show", "odd.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert json.loads(udcp("show", "odd.json", "--json").stdout)["ok"] is False


def test_a_spec_is_told_from_a_predictor(udcp: Udcp, folder: Path) -> None:
    result = udcp("show", "pets.loss")
    assert result.exit_code == 2
    assert "pets.loss is a spec, not a saved predictor: make one with udcp calibrate pets.loss" in result.stderr


def test_help(udcp: Udcp) -> None:
    assert "Example:  udcp show pets.json" in udcp("show", "--help").stdout
