"""Faults of silence, and at the doors: what users are not told, and hostile or damaged input that is let through."""

from __future__ import annotations

from fault import Fault

LEAST_COVERED = "tests/udcp_dsl/prediction/test_least_covered.py"
ABANDONED = "tests/udcp_dsl/cli/test_abandoned_labels.py"
DOUBTS = "tests/udcp_dsl/prediction/test_input_warnings.py"
SETS = "tests/udcp_dsl/prediction/test_sets.py"
HOSTILE = "tests/udcp_dsl/prediction/test_hostile_predictors.py"
DIAGNOSTICS = "tests/udcp_dsl/test_diagnostics.py"
STUDIO = "tests/udcp_dsl/studio/test_saving.py"
MEANT = "tests/udcp_dsl/test_spec_warnings.py"
TABLES = "tests/udcp_dsl/prediction/rows/test_tables_in_the_wild.py"
SYNTAX = "tests/udcp_dsl/language/test_syntax_faults.py"
IDS = "tests/udcp_dsl/prediction/test_written_ids.py"

_PARSE = "udcp_dsl/language/parse.py"
_WRITING = "udcp_dsl/prediction/writing.py"
_LEAST_COVERED = "udcp_dsl/prediction/least_covered.py"
_WARNINGS = "udcp_dsl/prediction/input_warnings.py"
_SAVED = "udcp_dsl/prediction/saved.py"
_ANCHORS = "udcp_dsl/prediction/stages/anchors.py"
_MATRIX = "udcp_dsl/prediction/rows/probability_matrix.py"
_NAMED_ATTACK = (HOSTILE, "-k", "named_attack")

_SILENCE = (
    Fault(
        "least covered: each part is tested at 5 percent by itself",
        _LEAST_COVERED,
        "if p[at] > LEVEL / (len(parts) - passed):",
        "if p[at] > LEVEL:",
        (LEAST_COVERED, "-k", "holm"),
    ),
    Fault(
        "least covered: Bonferroni instead of Holm",
        _LEAST_COVERED,
        "if p[at] > LEVEL / (len(parts) - passed):",
        "if p[at] > LEVEL / len(parts):",
        (LEAST_COVERED, "-k", "holm"),
    ),
    Fault(
        "least covered: the wrong tail",
        _LEAST_COVERED,
        "p = bdtr(",
        "p = 1 - bdtr(",
        (LEAST_COVERED, "-k", "one_sided"),
    ),
    Fault(
        "least covered: classes of a few rows are counted",
        _LEAST_COVERED,
        "for part in known if part.n >= MIN_ROWS]",
        "for part in classes if part.n > 0]",
        (LEAST_COVERED, "-k", "too_few_rows"),
    ),
    Fault(
        "least covered: calibrate does not say whom it abandons",
        "udcp_dsl/prediction/stages/in_sample.py",
        "return (*self.least_covered.lines(), *about)",
        "return (self.least_covered.line(), *about)",
        (ABANDONED, "-k", "calibrate"),
    ),
    Fault(
        "empty sets: those of the calibration rows are not counted",
        "udcp_dsl/prediction/stages/in_sample.py",
        "return float((~sets.any(axis=1)).mean()) * len(missed) / len(given)",
        "return float((~sets.any(axis=1)).mean()) * 0.0",
        (LEAST_COVERED, "-k", "empty_sets"),
    ),
    Fault(
        "empty sets: the way out is never named",
        "udcp_dsl/prediction/empty_sets.py",
        "if share > FEW else",
        "if share > 1 else",
        (LEAST_COVERED, "-k", "empty_sets"),
    ),
    Fault(
        "rows: a stage is left out of the account",
        "udcp_dsl/prediction/stages/chain.py",
        "[stage for stage in self.stages if stage.rows_used]",
        "[stage for stage in self.stages if stage.rows_used and not stage.repairs]",
        (LEAST_COVERED, "-k", "accounted"),
    ),
    Fault(
        "alpha: coverage that is given as alpha is not warned of",
        _WARNINGS,
        "_HIGH_ALPHA = Fraction(1, 2)",
        "_HIGH_ALPHA = Fraction(1)",
        (DOUBTS, "-k", "one_half"),
    ),
    Fault(
        "alpha: 0.5 itself is not warned of",
        _WARNINGS,
        "promise.risk is None and alpha >= _HIGH_ALPHA",
        "promise.risk is None and alpha > _HIGH_ALPHA",
        (DOUBTS, "-k", "one_half"),
    ),
    Fault(
        "confidence: taken without alpha",
        "udcp_dsl/prediction/promises/promise.py",
        "if self.confidence is not None and self.alpha_is_default:",
        "if False:",
        ("tests/udcp_dsl/prediction/promises/test_promise.py",),
    ),
    Fault(
        "doubts: two exchanged columns are not noticed",
        _WARNINGS,
        'at, why = "", _exchanged_columns(rows)',
        "pass",
        (DOUBTS, "-k", "two_exchanged"),
    ),
    Fault(
        "doubts: one label that is called another is an exchange",
        _WARNINGS,
        "if all(_below_chance(few",
        "if any(_below_chance(few",
        (DOUBTS, "-k", "mostly_called_one"),
    ),
    Fault(
        "labels: integers come back as texts",
        "udcp_dsl/prediction/predictor.py",
        "self.given_labels = labels_as_given(self.loss.labels, y, self._class_names)",
        "self.given_labels = None",
        (SETS, "-k", "integers_stay"),
    ),
    Fault(
        "labels: integers come back as texts from a file",
        _SAVED,
        'predictor.given_labels = _given_labels(content["given_labels"], loss.K)',
        "predictor.given_labels = None",
        (SETS, "-k", "integers_stay"),
    ),
    Fault(
        "labels: classes of scikit-learn come back as texts",
        "udcp_dsl/sklearn.py",
        "self.predictor_.given_labels = self._given_labels()",
        "self.predictor_.given_labels = None",
        ("tests/udcp_dsl/test_sklearn.py", "-k", "predict_gives"),
    ),
    Fault(
        "labels: classes of scikit-learn come back as texts with cv",
        "udcp_dsl/sklearn.py",
        "mask, names, given_labels=self._given_labels(), ",
        "mask, names, ",
        ("tests/udcp_dsl/test_sklearn.py", "-k", "predict_gives"),
    ),
    Fault(
        "ids: numbers are written as texts",
        _WRITING,
        "ids=self.ids if values is None else values",
        "ids=self.ids",
        (IDS,),
    ),
    Fault(
        "ids: their column is always called id",
        _WRITING,
        "named = self.id_name if name is None or",
        "named = self.id_name if True or",
        (IDS,),
    ),
    Fault(
        "demo: coverages that are all below 1 - alpha are not explained",
        "udcp_dsl/cli/demo.py",
        "max(coverages) < 1 - alpha:",
        "max(coverages) < 0:",
        ("tests/udcp_dsl/cli/test_demo.py", "-k", "all_below"),
    ),
)

_HOSTILE = (
    Fault(
        "saved: a level among anchors has any number of digits",
        _ANCHORS,
        "exact_level(alpha, below=None): None",
        "Fraction(alpha): None",
        _NAMED_ATTACK,
    ),
    Fault(
        "saved: a harm has any number of digits",
        "udcp_dsl/prediction/calibrate/rule.py",
        'exact_level(str(most), "most", below=None)',
        "Fraction(str(most))",
        _NAMED_ATTACK,
    ),
    Fault(
        "saved: a group may have no alphas",
        _ANCHORS,
        "for x in (found.overall, *by_group.values()))",
        "for x in (found.overall,))",
        _NAMED_ATTACK,
    ),
    Fault(
        "saved: a number beyond floats is a traceback",
        _SAVED,
        "except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:",
        "except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:",
        _NAMED_ATTACK,
    ),
    Fault(
        "saved: infinity is a traceback",
        _SAVED,
        "except (ValueError, RecursionError):  # 1e999",
        "except RecursionError:  # 1e999",
        (HOSTILE, "-k", "json_leaves_open"),
    ),
    Fault(
        "saved: of a key that appears twice the last is taken",
        _SAVED,
        "if len(found) < len(pairs):",
        "if False:",
        (HOSTILE, "-k", "json_leaves_open"),
    ),
    Fault(
        "diagnostics: a line is shown whole",
        "udcp_dsl/diagnostics.py",
        "if len(line) <= width:",
        "if True:",
        (DIAGNOSTICS, "-k", "long_line"),
    ),
    Fault(
        "diagnostics: all are rendered",
        "udcp_dsl/diagnostics.py",
        "_MAX_RENDERED = 50",
        "_MAX_RENDERED = 50_000",
        (DIAGNOSTICS, "-k", "thousands"),
    ),
    Fault(
        "terminal: a spec that is not there is a traceback in colour",
        "udcp_dsl/cli/terminal.py",
        "if diagnostic.span.source.text:",
        "if True:",
        ("tests/udcp_dsl/cli/test_in_a_terminal.py", "-k", "bad_input"),
    ),
    Fault(
        "studio: a spec that was changed on disk is written over",
        "udcp_dsl/studio/spec_folder.py",
        "path.read_bytes() not in (self.content, content)",
        "False",
        (STUDIO, "-k", "somebody_else"),
    ),
    Fault(
        "studio: cases that come at once are lost",
        "udcp_dsl/studio/saving.py",
        "with studio.writing:",
        "if True:",
        (STUDIO, "-k", "at_once"),
    ),
)

_TABLES_AND_SPECS = (
    Fault(
        "spec: an unknown function hides what else is wrong with its statement",
        _PARSE,
        'elif fault.code == "E121" and',
        "elif False and",
        (SYNTAX, "-k", "unknown_function"),
    ),
    Fault(
        "spec: a statement with an unknown function is not checked further",
        _PARSE,
        'fault.code in ("E113", "E121") for',
        'fault.code in ("E113",) for',
        (SYNTAX, "-k", "unknown_function"),
    ),
    Fault(
        "spec: an unknown statement is blamed on the line before",
        "udcp_dsl/language/syntax_faults.py",
        "return column == 1 and follows",
        "return column < 1 and follows",
        (SYNTAX, "-k", "unknown_statement"),
    ),
    Fault(
        "columns: --ignore a,b is one name",
        "udcp_dsl/cli/row_options.py",
        "name for names in csv.reader(texts, skipinitialspace=True) for name in names",
        "name for name in texts",
        ("tests/udcp_dsl/cli/test_column_options.py",),
    ),
    Fault(
        "columns: unexpected ones are named one at a time",
        _MATRIX,
        "raise InputError(_unexpected_message(unknown))",
        "raise InputError(_unexpected_message(unknown[:1]))",
        (TABLES, "-k", "at_once"),
    ),
    Fault(
        "columns: the index that pandas writes is taken for a label",
        _MATRIX,
        "if name not in known and not _INDEX.fullmatch(name)]",
        "if name not in known]",
        (TABLES, "-k", "index"),
    ),
    Fault(
        "tables: a damaged parquet file is a traceback",
        "udcp_dsl/prediction/rows/arrow_tables.py",
        "_DAMAGED = (LookupError, OverflowError)",
        "_DAMAGED = (OverflowError,)",
        ("tests/udcp_dsl/prediction/rows/test_damaged_tables.py",),
    ),
    Fault(
        "folders: the manifest is among the parts",
        "udcp_dsl/prediction/streams/manifest.py",
        "return beside if os.access(place.parent, os.W_OK) else folder / NAME, None",
        "return folder / NAME, None",
        ("tests/udcp_dsl/prediction/test_result_folders.py", "-k", "parts_alone"),
    ),
)

_MEANT = (
    Fault(
        "meant: a label is called too expensive by what it costs alone",
        "udcp_dsl/spec_warnings.py",
        "least = np.minimum(least, more.min(axis=0))",
        "least = np.minimum(least, np.inf)",
        (MEANT, "-k", "in_company"),
    ),
    Fault(
        "meant: a term is called idle by single labels and pairs",
        "udcp_dsl/spec_warnings.py",
        "yield from self._grown_sets(part)",
        "yield from ()",
        (MEANT, "-k", "some_realistic_set"),
    ),
    Fault(
        "meant: a cap above a part is not seen",
        "udcp_dsl/spec_warnings.py",
        "held: Values = {id(part): self.empty_set[id(part)]}\n        for",
        "return self.change(part, values, shape)\n        held: Values = {}\n        for",
        (MEANT, "-k", "cap_is_named"),
    ),
    Fault(
        "meant: an `or` is taken for a penalty for combinations",
        "udcp_dsl/spec_warnings.py",
        "return node.both and not any(isinstance(x, Not) for x in postorder(node))",
        "return not any(isinstance(x, Not) for x in postorder(node))",
        (MEANT, "-k", "may_pay_alone"),
    ),
)

HONESTY_FAULTS = (*_MEANT, *_SILENCE, *_HOSTILE, *_TABLES_AND_SPECS)
