"""Specs made by an attacker: each is compiled or refused within 5 seconds of the processor and 500 MB, in few words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

resource = pytest.importorskip("resource")

ROOT = Path(__file__).parents[1]
SECONDS, MEGABYTES = 5, 500
LONGEST = 20_000  # characters of a message
BOMBS = {
    "unknown names on one line": "labels {a}\nloss l = " + " + ".join(f"sum(x{i})" for i in range(8000)),
    "parentheses": "labels {a}\nloss l = " + "(" * 20_000 + "size" + ")" * 20_000,
    "a deep hierarchy": "labels {a}\nhierarchy h " + "{ x " * 5000 + "{ a }" + "}" * 5000 + "\nloss l = size",
    "a billion labels": "labels 0..999999999\nloss l = size",
    "a range of a hundred digits": f"labels 0..1{'0' * 100}\nloss l = size",
    "a power": "labels 0..9\nloss l = size ^ 100000000",
    "a tower of powers": "labels 0..9\nloss l = " + " ^ ".join(["9"] * 150),
    "a number of a million digits": f"labels {{a}}\nloss l = 1{'0' * 1_000_000} * size",
    "an exponent": "labels {a}\nloss l = 1e999999999 * size",
    "a name of a million letters": f"labels {{a}}\nloss l = sum({'x' * 1_000_000})",
    "lets that double": "labels {a, b}\nlet x0 = size\n"
    + "\n".join(f"let x{i} = x{i - 1} + x{i - 1}" for i in range(1, 900))
    + "\nloss l = x899",
    "strange characters": "labels {a}\nloss l = size " + "§" * 200_000,
    "signs of other languages among labels": "labels { a " + "& " * 30_000 + "}\nloss l = size",
    "a label of ten megabytes": 'labels { a, "' + "x" * 10_000_000 + '" }\nloss l = size',
    "a label of almost four megabytes": 'labels { a, "' + "x" * 3_900_000 + '" }\nloss l = size',
    "escapes": 'labels { a, "' + "\\u0041" * 600_000 + '" }\nloss l = size',
    "labels in quotes": "labels { " + ", ".join(f'"label number {i}"' for i in range(160_000)) + " }\nloss l = size",
    "lets": "labels {a}\n" + "\n".join(f"let x{i} = size" for i in range(100_000)) + "\nloss l = x0",
    "wrong parameters": "labels {a}\n" + "\n".join(f"param p{i} = q{i}" for i in range(50_000)) + "\nloss l = size",
    "costs of a million labels": "labels 0..999999\n"
    + "\n".join(f"costs c{i} {{ default: 1 }}" for i in range(1000))
    + "\nloss l = size",
    "hierarchies of a million labels": "labels 0..999999\n"
    + "\n".join(f"hierarchy h{i} {{ x {{ 0..999999 }} }}" for i in range(3))
    + "\nloss l = size",
    "categories in ranges": "labels 0..9999\n"
    + "\n".join(f"category c{i} {{ 0..9999 }}" for i in range(2000))
    + "\nloss l = size",
    "hierarchies from a table": 'labels from "many.csv" column label\n'
    + "\n".join(f'hierarchy h{i} from "many.csv" levels level' for i in range(100))
    + "\nloss l = size",
    "a hierarchy of many nodes": 'labels from "many.csv" column label\nhierarchy h from "nodes.json"\nloss l = size',
    "NUL": "labels {a}\nloss l = size" + "\0" * 200_000,
    "a million labels and 500 terms": "labels 0..999999\nloss l = " + " + ".join(["size"] * 500),
    "a million labels and 500 terms of a category": "labels 0..999999  category c { 1, 2 }\nloss l = "
    + " + ".join(["any(c)"] * 500),
    "products of a category and a comparison": "labels 0..999999\n"
    + "\n".join(f"category c{i} {{ {i}, {i + 31} }}" for i in range(30))
    + "\nloss l = "
    + " + ".join(f"any(c{i}) * (size >= {i + 1})" for i in range(30)),
    "largest costs of many labels": "labels 0..99999\n"
    + "\n".join(f"costs c{i} {{ default: {i} }}" for i in range(110))
    + "\nloss l = "
    + " + ".join(f"max(c{i})" for i in range(110)),
    "a hierarchy of a million labels": "labels 0..999999\nhierarchy h { "
    + ", ".join(f"n{i} {{ {i}0000..{i}9999 }}" for i in range(1, 100))
    + ", n0 { 0..9999 } }\nloss l = 2 * diameter(h) + 0.5 * count(h.level(1)) + 0.01 * size",
    "a table of a million labels": "labels 0..999999  category c { 0..499999 }\nloss l = size(c) ^ 2 + 0.01 * size",
    "a choice among a million labels": "labels 0..999999\nloss l = if any({ 1, 2 }) then size ^ 2 else 3 * size",
}


def _different_costs(K: int, terms: Iterable[str]) -> str:
    costs = ", ".join(f"{i}: {i}.{i % 97 + 1}" for i in range(K))
    return f"labels 0..{K - 1}\ncosts c {{ {costs} }}\nloss l = " + " + ".join(terms)


BOMBS |= {
    "largest of different costs": _different_costs(2000, (f"{i + 1} * max(c)" for i in range(2500))),
    "largest of different costs, cut off": _different_costs(2000, (f"min(max(c), {i + 1})" for i in range(1500))),
    "comparisons of the largest cost": _different_costs(2000, (f"(max(c) >= {i + 1}) * sum(c)" for i in range(1500))),
    "comparisons of two set functions": _different_costs(300, (f"(sum(c) >= {i + 1} * max(c))" for i in range(2500))),
    "largest of several different costs": _different_costs(2800, ["size"]).replace(
        "\nloss",
        "".join(
            f"\ncosts c{i} {{ " + ", ".join(f"{y}: {y * (2 * i + 3) % 2800}" for y in range(2800)) + " }"
            for i in range(8)
        )
        + "\nloss",
    )
    + "".join(f" + max(c{i})" for i in range(8)),
    "comparisons of sums": _different_costs(3000, (f"(sum(c) >= {i + 1})" for i in range(300))),
}
NODES = 100_000
FILES = {
    "many.csv": "label,level\n" + "\n".join(f"l{i},g{i % 7}" for i in range(NODES)),
    "nodes.json": json.dumps({f"n{i}": [f"l{i}"] for i in range(NODES)}),
}
# Compiled, all others are refused.
SOUND = [
    "a hierarchy of many nodes",
    "a label of almost four megabytes",
    "escapes",
    "labels in quotes",
    "lets that double",
    "largest costs of many labels",
    "a hierarchy of a million labels",
    "a table of a million labels",
    "a choice among a million labels",
]
# One process for all of them, as it takes longer to begin one than to read a spec.
_RUN = """
import json, resource, sys, warnings
import udcp_dsl as udcp
import udcp_dsl.compile.passes, udcp_dsl.language.parse
from udcp_dsl.spec_warnings import spec_warnings
warnings.simplefilter("ignore")
udcp.loads("labels {a}  loss l = size")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
resource.setrlimit(resource.RLIMIT_AS, (used + (MEGABYTES << 20),) * 2) if used else None
found = {}
for name in json.load(sys.stdin):
    begun = resource.getrusage(resource.RUSAGE_SELF)
    try:
        spec_warnings(udcp.load(name))
        said = "compiled"
    except udcp.SpecError as error:
        said = str(error)
    except MemoryError:
        said = "MemoryError" * 10_000
    ended = resource.getrusage(resource.RUSAGE_SELF)
    seconds = ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
    found[name] = [seconds, len(said), said[:200]]
print(json.dumps(found))
""".replace("MEGABYTES", str(MEGABYTES))


def test_bombs_are_answered_quickly_and_in_few_words(tmp_path: Path) -> None:
    for name, text in BOMBS.items():
        (tmp_path / f"{name}.loss").write_text(text, encoding="utf-8")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join(str(ROOT / part) for part in ("", "solvers", "grammars"))
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps([f"{name}.loss" for name in BOMBS]),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert not {name: x for name, x in found.items() if x[0] > SECONDS or x[1] > LONGEST}
    assert {name for name, x in found.items() if x[2] == "compiled"} == {f"{name}.loss" for name in SOUND}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_check_answers_in_5_seconds_and_500_mb(name: str, tmp_path: Path) -> None:
    """`udcp check` as users run it, with its oracles and its start; `-s` prints what each spec takes."""
    (tmp_path / "bomb.loss").write_text(BOMBS[name], encoding="utf-8")
    for file, text in FILES.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    with (tmp_path / "said").open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", "udcp_dsl.cli", "check", "bomb.loss"], cwd=tmp_path, stdout=said, stderr=said
        )
        _, status, used = os.wait4(running.pid, 0)
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(f"{seconds:6.2f} s {megabytes:6.0f} MB  {name}")
    assert os.waitstatus_to_exitcode(status) == (0 if name in SOUND else 2)
    assert b"Traceback" not in (tmp_path / "said").read_bytes()
    assert seconds <= SECONDS
    assert megabytes <= MEGABYTES
