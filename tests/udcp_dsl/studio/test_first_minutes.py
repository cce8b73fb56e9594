"""What a newcomer meets first: the row that it opens on, what stays while sliders move, rows of one's own."""

from __future__ import annotations

import base64
import io
import threading
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.studio.instances import generated


def settled(page: Any, *oracles: str) -> Any:
    """The views when all is done."""
    names = list(oracles or ("price", "lac"))
    return page.until(
        lambda v: (
            v["doing"] is None
            and [x["oracle"] for x in v["overall"]["oracles"]] == names
            and all(x["curve"] for x in v["overall"]["oracles"])
        )
    )


def test_it_opens_on_a_row_that_price_saves_on_with_its_set(page: Any) -> None:
    views = settled(page)
    price, lac = views["row"]["sets"]
    assert price["holds"]
    assert lac["holds"]
    assert price["cost"] < lac["cost"]
    views = page.until(lambda v: v["set"]["members"] == price["members"])
    assert views["set"]["total"] == pytest.approx(price["cost"])


def test_the_row_stays_while_alpha_and_a_parameter_move(page: Any) -> None:
    first = settled(page)["row"]["row"]
    page.until(lambda v: v["set"]["members"])
    for alpha in ("0.05", "0.2", "0.4"):
        page.change(alpha=alpha)
        page.until(lambda v, a=alpha: v["overall"]["target"] == pytest.approx(1 - float(a)))
        assert settled(page)["row"]["row"] == first
    page.change(param=["coherence", 8.0, 2.0])
    page.until(lambda v: v["spec"]["params"][0]["value"] == 8.0)
    page.until(lambda v: v["overall"]["change"])
    assert settled(page)["row"]["row"] == first


@pytest.mark.parametrize("still_compiling", [False, True])
def test_quick_oracles_are_shown_while_others_compile(
    page: Any, monkeypatch: pytest.MonkeyPatch, still_compiling: bool
) -> None:
    import udcp_dsl.studio.studio as room

    settled(page)
    quick, go = room.fit, threading.Event()

    def fit(loss: Any, oracle: str, *rest: Any) -> Any:
        if oracle == "price":
            go.wait(60)  # deaf, as a compiler is
        return quick(loss, oracle, *rest)

    monkeypatch.setattr(room, "fit", fit)
    page.change(alpha="0.2")
    views = page.until(
        lambda v: [x["oracle"] for x in v["overall"]["oracles"]] == ["lac"] and v["doing"]["oracle"] == "price"
    )
    assert views["doing"]["what"].startswith("compiling")
    # Stop is seen at once, though the compiler hears nothing.
    page.post("stop", {})
    views = page.until(lambda v: v["doing"] is None and "price" in v["overall"]["missing"], seconds=5)
    assert views["overall"]["missing"]["price"].startswith("stopped")
    assert not go.is_set()
    # What was stopped and is still under way does not stop what is asked for again.
    steps = [go.set, lambda: page.post("again", {})]
    for step in reversed(steps) if still_compiling else steps:
        step()
    settled(page)


def test_a_comment_recomputes_nothing(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import udcp_dsl.studio.studio as room

    text = settled(page)["state"]["text"]
    asked: list[str] = []
    quick = room.fit
    monkeypatch.setattr(room, "fit", lambda loss, oracle, *rest: asked.append(oracle) or quick(loss, oracle, *rest))
    page.change(text={"text": f"# Longer.\n\n{text}  # and at the end\n", "by": "me"})
    views = page.until(lambda v: v["spec"]["params"][0]["at"][0] > text.index("2 in"))
    assert views["spec"]["ok"]
    while not page.studio.idle:
        pass
    assert asked == []
    page.change(text={"text": text.replace("0.5 * size", "0.6 * size"), "by": "me"})
    page.until(lambda v: len(asked) >= 2 and v["doing"] is None)
    assert asked[:2] == ["lac", "price"]


def test_sliders_that_the_loss_does_not_read_say_so(page: Any) -> None:
    views = page.until(lambda v: v["spec"]["loss"] == "care")
    assert [slider["read"] for slider in views["spec"]["params"]] == [True]
    page.change(loss="plain")
    views = page.until(lambda v: v["spec"]["loss"] == "plain")
    assert [slider["read"] for slider in views["spec"]["params"]] == [False]


def test_costs_are_compared_at_the_same_coverage(page: Any) -> None:
    views = settled(page)
    assert views["overall"]["target"] == 0.9
    for one in views["overall"]["oracles"]:
        cost, low, high = one["matched"]
        assert low < cost < high
        around = [point[2] for point in one["curve"]]
        assert min(around) <= cost <= max(around)
        if one["oracle"] == "lac":
            saved, low, high = one["saved"]
            assert low < saved < high
            assert saved == pytest.approx(1 - views["overall"]["oracles"][0]["matched"][0] / cost)
        assert one["least"] is None or 0 <= one["least"]["coverage"] <= 1


def dropped(name: str, array: Any) -> dict[str, str]:
    out = io.BytesIO()
    np.save(out, array)
    return {"name": name, "content": base64.b64encode(out.getvalue()).decode()}


def test_rows_that_are_dropped_are_used(page: Any) -> None:
    settled(page)
    rows = generated(udcp.load(page.folder / "pets.loss"), seed=5).shown
    body = {"probs": dropped("mine.npy", rows.P), "truth": dropped("y.npy", rows.truth)}
    answer = page.post("rows", body)
    assert answer.json() == {"about": "500 rows of mine.npy", "rows": 500}
    views = page.until(lambda v: v["overall"]["about"] == "500 rows of mine.npy" and v["doing"] is None)
    assert views["overall"]["rows"] == 250
    shown = views["row"]
    assert np.allclose(dict(shown["p"])[shown["truth"]], rows.P[shown["place"], shown["truth"]])
    assert rows.truth[shown["place"]] == shown["truth"]


def test_a_table_with_the_truth_in_a_column_is_used(page: Any) -> None:
    settled(page)
    rows = generated(udcp.load(page.folder / "pets.loss"), seed=5).shown
    lines = [",".join([*rows.labels, "said"])]
    lines += [",".join([*map(repr, p), rows.labels[y]]) for p, y in zip(rows.P.tolist(), rows.truth, strict=True)]
    file = {"name": "all.csv", "content": base64.b64encode("\n".join(lines).encode()).decode()}
    answer = page.post("rows", {"probs": file, "truth": {"column": "said"}})
    assert answer.json() == {"about": "500 rows of all.csv", "rows": 500}


@pytest.mark.parametrize(
    "body",
    [
        {}, [], {"probs": {"name": "p.npy", "content": "AAAA"}},
        {"probs": {"name": "p.exe", "content": ""}, "truth": {}},
        {"probs": {"name": "p.npy", "content": "%"}, "truth": {"column": "y"}},
        {"probs": {"name": "p.npy", "content": "AAAA"}, "truth": {"column": "y"}},
        {"probs": {"name": "../../p.npy", "content": 3}, "truth": {"column": "y"}},
        {"probs": {"name": "p.csv", "content": "YQ=="}, "truth": {"column": ["y"]}},
    ],
)  # fmt: skip
def test_files_that_are_none_are_refused_and_the_rows_stay(page: Any, body: Any) -> None:
    about = settled(page)["overall"]["about"]
    answer = page.post("rows", body)
    assert answer.status_code == 400
    assert "udcp-studio-" not in answer.json()["error"]
    assert page.views["overall"]["about"] == about


def test_a_miss_is_worth_the_threshold_of_price(page: Any) -> None:
    price, lac = settled(page)["overall"]["oracles"]
    assert lac["worth"] is None
    assert price["worth"] == page.studio.shown_row[0]["price"].tau
    assert [point[3] for point in lac["curve"]] == [None] * len(lac["curve"])
    worths = [point[3] for point in price["curve"]]  # alpha rises along the curve
    assert worths == sorted(worths, reverse=True)
    at = next(point for point in price["curve"] if point[0] == 0.1)
    assert at[3] == price["worth"]


def test_cases_are_tried_again_as_sliders_move(page: Any) -> None:
    (page.folder / "pets.cases").write_text(
        'case "kin": cost { dog, ant } > 4\ncase "small" of plain: cost { dog } == 1\n'
        'case "gone" of none: cost { } == 0\n',
        encoding="utf-8",
    )
    page.studio.try_cases()
    views = page.until(lambda v: len(v["cases"]["cases"]) == 3)
    assert [(one["name"], one["loss"], one["holds"]) for one in views["cases"]["cases"]] == [
        ("kin", "care", True),
        ("small", "plain", True),
        ("gone", "none", False),
    ]
    assert "no loss 'none'" in views["cases"]["cases"][2]["why"]
    page.change(param=["coherence", 1.0, 2.0])
    views = page.until(lambda v: not v["cases"]["cases"][0]["holds"])
    assert views["cases"]["cases"][0]["why"] == "{ dog, ant } costs 3: that is not > 4"
    page.change(text={"text": page.views["state"]["text"].replace("0.5 * size", "9 * size"), "by": "me"})
    page.until(lambda v: v["cases"]["cases"][0]["holds"])


def test_cases_that_do_not_parse_say_so(page: Any) -> None:
    (page.folder / "pets.cases").write_text("case wrong", encoding="utf-8")
    page.studio.try_cases()
    views = page.until(lambda v: v["cases"]["fault"])
    assert "pets.cases:1" in views["cases"]["fault"]


def test_what_is_copied_runs(page: Any) -> None:
    settled(page)
    page.change(param=["coherence", 4.5, 2.0], loss="plain", alpha="0.2")
    views = page.until(lambda v: "4.5" in v["copied"]["command"] and "plain" in v["copied"]["python"])
    assert "--param coherence=4.5" in views["copied"]["command"]
    assert "--loss plain" in views["copied"]["command"]
    rows = generated(udcp.load(page.folder / "pets.loss")).shown
    for name, array in {"probs": rows.P, "truth": rows.truth, "new_probs": rows.P}.items():
        np.save(page.folder / f"{name}.npy", array)
    known: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(page.folder)
        exec(views["copied"]["python"], known)
    assert known["loss"].name == "plain"
    assert known["loss"].params == {"coherence": 4.5}
    assert len(known["sets"]) == 500


def test_examples_come_from_easy_to_hard(page: Any) -> None:
    found = page.post("gallery", {}).json()["examples"]
    assert [one["hardness"] for one in found] == sorted(one["hardness"] for one in found)
    assert all(one["labels"] > 1 and one["terms"] and one["about"] and one["title"] for one in found)
    triage = next(one for one in found if one["name"] == "dermatology/triage")
    assert triage["title"] == "Dermatology triage"
    assert triage["about"].startswith("Prefer sets that a clinician can act on.")
    loss = udcp.load("specs/dermatology/triage.loss")
    assert triage["figure"] == sorted(float(f"{loss([y]):.4g}") for y in loss.labels)
