"""Rows that stay in their files: whatever is calibrated, evaluated and watched by them is what the array comes to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.columns import BlockedMatrix, apply_by_rows, changed, to_array
from udcp_dsl.rows.rows import Rows
from udcp_dsl.rows.source import Source, open_rows

SPEC = """
labels {ant, bee, cat, dog, elk, fox}
categories kind { small: {ant, bee}, pets: {cat, dog}, wild: {elk, fox} }
costs harm { ant: 1, fox: 4, default: 2 }
hierarchy life { small {ant, bee}, large { pets {cat, dog}, elk, fox } }
loss plain = count(kind) + 0.1 * size
loss far = spread(life) + 0.1 * size
"""
LABELS = udcp.loads(SPEC, loss="plain").labels
N = 240
rng = np.random.default_rng(0)
P = rng.dirichlet(np.full(6, 0.5), N)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)
SITES = np.array(["north", "south", "west"])[rng.integers(0, 3, N)]
WEIGHTS = rng.uniform(0.5, 2.0, N)


def table(P: np.ndarray, rows: slice = slice(None)) -> pa.Table:
    return pa.table(
        {
            "id": [f"row{i}" for i in range(N)][rows],
            "site": SITES[rows],
            "weight": WEIGHTS[rows],
            "truth": np.array(LABELS)[Y][rows],
            "p": pa.array(list(P[rows])),
        }
    )


def in_parts(folder: Path, P: np.ndarray = P, many: int = 40) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(N), many)):
        pq.write_table(table(P, slice(rows[0], rows[-1] + 1)), folder / f"part-{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def parts_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[type, int], Path]:
    """The folder of so many parts, of numbers of a type."""
    made = tmp_path_factory.mktemp("parts")
    return cache(lambda dtype, many: in_parts(made / f"{dtype.__name__} {many}", P.astype(dtype), many))


def opened(path: Path, **columns: Any) -> Source:
    return open_rows(path, LABELS, **{"truth_column": "truth", **columns})


KINDS: dict[str, dict[str, Any]] = {
    "marginal": {},
    "several alphas": {"alpha": [0.3, 0.1]},
    "group": {"conditional": "group"},
    "pooled": {"conditional": "group", "pool": True},
    "class": {"conditional": "class"},
    "difficulty": {"conditional": "difficulty", "bins": 3},
    "confidence": {"confidence": 0.8},
    "all at once": {"confidence": 0.8, "simultaneous": True, "conditional": "group"},
    "risk": {"risk": "harm", "alpha": 0.5},
    "risk by group": {"risk": "harm", "alpha": 0.5, "conditional": "group"},
    "temperature": {"repair": "temperature"},
    "temperature by difficulty": {"repair": "temperature", "conditional": "difficulty", "bins": 3},
    "a given temperature": {"repair": udcp.Repair(1 / 1.5)},
    "nonempty": {"nonempty": True},
    "randomize": {"randomize": True},
    "weights": {},
}


# `price` has an anchor for the loss that it is given, and `penalized` a lambda to tune.
WITH_ANCHOR = ("marginal", "several alphas", "group", "class", "temperature by difficulty", "risk by group", "weights")
WITH_LAMBDA = ("marginal", "group", "risk", "temperature", "nonempty", "weights")
OTHERS = [
    *(("price", kind, np.float32) for kind in WITH_ANCHOR),
    *(("penalized", kind, np.float64) for kind in WITH_LAMBDA),
]
# The others read the parts over and over: seven of uneven length.
CASES = [*(("base", kind, np.float32, 40) for kind in KINDS), *((*case, 7) for case in OTHERS)]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows, here and there alike
@pytest.mark.parametrize(("oracle", "kind", "dtype", "many"), CASES)
def test_every_kind_of_calibration_by_parts_is_that_of_one_array(
    tmp_path: Path, parts_of: Callable[[type, int], Path], oracle: str, kind: str, dtype: type, many: int
) -> None:
    """Thresholds, anchors, lambda, temperature and kept scores, to the last bit."""
    values = P.astype(dtype)
    options = {"alpha": 0.3, **KINDS[kind]}
    columns: dict[str, Any] = {"id_column": "id"}
    given: dict[str, Any] = {"ids": [f"row{i}" for i in range(N)]}
    if options.get("conditional") == "group":
        columns["group_column"], given["groups"] = "site", SITES
    if kind == "weights":
        columns["weight_column"], given["weights"] = "weight", WEIGHTS
    loss = udcp.loads(SPEC, loss="far" if oracle == "price" else "plain")
    one, parts = (udcp.SetPredictor(loss, oracle, seed=3, **options) for _ in range(2))
    one.calibrate(values, np.array(LABELS)[Y], **given)
    rows = opened(parts_of(dtype, many), **columns).stored()
    assert isinstance(rows.P, BlockedMatrix)
    parts.calibrate(rows)
    one.save(tmp_path / "one.json")
    parts.save(tmp_path / "parts.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "parts.json").read_bytes()
    if oracle == "price":
        assert one.anchors is not None
    if oracle == "penalized":
        assert one.tuning is not None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["group", "difficulty", "risk", "temperature", "randomize"])
def test_what_stored_rows_are_evaluated_and_watched_to_is_that_of_an_array(tmp_path: Path, kind: str) -> None:
    options = {"alpha": 0.3, **KINDS[kind]}
    ids = [f"row{i}" for i in range(N)]
    groups = SITES if options.get("conditional") == "group" else None
    loss = udcp.loads(SPEC, loss="far")
    predictor = udcp.SetPredictor(loss, "price", **options).calibrate(P, Y, groups=groups, ids=ids)
    fresh = np.roll(P, 1, axis=1)
    rows = opened(in_parts(tmp_path / "in", fresh, 7), id_column="id", group_column="site").stored()
    found, stored = udcp.evaluate(predictor, fresh, Y, groups=SITES, ids=ids), udcp.evaluate(predictor, rows)
    assert stored.as_dict() == found.as_dict()
    assert stored.certified == found.certified
    with pytest.raises(InputError, match="not kept"):
        _ = stored.sets
    monitors = [udcp.Monitor(predictor) for _ in range(2)]
    of_array, of_blocks = monitors[0].update(fresh, Y, groups=groups, ids=ids), monitors[1].update(rows)
    assert [(alarm.row, alarm.where, alarm.id) for alarm in of_blocks] == [(x.row, x.where, x.id) for x in of_array]
    for one, other in zip(monitors[0].streams, monitors[1].streams, strict=True):
        assert (one.seen, one.missed) == (other.seen, other.missed)
        assert one.log_evidence == pytest.approx(other.log_evidence)  # sums of logarithms, in other steps


def test_of_every_layout_the_rows_are_read_alike(tmp_path: Path) -> None:
    names = np.array(LABELS)[Y]
    wide = pa.table({"truth": names, **{label: P[:, j] for j, label in enumerate(LABELS)}})
    pq.write_table(wide, tmp_path / "p.parquet", row_group_size=7)
    with pa.OSFile(str(tmp_path / "p.arrow"), "w") as file, pa.ipc.new_file(file, wide.schema) as writer:
        writer.write_table(wide, max_chunksize=11)
    wide.to_pandas().to_csv(tmp_path / "p.csv", index=False)
    wide.to_pandas().to_json(tmp_path / "p.jsonl", orient="records", lines=True, double_precision=15)
    np.save(tmp_path / "p.npy", P)
    for name in ("p.parquet", "p.arrow", "p.csv", "p.jsonl", "p.npy"):
        array = name == "p.npy"
        source = open_rows(
            tmp_path / name,
            LABELS,
            truth_column=None if array else "truth",
            beside={"true labels": names} if array else None,
        )
        rows, whole = source.stored(), source.whole()
        assert len(rows) == N
        assert to_array(rows.P).tolist() == whole.P.tolist()
        assert rows.truth.tolist() == Y.tolist()
        assert rows.hits == whole.hits
        assert rows.true_probabilities.tolist() == whole.true_probabilities.tolist()
        some = np.array([3, 17, 200])
        assert rows.take(some).highest_probabilities.tolist() == whole.P[some].max(axis=1).tolist()


def test_what_is_asked_of_rows_by_parts_is_of_their_own_truth(parts_of: Callable[[type, int], Path]) -> None:
    rows = opened(parts_of(np.float64, 7)).stored()
    assert len(list(rows.P.blocks())) == 7
    assert rows.true_probabilities.tolist() == P[np.arange(N), Y].tolist()
    assert rows.hits == (P.argmax(axis=1) == Y).sum()


def test_a_file_of_true_labels_has_one_for_each_row(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", P)
    with pytest.raises(InputError, match="true labels: 239 entries for 240 rows"):
        open_rows(tmp_path / "p.npy", LABELS, beside={"true labels": Y[1:]}).stored()
    pq.write_table(table(P).select(["p"]), tmp_path / "p.parquet")
    with pa.OSFile(str(tmp_path / "p.arrow"), "w") as file, pa.ipc.new_file(file, table(P).schema) as writer:
        writer.write_table(table(P), max_chunksize=50)
    for name in ("p.parquet", "p.arrow"):  # of which the second does not say how many rows it has
        with pytest.raises(InputError, match="true labels: 241 entries for 240 rows"):
            open_rows(tmp_path / name, LABELS, column="p", beside={"true labels": [*Y, 0]}).stored()


def test_faults_name_part_and_row(tmp_path: Path) -> None:
    folder = in_parts(tmp_path / "in")
    rows = opened(folder, id_column="id").stored()
    bad = P.copy()
    bad[6 * 12 + 4, 2] = np.nan
    pq.write_table(table(bad, slice(72, 78)), folder / "part-12.parquet")
    predictor = udcp.SetPredictor(udcp.loads(SPEC, loss="plain"), "lac")
    with pytest.raises(InputError, match=r"part-12\.parquet: .*row 4.* NaN"):
        predictor.calibrate(rows)
    pq.write_table(table(P, slice(72, 80)), folder / "part-12.parquet")
    with pytest.raises(InputError, match="240 rows before, and now has 242"):
        predictor.calibrate(rows)
    assert predictor.calibration is None
    strange = table(P, slice(72, 78)).set_column(3, "truth", pa.array(["cat", "dog", "yak", "cat", "cat", "cat"]))
    pq.write_table(strange, folder / "part-12.parquet")
    with pytest.raises(InputError, match=r"part-12\.parquet: .*row 2 .*yak"):
        opened(folder).stored()


def test_few_rows_are_held_and_many_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = in_parts(tmp_path / "in")
    assert not isinstance(opened(folder).read().P, BlockedMatrix)
    monkeypatch.setattr("udcp_dsl.rows.source.MEMORY_CELLS", N * len(LABELS) - 1)
    assert isinstance(opened(folder).read().P, BlockedMatrix)
    with pytest.warns(UserWarning, match="a random sample of 239 of the 240 rows is used"):
        sample = opened(folder).sampled(0)
    assert sample.P.shape == (239, 6)
    lines = {tuple(line): y for line, y in zip(P.tolist(), Y.tolist(), strict=True)}
    assert [lines[tuple(line)] for line in sample.P.tolist()] == sample.truth.tolist()


def test_rows_of_a_stored_matrix_are_taken_and_changed_block_by_block() -> None:
    reads = []

    def read() -> Any:
        for start in range(0, 10, 3):
            reads.append(start)
            yield np.arange(20.0).reshape(10, 2)[start : start + 3]

    stored = BlockedMatrix((10, 2), read)
    assert to_array(stored[2:5]).tolist() == [[4, 5], [6, 7], [8, 9]]
    assert reads == [0, 3]  # what comes after is left unread
    chosen = stored[np.array([0, 4, 9])]
    assert to_array(changed(chosen, lambda block: -block)).tolist() == [[0, -1], [-8, -9], [-18, -19]]
    assert to_array(chosen[1:]).tolist() == [[8, 9], [18, 19]]
    assert apply_by_rows(stored[:0], lambda block: block.sum(axis=1)).shape == (0,)
    with pytest.raises(IndexError, match="rising"):
        stored[np.array([2, 1])]
    rows = Rows(("a", "b"), stored, np.zeros(10, dtype=np.int64))  # type: ignore[arg-type]  # stands for the array
    assert [len(block) for block in rows.blocks()] == [3, 3, 3, 1]


PEAK = """
import re, resource, sys
from pathlib import Path
import numpy as np, pyarrow.parquet, scipy.stats
from udcp_dsl.cli import main
from udcp_dsl.rows import source
source.MEMORY_CELLS, source.BATCH = 1 << 19, 1 << 18
def run(*arguments):
    sys.argv = ["udcp", *arguments]
    try:
        main()
    except SystemExit as ended:
        assert ended.code in (0, 1, None), ended.code
folder, few, many = sys.argv[1:]
def all_three(rows):
    columns = ("--probs", f"{folder}/{rows}", "--truth", "truth")
    run("calibrate", f"{folder}/s.loss", *columns, "--oracle", "lac", "-o", f"{folder}/p.json", "--json")
    run("evaluate", f"{folder}/p.json", *columns, "--json")
    run("monitor", f"{folder}/p.json", *columns, "--json")
    if Path("/proc/self/status").exists():  # what Linux says of resources begins with what the parent had taken
        return int(re.search("VmHWM:[^0-9]+([0-9]+) kB", Path("/proc/self/status").read_text())[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print("PEAK", all_three(few), all_three(many))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Of 70 MiB of probabilities, and of what is asked of each, a few MiB are held: 8 bytes a row and a number."""
    K = 256
    (tmp_path / "s.loss").write_text(f"labels 0..{K - 1}\nloss l = size\n")
    for name, n in (("few", 6_000), ("many", 72_000)):
        (tmp_path / name).mkdir()
        part = rng.dirichlet(np.ones(K), 6_000).astype(np.float32)
        truth = [str(y) for y in rng.integers(0, K, 6_000)]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), K)
        for number in range(n // 6_000):
            file = tmp_path / name / f"part-{number}.parquet"
            pq.write_table(pa.table({"truth": truth, "p": lists}), file, use_dictionary=["truth"], row_group_size=2_000)
    command = [sys.executable, "-c", PEAK, str(tmp_path), "few", "many"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    few, many = (int(x) for x in out.split("PEAK ")[1].split())
    assert many - few < 40, (few, many)


def test_of_several_columns_of_lists_every_command_is_told_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.loss").write_text(SPEC)
    pq.write_table(table(P).append_column("seen", pa.array([[1.0, 2.0]] * N)), "p.parquet")
    rows = ("--probs", "p.parquet", "--truth", "truth", "--json")
    unnamed = CliRunner().invoke(main, ["calibrate", "s.loss", *rows, "-o", "p.json"])
    assert unnamed.exit_code == 2
    assert "with --column" in unnamed.output
    for command in (
        ["calibrate", "s.loss", "--oracle", "lac", "-o", "p.json"],
        ["evaluate", "p.json"],
        ["monitor", "p.json"],
        ["compare", "s.loss", "--oracle", "lac", "--splits", "1"],
    ):
        done = CliRunner().invoke(main, [*command, *rows, "--column", "p"])
        assert done.exit_code in (0, 1), done.output


def test_weights_of_a_column_beside_the_lists_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.loss").write_text(SPEC)
    pq.write_table(table(P), "p.parquet")
    command = ["calibrate", "s.loss", "--probs", "p.parquet", "--truth", "truth", "--weights", "weight", "-o", "p.json"]
    assert CliRunner().invoke(main, [*command, "--oracle", "lac"]).exit_code == 0
    loss = udcp.loads(SPEC, loss="far")
    expected = udcp.SetPredictor(loss, "lac").calibrate(P, Y, weights=WEIGHTS)
    assert udcp.SetPredictor.load("p.json").calibrated.as_dict() == expected.calibrated.as_dict()
