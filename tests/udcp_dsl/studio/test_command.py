"""`udcp studio` at the command line: what it refuses before anything is served, and two studios side by side."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from udcp_dsl import loads
from udcp_dsl.cli import main
from udcp_dsl.datasets.kept_rows import example_specs
from udcp_dsl.studio import app
from udcp_dsl.studio.spec_folder import open_spec
from udcp_dsl.studio.studio import Studio


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["none.loss"], "cannot read"),
        (["pets.csv"], "ends in .loss"),
        (["."], "2 specs"),
        (["pets.loss", "--probs", "p.npy"], "belong together"),
        (["--probs", "p.npy", "--truth", "y.npy"], "needs a SPEC"),
        (["pets.loss", "--alpha", "0.1", "--alpha", "0.2"], "takes one value"),
        (["pets.loss", "--alpha", "2"], "strictly between 0 and 1"),
        (["pets.loss", "--probs", "p.npy", "--truth", "y.npy"], "p.npy"),
        (["bad.loss", "--probs", "p.npy", "--truth", "y.npy"], "no 'sizee'"),
    ],
)
def test_a_mistake_is_told_before_anything_is_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str
) -> None:
    (folder / "bad.loss").write_text("labels { a }  loss l = sizee")
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, ["studio", "--no-browser", *arguments])
    assert done.exit_code == 2
    assert why in done.output
    assert "Traceback" not in done.output


def test_rows_of_a_table_keep_their_inputs_and_those_of_an_array_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far.loss").write_text("labels { a, b }  input km in [0, 9]  loss l = size + km * any({ a })")
    rows = "".join(f"{y / 4},{1 - y / 4},{'ab'[y % 2]},{7 - y}\n" for y in range(4))
    (tmp_path / "rows.csv").write_text(f"a,b,truth,km\n{rows}")
    (tmp_path / "bare.csv").write_text("km\n5\n6\n7\n8\n")
    np.save(tmp_path / "p.npy", np.full((4, 2), 0.5))
    np.save(tmp_path / "y.npy", np.array([0, 1, 0, 1]))
    monkeypatch.chdir(tmp_path)
    found = {}

    def seen(studio: Studio, *rest: object) -> None:
        found["rows"] = studio._supply(loads((tmp_path / "far.loss").read_text())).calibration

    monkeypatch.setattr("udcp_dsl.studio.serving.serve", seen)
    array = ["--probs", "p.npy", "--truth", "y.npy"]
    for arguments, drawn in (
        (["--probs", "rows.csv", "--truth", "truth"], False),
        ([*array, "--inputs", "bare.csv"], False),
        (array, True),
    ):
        done = CliRunner().invoke(main, ["studio", "far.loss", "--no-browser", *arguments])
        assert done.exit_code == 0, done.output
        assert found["rows"].inputs is not None
        assert (found["rows"].inputs["km"] % 1 == 0).all() == (not drawn)


def test_without_the_extra_it_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(main, ["studio", "--no-browser", str(folder / "pets.loss")])
    assert done.exit_code == 2
    assert "udcp_dsl[studio]" in done.output


# A studio for each line of input, in processes forked from one that has imported what takes a second.
STUDIOS = """
import importlib, os, sys
from udcp_dsl import loads
from udcp_dsl.cli import main
for name in "lark numba.np.arraymath scipy.stats udcp_dsl.cli.studio udcp_dsl.studio.serving uvicorn".split():
    importlib.import_module(name)
for line in sys.stdin:
    if not os.fork():
        main(line.split())
"""


def test_two_studios_are_served_side_by_side_on_rows_of_ones_own(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(folder / "p.npy", rng.dirichlet(np.ones(6), size=300))
    np.save(folder / "y.npy", rng.integers(0, 6, size=300))
    command = "studio pets.loss --no-browser --json --port 18600"
    program = [sys.executable, "-c", STUDIOS]
    pipe = subprocess.PIPE
    forking = subprocess.Popen(program, cwd=folder, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert forking.stdin is not None
    assert forking.stdout is not None
    try:
        addresses = []
        for more in ("", "--probs p.npy --truth y.npy"):
            print(command, more, file=forking.stdin, flush=True)
            told = ""
            while not told.rstrip().endswith("}"):
                line = forking.stdout.readline()
                assert line, told
                told += line
            addresses.append(json.loads(told)["address"])
        ports, tokens = zip(*(re.findall(r"127\.0\.0\.1:(\d+)/([\w-]+)/", x)[0] for x in addresses), strict=True)
        assert ports[0] != ports[1]
        assert tokens[0] != tokens[1]
        for address in addresses:
            assert httpx.get(address).status_code == 200
        crossed = addresses[0].replace(tokens[0], tokens[1])
        assert httpx.get(crossed).status_code == 403
    finally:
        os.killpg(forking.pid, signal.SIGTERM)
        forking.communicate(timeout=20)  # until all have ended, and nobody is left to write


def test_the_examples_are_all_there_with_their_data() -> None:
    specs = example_specs()
    assert {"dermatology/triage", "languages/branches", "tickets/tickets"} <= set(specs)
    for path in specs.values():
        place, text = open_spec(path)
        assert text
        assert place.name == path.name


def test_the_bundle_is_whole_and_asks_for_nothing() -> None:
    script = app.script()
    assert len(script) > 200_000
    assert "</script" not in script.lower()  # it stands inside a page that is exported
    assert not re.findall(r"""(?:fetch|import|src=|href=)\s*\(?["'`]https?:""", script)
    page = app.exported({"state": {"name": "</script><b>x"}})
    assert "<b>x" not in page
    assert page.count("</script>") == 2


def test_the_lock_names_no_registry() -> None:
    folder = Path(app.__file__).with_name("page")
    lock = folder / "package-lock.json"
    if not lock.exists():
        pytest.skip("an installation has the bundle alone")
    assert "resolved" not in lock.read_text(encoding="utf-8")
    assert json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]["codemirror"] == "6.0.2"
