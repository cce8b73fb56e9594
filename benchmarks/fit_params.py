"""How many comparisons determine the parameters of a loss: suggested pairs against random ones.

A hidden expert has parameters of its own, drawn within the ranges, and answers "which of these two sets costs more?".
After each number of answers, the widest range of a parameter over all solutions, as a share of its declared range.

    python benchmarks/fit_params.py [--experts 5] [--comparisons 40]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import udcp_dsl as udcp
from udcp_dsl.fit.suggestions import candidate_sets

SPECS = {
    "2 parameters, 12 labels": """
        labels 0..11
        category rare { 8..11 }
        categories team { a: { 0..3 }, b: { 3..7 }, c: { 7..11 } }
        costs work { 0: 0.7, 1: 1.3, 2: 0.4, 3: 2.1, 4: 1.7, 5: 3.2, 6: 0.9, 7: 2.6, 8: 0.3, 9: 1.1, 10: 2.9, 11: 4.3 }
        param fear = 1 in [0, 10]
        param teams = 1 in [0, 10]
        loss l = sum(work) + fear * any(rare) + teams * count(team)
    """,
    "4 parameters, 30 labels": """
        labels 0..29
        category rare { 24..29 }
        category old { 10..19 }
        categories team { a: { 0..7 }, b: { 6..15 }, c: { 14..22 }, d: { 20..29 } }
        costs work { 0: 0.7, 1: 1.3, 2: 0.4, 3: 2.1, 4: 1.7, 5: 3.2, 6: 0.9, 7: 2.6, 8: 0.3, 9: 1.1, 10: 2.9, 11: 4.3,
                     12: 0.6, 13: 1.9, 14: 5.2, 15: 0.8, 16: 2.3, 17: 1.4, 18: 3.7, 19: 0.5, default: 1.6 }
        param fear = 1 in [0, 10]
        param teams = 1 in [0, 10]
        param age = 1 in [0, 5]
        param mix = 1 in [0, 20]
        loss l = sum(work) + fear * any(rare) + teams * count(team) + age * size(old) + mix * (any(rare) and any(old))
    """,
}


def widest(loss: udcp.Loss, truth: udcp.Loss, comparisons: int, suggested: bool, seed: int) -> list[float]:
    """The widest range, as a share of the declared one, after 1, 2, ... answers."""
    rng = np.random.default_rng(seed)
    pool = candidate_sets(loss, rng)
    answers: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [(("0",), ">=", ())]
    found = []
    for i in range(comparisons + 1):
        fit = udcp.fit_params(loss, answers, seed=seed + i, suggest=suggested)
        assert fit.ok, fit
        found.append(max(param.determined or 0.0 for param in fit.params))
        pair = None
        if suggested and fit.suggestion is not None:
            pair = fit.suggestion.first, fit.suggestion.second
        while pair is None or abs(truth(pair[0]) - truth(pair[1])) < 1e-6:  # an expert who cannot say is asked another
            first, second = (tuple(np.array(loss.labels)[mask].tolist()) for mask in pool[rng.choice(len(pool), 2)])
            pair = first, second
        answers.append((pair[0], ">" if truth(pair[0]) > truth(pair[1]) else "<", pair[1]))
    return found[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experts", type=int, default=5)
    parser.add_argument("--comparisons", type=int, default=40)
    options = parser.parse_args()
    shown = [n for n in (5, 10, 20, 40) if n <= options.comparisons]
    for name, text in SPECS.items():
        loss = udcp.loads(text)
        drawn = np.random.default_rng(1)
        experts = [
            loss.with_params(**{p.name: float(drawn.uniform(*p.range)) for p in _params(loss)})
            for _ in range(options.experts)
        ]
        print(f"{name}, {options.experts} experts: the widest range left, mean (worst)")
        for suggested in (True, False):
            began = time.perf_counter()
            runs = np.array([widest(loss, x, options.comparisons, suggested, i) for i, x in enumerate(experts)])
            each = (time.perf_counter() - began) / runs.size
            cells = ", ".join(f"after {n}: {runs[:, n - 1].mean():.1%} ({runs[:, n - 1].max():.1%})" for n in shown)
            print(f"  {'suggested' if suggested else 'random   '}  {cells}; {each:.2f} s an answer")


def _params(loss: udcp.Loss) -> tuple[udcp.Fit, ...]:
    return udcp.fit_params(loss, [(("0",), ">=", ())], suggest=False).params


if __name__ == "__main__":
    main()
