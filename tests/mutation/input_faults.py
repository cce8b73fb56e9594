"""Known faults at the doors: what is given by users, in files and arguments, and what they are warned of."""

from __future__ import annotations

from fault import Fault

WORDS = "tests/udcp_dsl/language/test_words.py"
LOSS = "tests/udcp_dsl/test_loss.py"
SAVED = "tests/udcp_dsl/prediction/test_saved.py"
DOUBTS = "tests/udcp_dsl/prediction/test_input_warnings.py"
ARGUMENTS = "tests/udcp_dsl/prediction/test_arguments.py"
VALUE = "tests/udcp_dsl/prediction/rows/test_value.py"
PARQUET = "tests/udcp_dsl/prediction/rows/test_parquet_files.py"
WRITING = "tests/udcp_dsl/prediction/test_writing.py"
MANY_ROWS = "tests/udcp_dsl/inputs/test_many_rows.py"

INPUT_FAULTS = (
    Fault(
        "inputs: all rows are scored with the numbers of the first",
        "udcp_dsl/per_row.py",
        "return self.values[i] if self.values.ndim > 1 else self.values[i].item()",
        "return self.values[0] if self.values.ndim > 1 else self.values[0].item()",
        (MANY_ROWS,),
    ),
    Fault(
        "inputs: rows that differ in structure are compiled as one",
        "udcp_dsl/per_row.py",
        "        raise Split(holds)\n\n    def __getitem__",
        "        return bool(holds[0])\n\n    def __getitem__",
        (MANY_ROWS,),
    ),
    Fault(
        "inputs: numbers of a batch are kept for other rows",
        "udcp_dsl/expression/rows/given.py",
        "            a is b or np.array_equal(a, b) for a, b in pairs\n",
        "            a.shape == b.shape for a, b in pairs\n",
        (MANY_ROWS, "-k", "batches"),
    ),
    Fault(
        "inputs: any fault of many rows is hidden by single ones",
        "udcp_dsl/prediction/stages/oracle_by_row.py",
        "            except NotVectorised:\n",
        "            except (NotVectorised, TypeError):\n",
        (MANY_ROWS, "-k", "only_what"),
    ),
    Fault(
        "saved: a changed file is taken",
        "udcp_dsl/prediction/saved.py",
        'if content.get("sha256") != own:',
        'if content.get("sha256") is None:',
        ("tests/udcp_dsl/prediction/test_saved.py",),
    ),
    Fault(
        "input: look-alikes are names",
        "udcp_dsl/language/words.py",
        'unicodedata.is_normalized("NFKC", text)',
        "True",
        (WORDS,),
    ),
    Fault(
        "input: a word of the language in wide letters is a name",
        "udcp_dsl/language/scan.py",
        "    if normal != text:\n",
        "    if normal != text and not normal.isascii():\n",
        (WORDS,),
    ),
    Fault(
        "input: a label that is given twice is merged",
        "udcp_dsl/loss.py",
        "if len(positions) > mask.sum():",
        "if len(positions) > self.K:",
        (LOSS,),
    ),
    Fault(
        "input: labels= takes a set",
        "udcp_dsl/compile/passes.py",
        "isinstance(labels, Set | Mapping | bytes)",
        "isinstance(labels, Mapping | bytes)",
        (LOSS,),
    ),
    Fault(
        "input: infinity in JSON is a number",
        "udcp_dsl/compile/sources.py",
        "if not math.isfinite(number):",
        "if math.isnan(number):",
        ("tests/test_reference.py", "-k", "files"),
    ),
    Fault(
        "input: every misspelt name is looked for",
        "udcp_dsl/compile/declare/declared.py",
        "if self._compared > _MOST_COMPARED:",
        "if self._compared > 1000 * _MOST_COMPARED:",
        ("tests/udcp_dsl/compile/test_small_specs_stay_quick.py",),
    ),
    Fault(
        "input: labels reach the terminal as they are",
        "udcp_dsl/cli/terminal.py",
        "visible_lines(message)",
        "message",
        ("tests/udcp_dsl/cli/test_hostile_labels.py",),
    ),
    Fault(
        "saved: a file may name a checkpoint",
        "udcp_dsl/prediction/saved.py",
        '        if option in oracle["options"]',
        '        if option != "checkpoint" and option in oracle["options"]',
        (SAVED, "-k", "starts_no_process"),
    ),
    Fault(
        "saved: workers of a stranger's oracle are written",
        "udcp_dsl/prediction/saved.py",
        "predictor.oracle.options.items() if name not in _MACHINE_OPTIONS",
        "predictor.oracle.options.items()",
        (SAVED, "-k", "how_fast"),
    ),
    Fault(
        "input: class_names take a set",
        "udcp_dsl/prediction/predictor.py",
        "names_of_classes(class_names)\n",
        "tuple(str(name) for name in class_names)\n",
        (ARGUMENTS, "-k", "misread"),
    ),
    Fault(
        "input: any value is true or false",
        "udcp_dsl/prediction/containers.py",
        "if not isinstance(value, bool | np.bool_):",
        "if value is None:",
        (ARGUMENTS, "-k", "misread or truth_values"),
    ),
    Fault(
        "input: rows are joined by position whatever their indexes",
        "udcp_dsl/prediction/containers.py",
        "not indexed[first].equals(indexed[other])",
        "not indexed[first].sort_values().equals(indexed[other].sort_values())",
        (VALUE, "-k", "indexes"),
    ),
    Fault(
        "stored: of every block the true labels of the first",
        "udcp_dsl/prediction/containers.py",
        "*(column[at] for column in columns)",
        "*(column[: len(block)] for column in columns)",
        ("tests/udcp_dsl/prediction/rows/test_stored.py", "-k", "own_truth"),
    ),
    Fault(
        "input: groups a and a with NUL are one",
        "udcp_dsl/prediction/containers.py",
        'if text[-1] == "\\0":',
        'if text == "\\0":',
        ("tests/udcp_dsl/prediction/rows/test_row_attributes.py", "-k", "bad_groups"),
    ),
    Fault(
        "input: a whole number beyond floats is a number",
        "udcp_dsl/prediction/oracle.py",
        "    except OverflowError:\n        return False",
        "    except OverflowError:\n        return True",
        (ARGUMENTS, "-k", "misread"),
    ),
    Fault(
        "doubts: an order is judged on the rows that it was found on",
        "udcp_dsl/prediction/input_warnings.py",
        "_labels_of_columns(likeliest[chosen_on], truth[chosen_on], K)",
        "_labels_of_columns(likeliest[judged_on], truth[judged_on], K)",
        (DOUBTS, "-k", "any_skill or guesses"),
    ),
    Fault(
        "doubts: one column is enough",
        "udcp_dsl/prediction/input_warnings.py",
        "z = gains.sum() - max(gains.max(), 0.0)",
        "z = gains.sum()",
        (DOUBTS, "-k", "stuck"),
    ),
    Fault(
        "randomize: ids are not taken into the draw",
        "udcp_dsl/prediction/predictor.py",
        "row_draws(rows.P, self.seed, rows.ids)",
        "row_draws(rows.P, self.seed)",
        (DOUBTS, "-k", "equal_rows"),
    ),
    Fault(
        "randomize: rows that share a draw are not counted",
        "udcp_dsl/prediction/input_warnings.py",
        "counts[counts > 1].sum()",
        "counts[counts > 2].sum()",
        (DOUBTS, "-k", "counted"),
    ),
    Fault(
        "csv: an id is a formula",
        "udcp_dsl/prediction/writing.py",
        "to_cell(value) if isinstance(value, str) else value",
        "value",
        (WRITING, "-k", "formula"),
    ),
    Fault(
        "csv: an apostrophe of the text itself is taken away",
        "udcp_dsl/prediction/csv_cells.py",
        """re.compile(r"'*[""",
        """re.compile(r"'?[""",
        (WRITING, "-k", "cells"),
    ),
    Fault(
        "frames: ignored columns are forgotten at prediction",
        "udcp_dsl/prediction/predictor.py",
        "ids=ids, ignore=ignore, empty=True)",
        "ids=ids, empty=True)",
        (ARGUMENTS, "-k", "ignored"),
    ),
    Fault(
        "streams: row groups are held undecoded",
        "udcp_dsl/prediction/rows/arrow_tables.py",
        '"pre_buffer": False',
        '"pre_buffer": True',
        (PARQUET,),
    ),
    Fault(
        "streams: a piece begins where its row group does",
        "udcp_dsl/prediction/rows/columns.py",
        "        first = max(first, self.start)\n",
        "",
        (PARQUET,),
    ),
    Fault(
        "threads: blocks are begun after one has failed",
        "udcp_dsl/threads.py",
        "deque(starts, 0)",
        "pass",
        ("tests/udcp_dsl/test_threads.py",),
    ),
    Fault(
        "streams: what was begun before a fault is used after it",
        "udcp_dsl/threads.py",
        "pool.shutdown(cancel_futures=True)",
        "pool.shutdown(wait=False)",
        ("tests/udcp_dsl/test_threads.py",),
    ),
)
