"""Whatever is wrong with inputs is refused with the row, the input and the way out, by Python and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import InputError

TEXT = """labels { a, b, c }
categories team { x: { a, b }, y: { c } }
input km in [0, 200]
costs fee per row in [1, 50]
costs queue of team per row in [0, 60]
loss l = sum(fee) + 0.1 * km * any(team.x) + count(team, queue)
loss plain = size
"""
N = 12
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), N)
Y = np.arange(N) % 3


def inputs(**changed: Any) -> dict[str, Any]:
    found = {"km": np.full(N, 7.0), "fee": np.full((N, 3), 2.0), "queue": np.full((N, 2), 3.0)}
    return {name: x for name, x in {**found, **changed}.items() if x is not None}


def at(place: Any, value: float, shape: tuple[int, ...] = (N,)) -> Any:
    found = np.full(shape, 7.0)
    found[place] = value
    return found


def ragged() -> Any:
    return [[2.0, 2.0, 2.0]] * 5 + [[2.0, 2.0]] + [[2.0, 2.0, 2.0]] * (N - 6)


WRONG = {
    "missing": (inputs(fee=None), "input 'fee' is missing: the loss reads fee: 3 costs of labels per row in [1, 50]"),
    "nan": (inputs(km=at(4, np.nan)), "row 4: input 'km' is not a finite number: nan; give one in [0, 200]"),
    "infinite": (inputs(km=at(4, np.inf)), "row 4: input 'km' is not a finite number: inf"),
    "above": (inputs(km=at(4, 201)), "row 4: input 'km' is 201, outside [0, 200]: correct it, or widen the range"),
    "below": (inputs(km=at(4, -1)), "row 4: input 'km' is -1, outside [0, 200]"),
    "above, of a label": (inputs(fee=at((5, 1), 51, (N, 3))), "row 5: input 'fee' of 'b' is 51, outside [1, 50]"),
    "above, of a team": (inputs(queue=at((6, 1), 99, (N, 2))), "row 6: input 'queue' of 'y' is 99, outside [0, 60]"),
    "of too few rows": (inputs(km=np.zeros(5)), "input 'km' has shape (5,), expected (12,): km: a number per row"),
    "of a number for each label": (inputs(km=np.ones((N, 3))), "input 'km' has shape (12, 3), expected (12,)"),
    "of a number for each row": (inputs(fee=np.full(N, 2.0)), "input 'fee' has shape (12,), expected (12, 3)"),
    "of another width": (inputs(queue=np.ones((N, 3))), "input 'queue' has shape (12, 3), expected (12, 2)"),
    "ragged": (inputs(fee=ragged()), "row 5: input 'fee' has 2, expected 3 numbers"),
    "too large a whole number": (inputs(km=[10**400] * N), "row 0: input 'km' is too large; give one in "),
    "text": (inputs(km=["near"] * N), "row 0: input 'km' is 'near', not a number: give one"),
    "empty": (inputs(km=["1"] * 3 + [""] + ["1"] * 8), "row 3: input 'km' is not a finite number"),
    "dates": (inputs(km=np.array(["2026-01-01"] * N, dtype="datetime64[D]")), "input 'km' contains datetime64[D], not"),
    "unknown": (inputs(kms=np.zeros(N)), "the loss has no input 'kms'; did you mean 'km'?"),
    "an unknown entry": (inputs(fee={"a": [1] * N, "b": [1] * N, "d": [1] * N}), "input 'fee' has no entry 'd'"),
    "a missing entry": (inputs(fee={"a": [1] * N, "b": [1] * N}), "input 'fee' has no column for 'c': give one for"),
    "an unknown entry of a row": (
        inputs(fee=[{"a": 1, "b": 1, "c": 1}] * 3 + [{"a": 1, "b": 1, "d": 1}] + [{"a": 1, "b": 1, "c": 1}] * 8),
        "row 3: input 'fee' has no entry 'd'",
    ),
    "some columns of entries": (
        {"km": np.zeros(N), "fee.a": np.ones(N), "fee.b": np.ones(N), "queue": np.zeros((N, 2))},
        "input 'fee' has a column 'fee.a' but no 'fee.c': give one for each of 3 entries",
    ),
    "half by name": (
        inputs(fee=[{"a": 1, "b": 1, "c": 1}] * 6 + [[1, 1, 1]] * 6),
        "input 'fee' has lists in some rows and names in others",
    ),
    "a missing mapping": (
        inputs(fee=[{"a": 1, "b": 1, "c": 1}] * 6 + [None] + [{"a": 1, "b": 1, "c": 1}] * 5),
        "row 6: input 'fee' is missing: give 3 numbers",
    ),
    "lists and columns of entries": (
        inputs(**{"fee.b": np.ones(N)}),
        "input 'fee' has columns 'fee' and 'fee.b': give either lists or entries",
    ),
    "masked": (inputs(km=np.ma.masked_less(np.full(N, 7.0), 4)), "input 'km' is a masked array: drop the masked rows"),
    "masked lists": (inputs(fee=[np.ma.masked_less([2, 2, 2], 1)] * N), "input 'fee' is a masked array: drop the"),
    "masked entries": (
        inputs(fee={x: np.ma.masked_less([2.0] * N, 1) for x in "abc"}),
        "input 'fee' is a masked array",
    ),
    "an iterator": (
        inputs(km=(x for x in range(N))),
        "input 'km' has type generator: give an array or a list, of shape (n,)",
    ),
    "bytes": (inputs(km=b"5"), "input 'km' has type bytes: give an array"),
    "one text": (inputs(km="5"), "input 'km' has type str: give an array"),
    "an object": (inputs(fee=object()), "input 'fee' has type object: give an array or a list, of shape (n, 3)"),
    "a mapping for a number": (inputs(km={"a": 1}), "input 'km' has type dict: give an array"),
    "no mapping": (np.zeros((N, 3)), "inputs are a ndarray: give a mapping from names to arrays, or a frame"),
    "nothing": (None, "the loss reads inputs: give inputs={'km': ..., 'fee': ..., 'queue': ...}"),
}


@pytest.fixture(scope="module")
def predictor() -> udcp.SetPredictor:
    return udcp.SetPredictor(udcp.loads(TEXT, loss="l"), "lac", alpha=0.4).calibrate(P, Y, inputs=inputs())


@pytest.mark.parametrize("what", WRONG)
def test_python(what: str, predictor: udcp.SetPredictor) -> None:
    given, says = WRONG[what]
    masks = np.zeros((N, 3), dtype=bool)
    doors = (
        lambda: predictor.loss.batch(masks, inputs=given),
        lambda: predictor.loss.terms_batch(masks, inputs=given),
        lambda: udcp.SetPredictor(predictor.loss, "lac", alpha=0.4).calibrate(P, Y, inputs=given),
        lambda: predictor.predict_set(P, inputs=given),
        lambda: predictor.p_values(P, inputs=given),
        lambda: udcp.evaluate(predictor, P, Y, inputs=given),
        lambda: udcp.compare(predictor.loss, P, Y, inputs=given, oracles=["lac"], splits=1),
        lambda: udcp.Monitor(predictor).update(P, Y, inputs=given),
    )
    for door in doors:
        with pytest.raises(InputError) as error:
            door()
        assert says in str(error.value)


def test_inputs_where_none_are_declared_are_refused_everywhere() -> None:
    loss = size_of("a b c")
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.4).calibrate(P, Y)
    given = {"km": np.zeros(N)}
    for door in (
        lambda: loss({"a"}, inputs={"km": 1}),
        lambda: loss.terms({"a"}, inputs={"km": 1}),
        lambda: predictor.predict_set(P, inputs=given),
        lambda: predictor.p_values(P, inputs=given),
        lambda: udcp.evaluate(predictor, P, Y, inputs=given),
        lambda: udcp.Monitor(predictor).update(P, Y, inputs=given),
        lambda: udcp.compare(loss, P, Y, inputs=given, oracles=["lac"], splits=1),
    ):
        with pytest.raises(InputError, match="the spec declares none: leave them out, or declare `input"):
            door()


def test_batches_name_the_batch_and_its_row(predictor: udcp.SetPredictor) -> None:
    pa = pytest.importorskip("pyarrow")
    good = {"p": P.tolist(), "km": np.zeros(N), "fee": np.full((N, 3), 2.0).tolist(), "queue": np.ones((N, 2)).tolist()}
    first = pa.record_batch(good)
    for changed, says in {
        "km": (at(3, 300), r"batch 1: row 3: input 'km' is 300, outside \[0, 200\]"),
        "fee": ([*good["fee"][:-1], None], "batch 1: row 11: input 'fee' is missing: give 3 numbers"),
        "queue": (pa.array([1.0] * N), "batch 1: input 'queue' has shape"),
    }.items():
        batches = [first, pa.record_batch({**good, changed: says[0]})]
        with pytest.raises(InputError, match=says[1]):
            list(predictor.predict_batches(batches, column="p"))
    lacking = pa.record_batch({name: column for name, column in good.items() if name != "fee"})
    with pytest.raises(InputError, match=r"batch 0: there is no column 'fee', of lists, or 'fee\.a' and so on"):
        list(predictor.predict_batches([lacking], column="p"))


def test_missing_structs_and_sparse_and_lazy_columns_are_named(predictor: udcp.SetPredictor) -> None:
    pa, pl, sparse = (pytest.importorskip(name) for name in ("pyarrow", "polars", "scipy.sparse"))
    torch = pytest.importorskip("torch")
    structs = pa.array([*[{"a": 1.0, "b": 1.0, "c": 1.0}] * 5, None, *[{"a": 1.0, "b": 1.0, "c": 1.0}] * 6])
    lazy = pl.DataFrame({"km": np.zeros(N)}).lazy()
    for says, given in {
        "row 5: input 'fee' is missing: give 3 numbers": inputs(fee=structs),
        "input 'fee' is a sparse csr_matrix: pass its .toarray()": inputs(fee=sparse.csr_matrix(np.ones((N, 3)))),
        "input 'fee' is a sparse Tensor: pass its .to_dense()": inputs(fee=torch.ones((N, 3)).to_sparse()),
        "inputs are a LazyFrame: call .collect() first": lazy,
        "input 'fee' is a LazyFrame: call .collect() first": inputs(fee=lazy),
    }.items():
        with pytest.raises(InputError) as error:
            predictor.predict_set(P, inputs=given)
        assert says in str(error.value)


def test_one_row_refuses_alike() -> None:
    loss = udcp.loads(TEXT, loss="l")
    row: dict[str, Any] = {"km": 1, "fee": [2, 2, 2], "queue": [1, 1]}
    for changed, says in (
        ({"fee": np.ma.masked_less([2, 2, 2], 1)}, "input 'fee' is a masked array"),
        ({"km": np.ma.masked_less(5, 9)}, "input 'km' is a masked array"),
        ({"km": object()}, "input 'km' is '<object"),
        ({"fee.a": 1}, "input 'fee' has columns 'fee' and 'fee.a'"),
    ):
        with pytest.raises(InputError) as error:
            loss({"a"}, inputs={**row, **changed})
        assert says in str(error.value)
    with pytest.raises(InputError, match="no input 'zzz'; known: km, fee, queue"):
        udcp.loads(TEXT)({"a"}, inputs={"zzz": 3})  # of a loss that reads none
    assert udcp.loads(TEXT)({"a"}, inputs={**row, "fee.a": 2}) == 1
    with pytest.raises(InputError, match="inputs are a list"):
        udcp.loads(TEXT)({"a"}, inputs=[3])


def test_inputs_cannot_be_ignored(predictor: udcp.SetPredictor, folder: Path) -> None:
    pd = pytest.importorskip("pandas")
    columns = {**{x: P[:, i] for i, x in enumerate("abc")}, **inputs(fee=None, queue=None)}
    frame = pd.DataFrame({**columns, "fee": [[2.0] * 3] * N, "queue": [[1.0] * 2] * N})
    says = "'km' is an input, which the loss reads, and cannot be ignored: leave it out of ignore="
    with pytest.raises(InputError, match=says):
        predictor.predict_set(frame, ignore=["km"])
    alone = udcp.loads("labels { a, b, c }  input km in [0, 200]  loss l = km * size")
    with pytest.raises(InputError, match=says):
        udcp.SetPredictor(alone, "lac", alpha=0.4).calibrate(frame[[*"abc", "km"]], Y, ignore=["km"])
    assert len(predictor.predict_set(frame, inputs=inputs(), ignore=["km"])) == N  # others take their place
    both = frame.assign(**{f"fee.{x}": 3.0 for x in "abc"})
    with pytest.raises(InputError, match=r"input 'fee' has columns 'fee' and 'fee\.a'"):
        predictor.predict_set(both)
    wide = predictor.predict_set(both, ignore=["fee"])
    np.testing.assert_array_equal(
        wide.costs, predictor.predict_set(both, ignore=[f"fee.{x}" for x in "abc"]).costs + wide.sizes
    )
    rows = ("--probs", csv(folder), "--ignore", "km")
    typed = says.replace("ignore=", "--ignore")
    assert typed in refused("predict", folder / "p.json", *rows, "-o", folder / "o.csv").replace("\n", " ")
    every = ("--ignore", "queue.x,queue.y")
    assert "'queue.x' is an input" in refused("predict", folder / "p.json", *rows[:2], *every, "-o", folder / "o.csv")


def test_rows_are_numbered_as_in_their_file(folder: Path) -> None:
    rows = ("--loss", "l", "--probs", csv(folder, km=cells(999)), "--row")
    assert "row 8: input 'km' is 999" in refused("order", folder / "s.loss", *rows, "8")
    assert "row 7: input 'km' is 5000" in refused("order", folder / "s.loss", *rows, "7", "--input", "km=5000")
    (folder / "parts").mkdir()
    for part in range(2):
        csv(folder, f"parts/{part}.csv", km=cells(7 + 990 * part, 3))
    parts = ("--loss", "l", "--probs", folder / "parts", "--row", N + 3)
    assert "1.csv: row 3: input 'km' is 997" in refused("order", folder / "s.loss", *parts)


# Ends of ranges ------------------------------------------------------------------------------------------------------


def ends_loss() -> udcp.Loss:
    return udcp.loads(
        "labels { a, b }  input x in [-0.3, 0.1]  costs fee per row in [0.7, 1.3]  loss l = x * size + sum(fee)"
    )


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_an_end_of_the_range_in_the_type_of_the_column_is_that_end(kind: str, end: str) -> None:
    """Rounded to fewer digits, an end may lie outside; it is taken as the end itself, for which facts are proved."""
    loss = ends_loss()
    x, fee = (getattr(loss.inputs[name], end) for name in ("x", "fee"))
    given: dict[str, Any] = {"x": np.full(2, x, kind), "fee": np.full((2, 2), fee, kind)}
    within = loss.inputs_of(given, 2)
    assert within is not None
    for name, exact in (("x", x), ("fee", fee)):
        of, rounded = loss.inputs[name], float(np.array(exact, kind))
        assert (within[name] == (rounded if of.low <= rounded <= of.high else exact)).all()
    if kind == "float32":  # lists of a file are numbers of Python
        listed = loss.inputs_of({name: column.tolist() for name, column in given.items()}, 2)
        assert listed is not None
        assert all((listed[name] == within[name]).all() for name in within)


def test_what_a_row_is_given_does_not_depend_on_other_rows() -> None:
    """As float32, the low end of this range lies outside, and the high end inside: only the first is replaced."""
    loss = udcp.loads("labels { a, b }  input x in [0.7, 1.3]  loss l = size + x * any({ a })")
    column = np.array([0.7, 1.3], np.float32)
    assert not 0.7 <= float(column[0]) <= float(column[1]) <= 1.3
    both, one = loss.inputs_of({"x": column}, 2), loss.inputs_of({"x": column[1:]}, 1)
    assert both is not None
    assert one is not None
    assert both["x"].tolist() == [0.7, one["x"][0]] == [0.7, float(column[1])]


@pytest.mark.parametrize(("low", "value"), [(16777217, np.array([16777216])), (1e-50, np.array([0.0]))])
def test_what_only_rounding_would_bring_into_the_range_is_refused(low: float, value: Any) -> None:
    loss = udcp.loads(f"labels {{ a, b }}  input x in [{low}, 1e9]  loss l = size + x * any({{ a }})")
    with pytest.raises(InputError, match="outside"):
        loss.inputs_of({"x": value}, 1)


def test_no_other_value_outside_is_taken() -> None:
    loss, masks = ends_loss(), np.ones((1, 2), dtype=bool)
    beyond = np.nextafter(np.float32(0.1), np.float32(1))
    for x, says in (
        (np.array([beyond]), r"input 'x' is 0\.100000009, outside \[-0\.3, 0\.1\]"),
        ([0.1 + 1e-15], r"input 'x' is 0\.100000000000001, outside"),
        ([float(np.float16(-0.3)) - 1e-3], "outside"),
        ([float(np.float16(-0.3))], r"input 'x' is -0\.300048828|is -0\.300049, outside"),  # not of a float16 column
        (np.array([np.inf], np.float32), "not a finite number: inf"),
    ):
        with pytest.raises(InputError, match=says):
            loss.batch(masks, inputs={"x": x, "fee": [[1, 1]]})
    wide = udcp.loads("labels { a, b }  input x in [0, 1e300]  loss l = size + 0 * x")
    with pytest.raises(InputError, match="not a finite number"):
        wide.batch(masks, inputs={"x": np.array([np.inf], np.float32)})


def test_tensors_of_few_bits() -> None:
    torch = pytest.importorskip("torch")
    loss, masks = ends_loss(), np.ones((2, 2), dtype=bool)
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        given = {"x": torch.tensor([0.1, -0.3], dtype=kind), "fee": torch.full((2, 2), 1.3, dtype=kind)}
        expected = {"x": [0.1, -0.3], "fee": [[1.3] * 2] * 2}
        near = float(torch.finfo(kind).eps)  # of the numbers given, and at most that of their sum
        np.testing.assert_allclose(loss.batch(masks, inputs=given), loss.batch(masks, inputs=expected), rtol=near)
    assert loss({"a"}, inputs={"x": torch.tensor(0.0), "fee": torch.ones(2, dtype=torch.bfloat16)}) == 1


def test_parquet_of_float32(folder: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = TEXT.replace("[0, 200]", "[0, 0.1]").replace("[1, 50]", "[0, 1.3]")
    (folder / "ends.loss").write_text(text, encoding="utf-8")
    table = {**{x: P[:, i] for i, x in enumerate("abc")}, "km": np.full(N, 0.1, np.float32)}
    table |= {"fee": pa.array([[1.3] * 3] * N, pa.list_(pa.float32())), "queue": pa.array([[1.0] * 2] * N)}
    parquet.write_table(pa.table(table), folder / "rows.parquet")
    done = CliRunner().invoke(
        main, ["order", str(folder / "ends.loss"), "--loss", "l", "--probs", str(folder / "rows.parquet"), "--row", "2"]
    )
    assert done.exit_code == 0, done.output


# On the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, predictor: udcp.SetPredictor) -> Path:
    (tmp_path / "s.loss").write_text(TEXT, encoding="utf-8")
    predictor.save(tmp_path / "p.json")
    np.save(tmp_path / "p.npy", P)
    np.save(tmp_path / "y.npy", Y)
    return tmp_path


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(main, [str(x) for x in arguments])
    assert done.exit_code == 2, (arguments, done.output)
    assert "Traceback" not in done.output
    return done.stderr


def csv(folder: Path, name: str = "rows.csv", **changed: Any) -> Path:
    columns: dict[str, Any] = {label: P[:, i] for i, label in enumerate("abc")}
    columns |= {"km": [7] * N, **{f"fee.{x}": [2] * N for x in "abc"}, **{f"queue.{x}": [3] * N for x in "xy"}}
    columns = {key: x for key, x in {**columns, **changed}.items() if x is not None}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder / name


def cells(value: object, row: int = 8) -> list[object]:
    return [value if i == row else 7 for i in range(N)]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"km": cells(999)}, "rows.csv: row 8: input 'km' is 999, outside [0, 200]: correct it, or widen the range"),
        ({"km": cells("nan")}, "rows.csv: row 8: input 'km' is not a finite number"),
        ({"km": cells("")}, "rows.csv: row 8: input 'km' is not a finite number"),
        ({"km": cells("far")}, "rows.csv: row 8: input 'km' is 'far', not a number"),
        ({"fee.b": cells(99)}, "rows.csv: row 8: input 'fee' of 'b' is 99, outside [1, 50]"),
        ({"fee.b": cells("x")}, "rows.csv: row 8: input 'fee' is 'x', not a number"),
        ({"queue.y": cells(99)}, "rows.csv: row 8: input 'queue' of 'y' is 99, outside [0, 60]"),
        ({"km": None}, "there is no column 'km', which the loss reads for each row: km: a number per row in [0, 200]"),
        ({"fee.c": None}, "input 'fee' has a column 'fee.a' but no 'fee.c'"),
        ({"kms": [1] * N}, "column 'kms' is not a label"),
    ],
)
def test_tables(changed: dict[str, Any], says: str, folder: Path) -> None:
    rows = ("--probs", csv(folder, **changed))
    assert says in refused("predict", folder / "p.json", *rows, "-o", folder / "o.csv")
    assert not (folder / "o.csv").exists()


def test_commands_that_read_rows_refuse_alike(folder: Path) -> None:
    rows = ("--probs", csv(folder, km=cells(999)), "--truth", folder / "y.npy")
    loss, saved, says = folder / "s.loss", folder / "p.json", "row 8: input 'km' is 999, outside [0, 200]"
    assert says in refused("calibrate", loss, "--loss", "l", *rows, "-o", folder / "o.json")
    assert says in refused("evaluate", saved, *rows)
    assert says in refused("monitor", saved, *rows)
    assert says in refused("compare", loss, "--loss", "l", *rows)
    assert says in refused("validate", loss, "--loss", "l", "--cases", "1", *rows)
    assert says in refused("gap", loss, "--loss", "l", *rows[:2])
    one = says.replace("row 8: ", "")
    assert one in refused("order", loss, "--loss", "l", *rows[:2], "--row", "8")
    assert one in refused(
        "eval", loss, "--loss", "l", "a", "--input", "km=999", "--input", "fee=2,2,2", "--input", "queue=1,1"
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {},
            "reads row inputs, 'km', 'fee', 'queue', but an array has no columns for them: give them in a",
        ),
        ({"km": np.zeros(N)}, "input 'fee'"),
        (inputs(km=np.zeros(5)), "input km: 5 entries for 12 rows"),
        (inputs(km=at(2, 999)), "row 2: input 'km' is 999"),
        (inputs(fee=np.ones((N, 4))), "input 'fee' has shape (12, 4), expected (12, 3)"),
    ],
)
def test_a_file_of_inputs(given: dict[str, Any], says: str, folder: Path) -> None:
    np.savez(folder / "in.npz", **given)
    more = ("--inputs", folder / "in.npz") if given else ()
    assert says in refused("predict", folder / "p.json", "--probs", folder / "p.npy", *more, "-o", folder / "o.csv")


def test_inputs_that_nothing_reads(folder: Path) -> None:
    np.savez(folder / "in.npz", **inputs())
    rows = ("--probs", folder / "p.npy", "--truth", folder / "y.npy", "--inputs", folder / "in.npz")
    says = refused("calibrate", folder / "s.loss", "--loss", "plain", *rows, "-o", folder / "o.json")
    assert "the loss reads no inputs: leave it out" in says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("km=12",), "input 'fee' is missing"),
        ((), "give --input km=NUMBER --input fee=a:NUMBER,... --input queue=x:NUMBER,..."),
        (("kms=12",), "no input 'kms'; did you mean 'km'"),
        (("km=x",), "--input km: 'x' is not a number"),
        (("km",), "is not of the form name=value"),
        (("km=1", "km=2"), "'km' is set twice"),
        (("km=1", "fee=1,2", "queue=1,1"), "input 'fee' has shape (1, 2), expected (1, 3)"),
        (("km=1", "fee=a:1,b:2", "queue=1,1"), "input 'fee' has no number for 'c'"),
        (("km=1", "fee=a:1,b:2,d:3", "queue=1,1"), "input 'fee' has no entry 'd'"),
        (("km=1", "fee=2,2,2", "queue=1,nan"), "input 'queue' of 'y' is not a finite number"),
        (("km=1", "fee=a:1,b:2,a:3", "queue=1,1"), "--input fee: 'a' is given twice: give each entry once"),
        (("km=1", "fee.a=1", "fee=1,2,3", "queue=1,1"), "input 'fee' has columns 'fee' and 'fee.a'"),
    ],
)
def test_the_inputs_of_one_set(given: tuple[str, ...], says: str, folder: Path) -> None:
    options = [part for text in given for part in ("--input", text)]
    assert says in refused("eval", folder / "s.loss", "--loss", "l", "a", *options)


def test_an_unknown_input_is_refused_if_the_loss_reads_none(folder: Path) -> None:
    says = refused("eval", folder / "s.loss", "--loss", "plain", "a", "--input", "kms=3")
    assert "no input 'kms'; did you mean 'km'" in says
    both = ("--input", "fee.a=2", "--input", "fee=1,2,3")
    done = CliRunner().invoke(main, ["eval", str(folder / "s.loss"), "--loss", "plain", "a", *both])
    assert done.exit_code == 0  # a loss that reads none of them
