"""`udcp validate`: verdicts, the same bytes for the same seed, a page, own rows, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from udcp_dsl.check import Problem
from udcp_dsl.expression.atoms.any import Any

Run = Callable[..., Result]
pytestmark = pytest.mark.usefixtures("few_classifiers")
QUICK = ("--oracle", "base", "--oracle", "price", "--cases", "1")


@pytest.mark.usefixtures("promised")
def test_a_good_spec_holds(udcp: Run) -> None:
    done = udcp("validate", "pets.loss", *QUICK, "--why")
    assert done.exit_code == 0, done.output
    for stage in ("meaning", "facts", "oracles", "coverage", "cost"):
        assert f"✓ {stage}: " in done.output
    assert "probability of a false alarm: at most 1e-06" in done.output
    assert re.fullmatch(r"no problem found in \d+ tests", done.output.splitlines()[-1])
    assert done.stderr == ""


@pytest.mark.usefixtures("promised")
def test_the_spec_comes_first_and_our_own_tests_in_one_line(udcp: Run, folder: Path) -> None:
    (folder / "pets.cases").write_text('case "wolves": cost { wolf } > cost { cat }\ncase "odd": cost { cat } > 100\n')
    done = udcp("validate", "pets.loss", *QUICK)
    assert done.exit_code == 1, done.output
    lines = done.output.splitlines()
    order = [
        next(i for i, line in enumerate(lines) if line.startswith(begin))
        for begin in (
            "cheapest single labels",
            "most expensive",
            "your cases",
            "coverage on your rows",
            "tests of udcp",
        )
    ]
    assert order == sorted(order)
    assert re.search(r"your cases +1 of 2 hold; these fail: .*odd", done.output)
    assert re.search(r"contradictions +no values of the parameters satisfy all of: case .odd", done.output)
    assert "not tested: give --probs and --truth" in done.output
    assert not any(line.startswith("✓ meaning") for line in lines)
    found = json.loads(udcp("validate", "pets.loss", *QUICK, "--json").stdout)
    assert found["spec"]["most expensive single labels"].startswith("wolf")
    assert len(found["stages"]) == 6, "data have every test all the same"


@pytest.mark.slow
def test_every_claim_about_the_default_oracle_is_tried_at_the_default_budget(udcp: Run) -> None:
    found = json.loads(udcp("validate", "pets.loss", "--json").stdout)
    verdicts = [verdict for stage in found["stages"] for verdict in stage["verdicts"]]
    left = [v["claim"] for v in verdicts if v["holds"] is None and v["applies"]]
    assert all(claim.startswith("ilp") for claim in left), left


def test_the_same_seed_gives_the_same_bytes(udcp: Run, folder: Path) -> None:
    quick = ("validate", "pets.loss", "--oracle", "lac", "--cases", "1", "--report", "r.html")
    runs = [udcp(*quick, "--seed", seed) for seed in ("7", "7", "8")]
    assert runs[0].output == runs[1].output != runs[2].output
    assert "seed 8" in (folder / "r.html").read_text()


def test_data_for_machines(udcp: Run) -> None:
    done = udcp("validate", "pets.loss", *QUICK, "--alpha", "0.2", "--alpha", "1/3", "--param", "weight=3", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["ok"], found["cases"], found["budget"]) == (0, True, 1, None)
    assert found["alphas"] == ["0.2", "1/3"]
    assert found["family_wise_error"] == 1e-6
    assert [stage["name"] for stage in found["stages"]] == ["meaning", "facts", "oracles", "coverage", "cost"]
    assert all("seconds" not in stage for stage in found["stages"])
    assert found["counter_example"] is None


def test_oracles_that_do_not_apply_are_told_with_the_reason(udcp: Run) -> None:
    done = udcp("validate", "pets.loss", "--cases", "1", "--why")
    assert done.exit_code == 0, done.output
    assert "ratio does not apply: oracle 'ratio' needs a separable loss" in done.output
    assert "fewer cases for ilp, which is slow" in done.output


def test_what_is_not_tried_is_counted_and_has_an_exit_status_of_its_own(udcp: Run, folder: Path) -> None:
    hurried = ("validate", "pets.loss", "--oracle", "lac", "--budget", "0.001s")
    done = udcp(*hurried, "--report", "r.html")
    assert done.exit_code == 0, done.output
    match = re.fullmatch(r"no problem found in (\d+) tests, (\d+) not run", done.output.splitlines()[-2])
    assert match is not None
    assert int(match[2]) > 0
    page = (folder / "r.html").read_text()
    assert "all holds" not in page
    assert "<h1>pets</h1>" in page
    told = r'<p class="conclusion"><span class="open"[^>]*>no problem found in \d+ tests, \d+ not run</span>'
    assert re.search(told, page)
    strict = udcp(*hurried, "--strict", "--json")
    assert strict.exit_code == 3
    found = json.loads(strict.stdout)
    verdicts = [verdict for stage in found["stages"] for verdict in stage["verdicts"]]
    assert found["ok"] is True
    assert found["untried"] == sum(verdict["holds"] is None and verdict["applies"] for verdict in verdicts) > 0
    assert found["untried"] == sum(stage["untried"] for stage in found["stages"])
    assert None in [stage["holds"] for stage in found["stages"]]
    assert "--strict" in udcp("validate", "--help").output


def test_strict_asks_for_no_claim_that_does_not_apply(udcp: Run, folder: Path) -> None:
    done = udcp("validate", "pets.loss", *QUICK, "--strict")
    assert done.exit_code == 0, done.output
    text = "category tame { cat }  loss odd = 0.1 * size + (any(wild) and any(tame))"
    (folder / "odd.loss").write_text((folder / "pets.loss").read_text() + text)
    done = udcp("validate", "odd.loss", "--oracle", "price", "--cases", "1", "--strict")
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"no problem found in \d+ tests", done.output.splitlines()[-1])


def test_a_failure_comes_before_what_is_not_tried(udcp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Any, "batch", lambda self, sets: sets.mask[:, self.category.members].all(axis=1) * 1.0)
    done = udcp("validate", "pets.loss", "--oracle", "lac", "--budget", "0.001s", "--strict")
    assert done.exit_code == 1
    assert "not safe to use" in done.output


def test_a_budget(udcp: Run) -> None:
    done = udcp("validate", "pets.loss", "--oracle", "lac", "--budget", "0.5s", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["cases"], found["budget"]) == (0, None, 0.5)
    assert all(stage["seconds"] >= 0 for stage in found["stages"])


def test_a_broken_loss_is_shown_with_its_smallest_set(udcp: Run, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(Any, "batch", lambda self, sets: sets.mask[:, self.category.members].all(axis=1) * 1.0)
    done = udcp("validate", "pets.loss", *QUICK, "--report", "r.html")
    assert done.exit_code == 1
    assert "not safe to use" in done.output
    assert "on {wolf} the interpreter gives 7.01 and batch gives 2.01" in done.output
    assert "on {wolf} the interpreter gives 7.01 and batch gives 2.01" in (folder / "r.html").read_text()
    found = json.loads(udcp("validate", "pets.loss", *QUICK, "--json").output)
    assert found["ok"] is False
    assert found["counter_example"]["sets"] == [["wolf"]]


def test_the_page_is_escaped_and_stands_alone(udcp: Run, folder: Path) -> None:
    (folder / "odd.loss").write_text('labels { "<b>", "&" }  category wild { "<b>" }  loss l = size + any(wild)')
    done = udcp("validate", "odd.loss", *QUICK, "--report", "odd.html")
    assert done.exit_code == 0, done.output
    page = (folder / "odd.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page
    assert "src=" not in page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "; print-color-adjust: exact" in page
    assert '<th scope="col" class="number" style="text-align: right">mean cost</th>' in page
    assert page.count("<table>") == page.count('<div class="scroll" tabindex="0"><table>') > 3


@pytest.fixture
def own(folder: Path) -> Path:
    """Rows of a classifier, p.npy and y.txt, without drift."""
    rng = np.random.default_rng(0)
    P, y = Problem.generated(4, rng, kind="calibrated").draw(400, rng)
    np.save(folder / "p.npy", P)
    (folder / "y.txt").write_text("\n".join(("cat", "dog", "wolf", "lynx")[i] for i in y))
    return folder


def test_own_rows(udcp: Run, own: Path) -> None:
    done = udcp("validate", "pets.loss", *QUICK, "--probs", "p.npy", "--truth", "y.txt", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    notes = {verdict["claim"]: verdict["note"] for verdict in found["stages"][3]["verdicts"]}
    assert "p = " in notes["base on your rows: coverage is what theory predicts"]
    assert "CUSUM: p = " in notes["your rows do not drift along the file"]
    assert "yours" in {cost["classifier"] for cost in found["costs"]}


def test_own_rows_that_are_not_tried_are_counted(udcp: Run, own: Path) -> None:
    source = ("--probs", "p.npy", "--truth", "y.txt")
    done = udcp("validate", "pets.loss", "--oracle", "ilp", "--cases", "1", *source, "--json", "--strict")
    found = json.loads(done.stdout)
    verdicts = {verdict["claim"]: verdict["holds"] for verdict in found["stages"][3]["verdicts"]}
    assert verdicts["ilp on your rows: coverage is what theory predicts"] is None
    assert verdicts["your rows do not drift along the file"] is None
    assert done.exit_code == 3


def test_own_rows_that_drift(udcp: Run, own: Path) -> None:
    P, y = np.load(own / "p.npy"), (own / "y.txt").read_text().split()
    of_truth = P[np.arange(400), [("cat", "dog", "wolf", "lynx").index(name) for name in y]]
    order = np.argsort(of_truth)
    np.save(own / "p.npy", P[order])
    (own / "y.txt").write_text("\n".join(y[i] for i in order))
    done = udcp(
        "validate", "pets.loss", "--oracle", "lac", "--cases", "1", "--probs", "p.npy", "--truth", "y.txt", "--json"
    )
    assert done.exit_code == 1
    assert "change along the file" in json.loads(done.stdout)["counter_example"]["text"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--oracle", "ratio"), "needs a separable loss"),
        (("--oracle", "bass"), "did you mean 'base'"),
        (("--alpha", "2"), "strictly between 0 and 1"),
        (("--budget", "soon"), "'soon' is not a time: write 60s"),
        (("--budget", "0s"), "'0s' is not a time"),
        (("--cases", "0"), "--cases"),
        (("--cases", "1", "--budget", "3s"), "--budget and --cases: give one of them"),
        (("--seed", "-1"), "--seed"),
        (("--probs", "p.npy"), "--probs and --truth belong together"),
        (("--truth", "y.txt"), "--probs and --truth belong together"),
        (("--probs", "none.npy", "--truth", "y.txt"), "none.npy"),
        (("--report", "nowhere/r.html"), "there is no folder 'nowhere'"),
        (("--loss", "pet"), "did you mean 'pets'"),
        (("--param", "weight=20"), "weight"),
    ],
)
def test_wrong_input_is_refused(udcp: Run, own: Path, arguments: tuple[str, ...], message: str) -> None:
    done = udcp("validate", "pets.loss", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_a_spec_that_does_not_compile(udcp: Run, folder: Path) -> None:
    (folder / "bad.loss").write_text("labels { a }  loss l = sizee")
    done = udcp("validate", "bad.loss")
    assert done.exit_code == 2
    assert "did you mean 'size'?" in done.stderr


def test_rows_that_are_too_few(udcp: Run, own: Path) -> None:
    np.save(own / "p.npy", np.load(own / "p.npy")[:20])
    (own / "y.txt").write_text("\n".join((own / "y.txt").read_text().split()[:20]))
    done = udcp("validate", "pets.loss", *QUICK, "--probs", "p.npy", "--truth", "y.txt")
    assert done.exit_code == 2
    assert "20 rows are too few to split: give 54 or more" in done.stderr
