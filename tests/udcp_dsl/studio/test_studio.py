"""What a page sees of a studio: faults as one types, costs of sets, sets of rows, and what a change does to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError
from udcp_dsl.studio.instances import dragged, generated, own
from udcp_dsl.studio.spec_folder import open_spec
from udcp_dsl.studio.state import State, changed
from udcp_dsl.studio.studio import Studio

SPEC = "labels { a, b, c }  param w = 1 in [0, 4]  loss l = w * size"


def text_of(views: dict[str, Any], old: str, new: str) -> dict[str, str]:
    assert old in views["state"]["text"]
    return {"text": views["state"]["text"].replace(old, new), "by": "me"}


def test_a_fault_is_told_with_its_place_as_a_browser_counts(page: Any) -> None:
    known = page.until(lambda v: v["spec"]["ok"] and v["doing"] is None)["set"]
    assert page.change(text={"text": "# \U0001f43b\n" + SPEC.replace("size", "sizee"), "by": "me"}).status_code == 200
    views = page.until(lambda v: not v["spec"]["ok"])
    (fault,) = views["spec"]["diagnostics"]
    text = views["state"]["text"]
    utf16 = text.encode("utf-16-le")[2 * fault["from"] : 2 * fault["to"]].decode("utf-16-le")
    assert (utf16, fault["severity"], fault["line"]) == ("sizee", "error", 2)
    assert "did you mean 'size'" in fault["help"]
    # What was known of the last spec that compiled is still there.
    assert views["set"] == known


def test_a_set_is_costed_term_by_term_with_what_each_label_adds(page: Any) -> None:
    page.change(members=["cat", "ant", "no label"])
    views = page.until(lambda v: v["set"]["members"] == [0, 4])
    loss = udcp.load(page.folder / "pets.loss")
    found = views["set"]
    assert found["total"] == loss({"cat", "ant"}) == 5.0
    assert dict(found["terms"]) == loss.terms({"cat", "ant"})
    for y, label in enumerate(loss.labels):
        if label in ("cat", "ant"):
            rest = {"cat", "ant"} - {label}
            assert found["adds"][y] == pytest.approx(loss({"cat", "ant"}) - loss(rest))
        else:
            assert found["adds"][y] == pytest.approx(loss({"cat", "ant", label}) - loss({"cat", "ant"}))
    assert [node[0] for node in views["labels"]["tree"]["nodes"]] == ["mammal", "canine", "insect"]


def test_the_sets_of_a_row_are_those_of_the_library(page: Any) -> None:
    page.change(row=7, why="wolf")
    views = page.until(lambda v: v["row"]["row"] == 7 and len(v["row"]["sets"]) == 2 and v["row"]["why"]["label"] == 2)
    loss = udcp.load(page.folder / "pets.loss")
    made = generated(loss)
    for shown, name in zip(views["row"]["sets"], ("price", "lac"), strict=True):
        predictor = udcp.SetPredictor(loss, name, alpha=0.1).calibrate(made.calibration)
        mask = predictor.predict_set(made.shown.P[6:9]).mask[1]
        assert shown["members"] == np.flatnonzero(mask).tolist()
        assert shown["cost"] == pytest.approx(loss(mask))
        assert shown["tau"] == predictor.calibrated.thresholds()
    hull = views["row"]["hull"]
    at = hull["vertices"][hull["at"]]
    assert at["price"] <= hull["threshold"]
    assert at["cost"] == pytest.approx(views["row"]["sets"][0]["cost"])
    for answer, shown in zip(views["row"]["why"]["answers"], views["row"]["sets"], strict=True):
        assert answer["in"] == (2 in shown["members"]) == (answer["score"] <= answer["tau"])
        assert sum(cost for _, cost in answer["terms"]) == pytest.approx(answer["adds"])


def test_a_slider_moves_everything_and_the_change_is_told(page: Any) -> None:
    before = page.until(lambda v: v["doing"] is None and v["overall"]["oracles"][0]["curve"])
    cost = before["overall"]["oracles"][0]["cost"]
    assert before["overall"]["change"] is None
    page.change(members=["cat", "ant"], param=["coherence", 0.0, 2.0])
    after = page.until(lambda v: v["overall"]["change"] and v["set"]["total"] == 1.0)
    change = after["overall"]["change"]
    assert after["spec"]["params"][0]["value"] == 0.0
    assert (change["cost_before"], change["oracle"], change["rows"]) == (cost, "price", 500)
    assert change["changed"] > 0
    assert change["saved"] >= 0  # by the new measure the new sets are the cheaper
    assert change["listed"][0]["entered"] or change["listed"][0]["left"]
    # A text that gives the parameter another number has the last word.
    page.change(text=text_of(after, "coherence = 2", "coherence = 7"))
    page.until(lambda v: v["spec"]["params"][0]["value"] == 7.0)


def test_a_slider_of_a_parameter_that_is_gone_is_no_fault(page: Any) -> None:
    page.change(param=["coherence", 5.0, 2.0])
    views = page.until(lambda v: v["spec"]["params"][0]["value"] == 5.0)
    text = views["state"]["text"].replace("param coherence = 2 in [0, 10]\n", "").replace("coherence *", "3 *")
    page.change(text={"text": text, "by": "me"})
    page.until(lambda v: v["spec"]["ok"] and v["spec"]["params"] == [])


def test_a_bar_that_is_dragged_leaves_a_distribution_and_moves_the_sets(page: Any) -> None:
    page.change(row=3)
    row = page.until(lambda v: v["row"]["row"] == 3 and len(v["row"]["sets"]) == 2)["row"]
    other = next(y for y in range(6) if y not in row["sets"][0]["members"])
    for p in (0.3, 0.6, 0.97):
        page.change(drag=[other, p])
    row = page.until(lambda v: v["row"]["dragged"] and dict(v["row"]["p"])[other] == pytest.approx(0.97))["row"]
    assert sum(p for _, p in row["p"]) == pytest.approx(1)
    assert other in row["sets"][0]["members"]
    page.change(drag=None)
    page.until(lambda v: not v["row"]["dragged"])


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("p", [[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
def test_a_dragged_row_keeps_its_proportions(p: list[float], value: float) -> None:
    found = dragged(np.array(p), 0, value)
    assert found.sum() == pytest.approx(1)
    assert found[0] == pytest.approx(value)
    if p[1] and value < 1:
        assert found[1] / found[2] == pytest.approx(p[1] / p[2])


def test_alpha_and_the_oracles_are_chosen(page: Any) -> None:
    page.change(alpha="0.3", oracles=["lac", "base", "ratio"])
    views = page.until(
        lambda v: (
            [x["oracle"] for x in v["overall"]["oracles"]] == ["lac", "base"] and "ratio" in v["overall"]["missing"]
        )
    )
    assert views["state"]["alpha"] == 0.3
    assert "separable" in views["overall"]["missing"]["ratio"]
    for one in views["overall"]["oracles"]:
        assert abs(one["coverage"] - 0.7) < 0.1
        assert sum(q["n"] for q in one["quarters"]) == 500


def test_another_loss_of_the_spec(page: Any) -> None:
    page.change(loss="plain", members=["cat", "ant"])
    assert page.until(lambda v: v["spec"]["loss"] == "plain" and v["set"]["total"] == 2.0)["spec"]["losses"] == [
        "plain",
        "care",
    ]


def test_own_rows_are_shown_and_left_for_others_where_the_labels_change(folder: Path) -> None:
    loss = udcp.load(folder / "pets.loss")
    rows = generated(loss).shown
    instances = own(rows, "500 rows of p.npy")(loss)
    assert (len(instances.calibration), len(instances.shown), instances.about) == (250, 250, "500 rows of p.npy")
    assert np.array_equal(rows.P[list(instances.places)], instances.shown.P)
    other = own(rows, "500 rows of p.npy")(udcp.loads(SPEC))
    assert "not those of 500 rows of p.npy" in other.about


WRONG: list[object] = [
    None, [], {}, "text", {"no": 1}, {"text": "x"}, {"text": {"text": 1, "by": ""}},
    {"text": {"text": "\ud800", "by": ""}},
    {"text": {"text": "x" * (1 << 21), "by": ""}}, {"members": "cat"}, {"members": [1]}, {"row": -1}, {"row": True},
    {"row": 1.5},
    {"row": 1 << 60}, {"drag": [0]}, {"drag": [0, 2]}, {"drag": ["a", 0.5]}, {"alpha": 0}, {"alpha": 1}, {"alpha": "x"},
    {"alpha": [0.1]}, {"oracles": []}, {"oracles": ["none"]}, {"oracles": [["price"]]}, {"param": ["w", 1]},
    {"param": ["w", "1", 1]}, {"param": ["w", 1e999, 1]}, {"loss": 3}, {"why": {"a": 1}}, {"place": "/etc"},
]  # fmt: skip


@pytest.mark.parametrize("change", WRONG, ids=lambda x: json.dumps(x)[:40])
def test_a_change_that_is_none_is_refused_and_changes_nothing(change: object, folder: Path) -> None:
    state = State(*open_spec(folder / "pets.loss"))
    with pytest.raises(InputError):
        changed(state, change)


def test_a_row_beyond_the_last_is_the_last_and_a_label_that_is_none_is_left(page: Any) -> None:
    page.change(row=10**6, drag=None)
    page.change(drag=[99, 0.5])
    assert page.until(lambda v: v["row"]["row"] == 499)["row"]["rows"] == 500


def test_what_is_scored_can_be_stopped_and_begun_again(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import udcp_dsl.studio.studio as room

    page.until(lambda v: v["doing"] is None and len(v["overall"]["oracles"]) == 2)
    quick, slow = room.fit, [True]

    def fit(loss: Any, oracle: str, alpha: Any, instances: Any, on_step: Any) -> Any:
        done = 0
        while slow[0] and oracle == "base":
            on_step(done, 10**6)  # raises when it is stopped
            done += 1
        return quick(loss, oracle, alpha, instances, on_step)

    monkeypatch.setattr(room, "fit", fit)
    page.change(oracles=["price", "lac", "base"])
    doing = page.until(lambda v: v["doing"] and v["doing"]["oracle"] == "base" and v["doing"]["done"] > 3)["doing"]
    assert doing["of"] == 10**6
    # Typing goes on while it works: the set and the diagnostics are another thread's, the row is shown between steps.
    page.change(members=["bee"], row=11)
    page.until(lambda v: v["set"]["members"] == [5] and v["row"]["row"] == 11 and v["doing"])
    assert page.post("stop", {}).status_code == 200
    views = page.until(lambda v: v["doing"] is None and "base" in v["overall"]["missing"])
    assert views["overall"]["missing"]["base"].startswith("stopped")
    slow[0] = False
    page.post("again", {})
    page.until(lambda v: [x["oracle"] for x in v["overall"]["oracles"]] == ["price", "lac", "base"])


def test_it_says_that_it_works_until_all_is_of_the_last_change(page: Any) -> None:
    page.until(lambda v: v["doing"] is None)
    for alpha in ("0.2", "0.05", "0.3"):
        page.change(alpha=alpha)
        views = page.until(lambda v: v["doing"] is None)
        assert views["overall"]["target"] == pytest.approx(1 - float(alpha))
        assert all(one["curve"] for one in views["overall"]["oracles"])
    # A stop that comes when all is done stops nothing of what follows.
    page.post("stop", {})
    page.change(alpha="0.1")
    views = page.until(lambda v: v["doing"] is None)
    assert len(views["overall"]["oracles"]) == 2
    assert views["overall"]["missing"] == {}


def test_an_edit_ends_what_is_no_longer_wanted(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import udcp_dsl.studio.studio as room

    page.until(lambda v: v["doing"] is None and len(v["overall"]["oracles"]) == 2)
    quick, asked = room.fit, []

    def fit(loss: Any, oracle: str, alpha: Any, instances: Any, on_step: Any) -> Any:
        asked.append(alpha)
        while float(alpha) == 0.2:
            on_step(0, 0)
        return quick(loss, oracle, alpha, instances, on_step)

    monkeypatch.setattr(room, "fit", fit)
    page.change(alpha="0.2")
    page.until(lambda v: v["doing"] and v["state"]["alpha"] == 0.2)
    page.change(alpha="0.4")
    page.until(lambda v: v["doing"] is None and v["overall"]["oracles"][0]["coverage"] < 0.75)


def test_two_studios_at_once_do_not_meet(page: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "few.loss"
    other.write_text(SPEC)
    second = Studio(*open_spec(other))
    try:
        second.change({"members": ["a"]})
        page.change(members=["bee", "ant"])
        page.until(lambda v: v["set"]["members"] == [4, 5])
        while second.board.get("set") is None or second.board.get("set")["members"] != [0]:
            pass
        assert second.state.place.name == "few.loss"
        assert page.studio.state.place.name == "pets.loss"
    finally:
        second.close()


def test_what_may_not_be_meant_is_among_the_problems(page: Any) -> None:
    text = "labels { a, b, c }\ncategory A { a, b }\ncategory B { b, c }\nloss never = size + 9 * (any(A) and any(B))\n"
    page.change(text={"text": text, "by": "me"})
    views = page.until(lambda v: v["spec"]["loss"] == "never")
    (told,) = views["spec"]["diagnostics"]
    assert (told["code"], told["severity"], told["line"]) == ("W602", "warning", 4)
    assert text[told["from"] : told["to"]] == "(any(A) and any(B))"
