"""Known faults at the doors: what is given by users, in files and arguments, and what they are warned of."""

from __future__ import annotations

from fault import Fault

WORDS = "tests/udcp_dsl/language/test_words.py"
LOSS = "tests/udcp_dsl/test_loss.py"
LABELS = "tests/udcp_dsl/compile/declare/test_labels.py"
SAVED = "tests/udcp_dsl/predict/test_saved.py"
DOUBTS = "tests/udcp_dsl/predict/test_input_warnings.py"
ARGUMENTS = "tests/udcp_dsl/predict/test_arguments.py"
VALUE = "tests/udcp_dsl/rows/test_value.py"
PARQUET = "tests/udcp_dsl/rows/test_parquet_files.py"
WRITING = "tests/udcp_dsl/predict/test_writing.py"
MANY_ROWS = "tests/udcp_dsl/inputs/test_many_rows.py"

INPUT_FAULTS = (
    Fault(
        "inputs: all rows are scored with the numbers of the first row",
        "udcp_dsl/per_row.py",
        "return self.values[i] if self.values.ndim > 1 else self.values[i].item()",
        "return self.values[0] if self.values.ndim > 1 else self.values[0].item()",
        (MANY_ROWS,),
    ),
    Fault(
        "inputs: rows with different structures are compiled together",
        "udcp_dsl/per_row.py",
        "        raise Split(holds)\n\n    def __getitem__",
        "        return bool(holds[0])\n\n    def __getitem__",
        (MANY_ROWS,),
    ),
    Fault(
        "inputs: numbers of one batch are reused for other rows",
        "udcp_dsl/expression/given.py",
        "            a is b or np.array_equal(a, b) for a, b in pairs\n",
        "            a.shape == b.shape for a, b in pairs\n",
        (MANY_ROWS, "-k", "batches"),
    ),
    Fault(
        "inputs: any error in the vectorised code falls back to single rows",
        "udcp_dsl/predict/oracle_by_row.py",
        "            except NotVectorised:\n",
        "            except (NotVectorised, TypeError):\n",
        (MANY_ROWS, "-k", "only_what"),
    ),
    Fault(
        "saved: a changed file is accepted",
        "udcp_dsl/predict/saved.py",
        'if content.get("sha256") != own:',
        'if content.get("sha256") is None:',
        ("tests/udcp_dsl/predict/test_saved.py",),
    ),
    Fault(
        "input: names with look-alike characters are accepted",
        "udcp_dsl/language/words.py",
        'unicodedata.is_normalized("NFKC", text)',
        "True",
        (WORDS,),
    ),
    Fault(
        "input: a keyword in full-width letters is accepted as a name",
        "udcp_dsl/language/scan.py",
        "    if normal != text:\n",
        "    if normal != text and not normal.isascii():\n",
        (WORDS,),
    ),
    Fault(
        "input: repeated labels in a set are merged",
        "udcp_dsl/loss.py",
        "if len(positions) > mask.sum():",
        "if len(positions) > self.K:",
        (LOSS,),
    ),
    Fault(
        "input: labels= accepts a set",
        "udcp_dsl/compile/passes.py",
        "isinstance(labels, Set | Mapping | bytes)",
        "isinstance(labels, Mapping | bytes)",
        (LABELS,),
    ),
    Fault(
        "input: infinity in JSON is accepted as a number",
        "udcp_dsl/compile/sources.py",
        "if not math.isfinite(number):",
        "if math.isnan(number):",
        ("tests/test_reference.py", "-k", "files"),
    ),
    Fault(
        "input: suggestions are searched for every misspelt name",
        "udcp_dsl/compile/declare/declared.py",
        "if self._compared > _MOST_COMPARED:",
        "if self._compared > 1000 * _MOST_COMPARED:",
        ("tests/udcp_dsl/compile/test_small_specs_stay_quick.py",),
    ),
    Fault(
        "input: labels are printed unescaped",
        "udcp_dsl/cli/terminal.py",
        "visible_lines(message)",
        "message",
        ("tests/udcp_dsl/cli/test_hostile_labels.py",),
    ),
    Fault(
        "saved: a file may specify a checkpoint",
        "udcp_dsl/predict/saved.py",
        '        if option in oracle["options"]',
        '        if option != "checkpoint" and option in oracle["options"]',
        (SAVED, "-k", "starts_no_process"),
    ),
    Fault(
        "saved: the option workers of a third-party oracle is written",
        "udcp_dsl/predict/saved.py",
        "predictor.oracle.options.items() if name not in _MACHINE_OPTIONS",
        "predictor.oracle.options.items()",
        (SAVED, "-k", "how_fast"),
    ),
    Fault(
        "input: class_names accepts a set",
        "udcp_dsl/predict/predictor.py",
        "names_of_classes(class_names)\n",
        "tuple(str(name) for name in class_names)\n",
        (ARGUMENTS, "-k", "misread"),
    ),
    Fault(
        "input: any value is accepted as a boolean",
        "udcp_dsl/rows/columns.py",
        "if not isinstance(value, bool | np.bool_):",
        "if value is None:",
        (ARGUMENTS, "-k", "misread or truth_values"),
    ),
    Fault(
        "input: pandas objects are joined by position even if their indexes differ",
        "udcp_dsl/rows/columns.py",
        "not indexed[first].equals(indexed[other])",
        "not indexed[first].sort_values().equals(indexed[other].sort_values())",
        (VALUE, "-k", "indexes"),
    ),
    Fault(
        "stored: every block gets the true labels of the first",
        "udcp_dsl/rows/columns.py",
        "*(column[at] for column in columns)",
        "*(column[: len(block)] for column in columns)",
        ("tests/udcp_dsl/rows/test_stored.py", "-k", "own_truth"),
    ),
    Fault(
        "input: the groups a and a with NUL are merged",
        "udcp_dsl/rows/columns.py",
        'if text[-1] == "\\0":',
        'if text == "\\0":',
        ("tests/udcp_dsl/rows/test_row_attributes.py", "-k", "bad_groups"),
    ),
    Fault(
        "input: an integer too large for a float is accepted",
        "udcp_dsl/predict/oracle.py",
        "    except OverflowError:\n        return False",
        "    except OverflowError:\n        return True",
        (ARGUMENTS, "-k", "misread"),
    ),
    Fault(
        "input warnings: a column order is tested on the rows that suggested it",
        "udcp_dsl/predict/row_warnings.py",
        "_labels_of_columns(likeliest[chosen_on], truth[chosen_on], K)",
        "_labels_of_columns(likeliest[judged_on], truth[judged_on], K)",
        (DOUBTS, "-k", "any_skill or guesses"),
    ),
    Fault(
        "input warnings: a single column is enough for a warning",
        "udcp_dsl/predict/row_warnings.py",
        "z = gains.sum() - max(gains.max(), 0.0)",
        "z = gains.sum()",
        (DOUBTS, "-k", "stuck"),
    ),
    Fault(
        "randomize: ids do not enter the random numbers",
        "udcp_dsl/predict/predictor.py",
        "row_draws(rows.P, self.seed, rows.ids)",
        "row_draws(rows.P, self.seed)",
        (DOUBTS, "-k", "equal_rows"),
    ),
    Fault(
        "randomize: rows that share a random number are not counted",
        "udcp_dsl/predict/row_warnings.py",
        "counts[counts > 1].sum()",
        "counts[counts > 2].sum()",
        (DOUBTS, "-k", "counted"),
    ),
    Fault(
        "csv: an id that looks like a formula is written as it is",
        "udcp_dsl/rows/writing.py",
        "to_cell(value) if isinstance(value, str) else value",
        "value",
        (WRITING, "-k", "formula"),
    ),
    Fault(
        "csv: an apostrophe that belongs to the text is removed",
        "udcp_dsl/rows/text.py",
        """re.compile(r"'*[""",
        """re.compile(r"'?[""",
        (WRITING, "-k", "cells"),
    ),
    Fault(
        "frames: ignored columns are not ignored at prediction",
        "udcp_dsl/predict/predictor.py",
        "**more, empty=True)\n        self._check_groups(rows, groups)\n        if self.randomize",
        "**{**more, 'ignore': ()}, empty=True)\n        self._check_groups(rows, groups)\n        if self.randomize",
        (ARGUMENTS, "-k", "ignored"),
    ),
    Fault(
        "streams: undecoded row groups are kept in memory",
        "udcp_dsl/rows/arrow.py",
        '"pre_buffer": False',
        '"pre_buffer": True',
        (PARQUET,),
    ),
    Fault(
        "streams: a piece begins at the start of its row group",
        "udcp_dsl/rows/selection.py",
        "        first = max(first, self.start)\n",
        "",
        (PARQUET,),
    ),
    Fault(
        "threads: further blocks are started after one has failed",
        "udcp_dsl/threads.py",
        "deque(starts, 0)",
        "pass",
        ("tests/udcp_dsl/test_threads.py",),
    ),
    Fault(
        "streams: work that was started before an error is used after it",
        "udcp_dsl/threads.py",
        "pool.shutdown(cancel_futures=True)",
        "pool.shutdown(wait=False)",
        ("tests/udcp_dsl/test_threads.py",),
    ),
)
