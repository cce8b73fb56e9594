"""Faults of what machines do to a run: damaged files, killed processes, clusters, progress."""

from __future__ import annotations

from fault import Fault

FILES = "tests/udcp_dsl/predict/test_files.py"
TABLES = "tests/udcp_dsl/rows/test_damaged_tables.py"
ATTRIBUTES = "tests/udcp_dsl/rows/test_row_attributes.py"
PROGRESS = "tests/udcp_dsl/cli/test_progress.py"
COMPILED = "tests/udcp_solvers/numeric/test_compiled.py"
DASK = "tests/udcp_dsl/test_dask.py"

MACHINE_FAULTS = (
    Fault(
        "parquet: the footer's two numbers of rows are not compared",
        "udcp_dsl/rows/arrow.py",
        "if in_groups != metadata.num_rows:",
        "if False:",
        (TABLES, "-k", "footer"),
    ),
    Fault(
        "parquet: rows of the next group take the places of missing ones",
        "udcp_dsl/rows/arrow.py",
        "yield from batches if len(run) == 1 else list(batches)",
        "yield from batches",
        (TABLES, "-k", "footer"),
    ),
    Fault(
        "parquet: missing rows are lost in silence",
        "udcp_dsl/rows/arrow.py",
        "if found != expected:",
        "if found > expected:",
        (TABLES, "-k", "footer"),
    ),
    Fault(
        "ids that no file can hold are taken",
        "udcp_dsl/rows/columns.py",
        "if not _is_writable(joined):",
        "if False:",
        (ATTRIBUTES, "-k", "bad_groups"),
    ),
    Fault(
        "temporary files that are still written are removed",
        "udcp_dsl/files.py",
        "if ours and free and _is_at(descriptor, path):",
        "if ours and _is_at(descriptor, path):",
        (FILES,),
    ),
    Fault(
        "temporary files of other users are removed",
        "udcp_dsl/files.py",
        "found.st_uid == os.geteuid()",
        "found.st_uid >= 0",
        (FILES,),
    ),
    Fault(
        "temporary files of other machines are removed",
        "udcp_dsl/files.py",
        '"\\0".join([os.uname().nodename, _machine_id(), target.name])',
        '"\\0".join([os.uname().nodename, target.name])',
        (FILES,),
    ),
    Fault(
        "a temporary file that was removed before it was locked is written to",
        "udcp_dsl/files.py",
        "if try_lock(descriptor) is not False and _is_at(descriptor, path):",
        "if try_lock(descriptor) is not False:",
        (FILES,),
    ),
    Fault(
        "a cache of kernels that is damaged is not emptied",
        "solvers/udcp_solvers/numeric/compiled.py",
        "                cache.flush()\n",
        "                pass\n",
        (COMPILED, "-k", "damaged"),
    ),
    Fault(
        "progress falls when another thread reports",
        "udcp_dsl/cli/progress.py",
        "done = max(done, self._done)",
        "done = max(done, 0)",
        (PROGRESS, "-k", "never_falls"),
    ),
    Fault(
        "rows are counted before they are written",
        "udcp_dsl/cluster/streams.py",
        "            write(block)\n            tally += ",
        "            tell is None or tell(tally.n + len(block.sizes))\n            write(block)\n            tally += ",
        (PROGRESS, "-k", "when_they_are_written"),
    ),
    Fault(
        "dask: nothing is said of a cluster without workers",
        "udcp_dsl/cluster/dask.py",
        "if now >= self._next_word:",
        "if False:",
        (DASK, "-k", "gives_up"),
    ),
    Fault(
        "torch: weights are read by versions in which they could run code",
        "udcp_dsl/torch/weights.py",
        "SAFE = (2, 6)",
        "SAFE = (2, 5)",
        ("tests/udcp_dsl/torch/test_probabilities.py", "-k", "unsafely or safely"),
    ),
)
