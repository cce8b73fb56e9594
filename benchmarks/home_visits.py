"""What it is worth to give the loss the numbers of the row: specs/home_visits against the best single set of constants.

Calls are drawn from a seed. A call is a point in a plane of words, near its need, which lies near its team; the
classifier knows where the needs lie, and is surer of itself than it should be. Patients who live far away need
palliative care more often. Queues of teams rise and fall by the hour.

The rival has the same loss with one distance and one queue per team for all calls. These six constants are chosen on
6,000 calls of their own, so that its sets cost least when they are paid by the true numbers: from the means on, one
constant after the other takes the best of nine values. Both predict for the same new calls, and pay the true numbers.

    python benchmarks/home_visits.py              measures, and writes the table into docs/home-visits.md
    python benchmarks/home_visits.py rows         writes rows/calls.parquet (2,000 calls), for the commands of the page
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl.files import atomic_write

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "specs" / "home_visits" / "home_visits.loss"
PAGE, RESULTS = ROOT / "docs" / "home-visits.md", ROOT / "docs" / "home-visits.json"
ALPHA, SEED, _TUNING_SEED = 0.1, 0, 1000
TUNING, CALIBRATION, NEW = 6000, 2000, 2000
DRAWS = 10
_SHARES = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)  # quantiles that a constant may be
_WORDS, _TEAMS_APART, _NEEDS_APART, _SURER = 6, 0.8, 0.9, 1.3
_TEAMS = (5, 3, 3, 3, 4)  # needs of each team, as the spec lists them
_PALLIATIVE = 2

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calls:
    """Drawn calls: what the classifier says (n, 18), the true needs, and the inputs."""

    P: Floats
    y: NDArray[np.int64]
    km: Floats
    queue: Floats

    def take(self, rows: Any) -> Calls:
        return Calls(self.P[rows], self.y[rows], self.km[rows], self.queue[rows])

    @property
    def inputs(self) -> dict[str, Floats]:
        return {"km": self.km, "queue": self.queue}


def calls(n: int, seed: int = SEED) -> Calls:
    """Drawn calls, of which any may be left out: none depends on another."""
    rng = np.random.default_rng(seed)
    team_of = np.repeat(np.arange(len(_TEAMS)), _TEAMS)
    needs = np.random.default_rng(7).normal(0, _TEAMS_APART, (len(_TEAMS), _WORDS))[team_of]
    needs = needs + np.random.default_rng(8).normal(0, _NEEDS_APART, needs.shape)
    often = np.random.default_rng(9).dirichlet(np.full(len(needs), 3.0))
    km = np.clip(rng.gamma(1.0, 15.0, n), 0.2, 60.0).round(1)
    weights = often * np.where((team_of == _PALLIATIVE) & (km[:, None] > 20), 2.5, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    y = (weights.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=len(needs) - 1)
    words = needs[y] + rng.normal(0, 1, (n, _WORDS))
    logits = np.log(often) - 0.5 * _SURER * ((words[:, None] - needs) ** 2).sum(axis=2)
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    hour = rng.uniform(0, 1, (n, 1))
    busy = 1 + 0.9 * np.sin(2 * np.pi * (hour + np.arange(len(_TEAMS)) / len(_TEAMS)))
    queue = np.clip(rng.gamma(0.8, 50.0, (n, len(_TEAMS))) * busy, 0.0, 180.0).round()
    return Calls(P / P.sum(axis=1, keepdims=True), y.astype(np.int64), km, queue)


def sets_of(loss: udcp.Loss, known: Calls, new: Calls, oracle: str, constants: Floats | None = None) -> Any:
    """The prediction sets of new calls, (n, 18) bool; with `constants`, those of a loss that takes all calls alike."""
    seen = [x.inputs if constants is None else alike(len(x.y), constants) for x in (known, new)]
    predictor = udcp.SetPredictor(loss, oracle, alpha=ALPHA, repair=None).calibrate(known.P, known.y, inputs=seen[0])
    return predictor.predict_set(new.P, inputs=seen[1]).mask


def alike(n: int, constants: Floats) -> dict[str, Floats]:
    """One distance and one queue of each team, for n calls."""
    return {"km": np.full(n, constants[0]), "queue": np.tile(constants[1:], (n, 1))}


def best_constants(loss: udcp.Loss, tuning: Calls) -> Floats:
    """Those whose sets cost least by the true numbers, on the very calls that set their threshold: so all candidates
    cover as many of them, and none is cheaper only because it covers less."""
    table = np.column_stack([tuning.km, tuning.queue])
    best = table.mean(axis=0)

    def cost(constants: Floats) -> float:
        return float(loss.batch(sets_of(loss, tuning, tuning, "price", constants), inputs=tuning.inputs).mean())

    least = cost(best)
    for _ in range(2):  # rounds over all constants
        for j in range(table.shape[1]):
            for value in np.quantile(table[:, j], _SHARES):
                tried = best.copy()
                tried[j] = value
                if (found := cost(tried)) < least:
                    best, least = tried, found
    return best


def ways_of(loss: udcp.Loss, tuning: Calls) -> dict[str, tuple[str, Floats | None]]:
    """The oracle of each way, and the constants that it takes for the inputs."""
    means = np.column_stack([tuning.km, tuning.queue]).mean(axis=0)
    return {
        "inputs of each call": ("price", None),
        "best single constants": ("price", best_constants(loss, tuning)),
        "means as constants": ("price", means),
        "no cost, smallest sets (`lac`)": ("lac", None),
    }


def measure(
    loss: udcp.Loss, ways: dict[str, tuple[str, Floats | None]], seed: int, n: int = CALIBRATION, new_calls: int = NEW
) -> list[dict[str, Any]]:
    """Coverage and mean cost of each way on one draw of calls, over all new calls and by distance."""
    drawn = calls(n + new_calls, seed)
    known, new = drawn.take(slice(n)), drawn.take(slice(n, None))
    near, far = new.km <= 5, new.km > 20
    found = []
    for name, (oracle, constants) in ways.items():
        mask = sets_of(loss, known, new, oracle, constants)
        costs = loss.batch(mask, inputs=new.inputs)
        covered = mask[np.arange(len(new.y)), new.y]
        found.append(
            {
                "way": name,
                "seed": seed,
                "coverage": float(covered.mean()),
                "cost": float(costs.mean()),
                "near": float(costs[near].mean()),
                "far": float(costs[far].mean()),
                "needs": float(mask.sum(axis=1).mean()),
            }
        )
    return found


def table_of(results: list[dict[str, Any]]) -> str:
    """Means over the draws, as a table for the page."""
    lines = [
        "| the loss reads | minutes per call | to 5 km | beyond 20 km | needs per set | coverage |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["way"] for row in results):
        own = [row for row in results if row["way"] == name]
        mean = {key: float(np.mean([row[key] for row in own])) for key in ("cost", "near", "far", "needs", "coverage")}
        numbers = f"{mean['cost']:.1f} | {mean['near']:.1f} | {mean['far']:.1f} | {mean['needs']:.2f}"
        lines.append(f"| {name} | {numbers} | {mean['coverage']:.3f} |")
    return "\n".join(lines)


def write_rows(folder: Path, n: int = 2000) -> None:
    """The calls as a table: a column for each need, the truth, km, and the queues as a list."""
    import pyarrow as pa
    from pyarrow import parquet

    loss, drawn = udcp.load(SPEC), calls(n)
    columns: dict[str, Any] = {"call": [f"c{i}" for i in range(n)]}
    columns |= {label: drawn.P[:, i] for i, label in enumerate(loss.labels)}
    columns |= {"need": np.array(loss.labels)[drawn.y], "km": drawn.km, "queue": drawn.queue.tolist()}
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / "calls.parquet") as temporary:
        parquet.write_table(pa.table(columns), temporary)
    right = (drawn.P.argmax(axis=1) == drawn.y).mean()
    print(f"{n} calls in {folder / 'calls.parquet'}; the likeliest need is the true one in {right:.0%}")


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = udcp.load(SPEC)
        ways = ways_of(loss, calls(TUNING, _TUNING_SEED))
        results = [row for seed in range(DRAWS) for row in measure(loss, ways, seed)]
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- made by benchmarks/home_visits.py -->\n")
    after = rest.split("<!-- end of what is made -->")[1]
    made = f"<!-- made by benchmarks/home_visits.py -->\n{table_of(results)}\n<!-- end of what is made -->"
    PAGE.write_text(before + made + after, encoding="utf-8")
    print(table_of(results))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_rows(Path(sys.argv[1]))
    else:
        main()
