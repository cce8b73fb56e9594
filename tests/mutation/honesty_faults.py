"""Faults of silence, and at the doors: what users are not told, and hostile or damaged input that is let through."""

from __future__ import annotations

from fault import Fault

LEAST_COVERED = "tests/udcp_dsl/predict/test_least_covered.py"
ABANDONED = "tests/udcp_dsl/cli/test_abandoned_labels.py"
DOUBTS = "tests/udcp_dsl/predict/test_input_warnings.py"
SETS = "tests/udcp_dsl/predict/test_sets.py"
HOSTILE = "tests/udcp_dsl/predict/test_hostile_predictors.py"
DIAGNOSTICS = "tests/udcp_dsl/test_diagnostics.py"
STUDIO = "tests/udcp_dsl/studio/test_saving.py"
MEANT = "tests/udcp_dsl/test_spec_warnings.py"
TABLES = "tests/udcp_dsl/rows/test_tables_in_the_wild.py"
SYNTAX = "tests/udcp_dsl/language/test_syntax_faults.py"
IDS = "tests/udcp_dsl/predict/test_written_ids.py"

_PARSE = "udcp_dsl/language/parse.py"
_WRITING = "udcp_dsl/rows/writing.py"
_LEAST_COVERED = "udcp_dsl/measure/coverage.py"
_WARNINGS = "udcp_dsl/predict/row_warnings.py"
_SAVED = "udcp_dsl/predict/saved.py"
_ANCHORS = "udcp_dsl/predict/stages/anchor.py"
_MATRIX = "udcp_dsl/rows/matrix.py"
_NAMED_ATTACK = (HOSTILE, "-k", "named_attack")

SOURCES = "tests/udcp_dsl/compile/test_sources.py"
ALIKE = "tests/udcp_dsl/compile/test_look_alikes.py"
BOMBS = "tests/test_hostile_specs.py"
_REWARDS = "udcp_dsl/spec_warnings.py"
_SOURCES = "udcp_dsl/compile/sources.py"

_SILENCE = (
    Fault(
        "rewards: what falls by design is a reward",
        _REWARDS,
        "return isinstance(node, Leaf) and node.atom.name in _FALL_BY_DESIGN",
        "return False",
        (MEANT, "-k", "falls_by_design"),
    ),
    Fault(
        "rewards: a drop that is held by design excuses every other",
        _REWARDS,
        "drops &= held - before < -_slack(root)",
        "drops &= (held == root) & (held - before < 0)",
        (MEANT, "-k", "is_rewarded"),
    ),
    Fault(
        "rewards: sets that grow are not tried beyond two labels",
        _REWARDS,
        "for held in range(1, min(most, K - 1)):",
        "for held in range(1, 2):",
        (MEANT, "-k", "is_rewarded"),
    ),
    Fault(
        "free labels: a penalty on the empty set makes every label free",
        "udcp_dsl/loss.py",
        "if grow.value[0] <= 0 or (own > 0).all():",
        "if True:",
        (MEANT, "-k", "told_from_those"),
    ),
    Fault(
        "CSV: an index of pandas is taken for labels",
        "udcp_dsl/compile/declare/labels.py",
        "if table.starts_with_index and file.column is None:",
        "if False:",
        (SOURCES, "-k", "index"),
    ),
    Fault(
        "CSV: a distance matrix is taken for an index",
        _SOURCES,
        "return counts and list(self.header[1:]) != counted",
        "return counts",
        (SOURCES, "-k", "no_index"),
    ),
    Fault(
        "spec files: the size of a file is not looked at before it is read",
        _SOURCES,
        "if size > most:",
        "if False:",
        (SOURCES, "-k", "sparse"),
    ),
    Fault(
        "hostile specs: what expressions compute is not bounded",
        "udcp_dsl/compile/room.py",
        "_MOST_ENTRIES = 12_000_000",
        "_MOST_ENTRIES = 10**12",
        (BOMBS, "-k", "quickly"),
    ),
    Fault(
        "hostile specs: different costs of max(c) and comparisons count as one array",
        "udcp_dsl/compile/type_checker.py",
        "(self._one_row or self._room.take_node(expr, value.node))",
        "True",
        (BOMBS, "-k", "quickly"),
    ),
    Fault(
        "validation: no values break monotonicity",
        "udcp_dsl/check/facts.py",
        "return _MONOTONICITY_SIGNS[name] * (v[:, 0] - v[:, 1])",
        "return -np.abs(v[:, 0] - v[:, 1])",
        ("tests/test_generated_specs.py", "-k", "false_fact or wrong_sets"),
    ),
    Fault(
        "saved: half of a surrogate pair is read",
        _SAVED,
        "if _ESCAPED_SURROGATE.search(text) and not _is_text(content):",
        "if False:",
        (HOSTILE, "-k", "saved_again"),
    ),
    Fault(
        "look-alikes: accents are not composed",
        "udcp_dsl/compile/passes.py",
        'for c in unicodedata.normalize("NFC", name) if',
        "for c in name if",
        (ALIKE,),
    ),
    Fault(
        "least covered: each part is tested at the full level of 5 percent",
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
        "least covered: classes with very few rows are tested",
        _LEAST_COVERED,
        "for part in known if part.n >= MIN_ROWS]",
        "for part in classes if part.n > 0]",
        (LEAST_COVERED, "-k", "too_few_rows"),
    ),
    Fault(
        "least covered: calibrate does not name the parts that fall short",
        "udcp_dsl/predict/in_sample.py",
        "return (*self.least_covered.lines(), *about)",
        "return (self.least_covered.line(), *about)",
        (ABANDONED, "-k", "calibrate"),
    ),
    Fault(
        "empty sets: not counted on the calibration rows",
        "udcp_dsl/predict/in_sample.py",
        "return float((~sets.any(axis=1)).mean()) * len(missed) / len(rows)",
        "return float((~sets.any(axis=1)).mean()) * 0.0",
        ("tests/udcp_dsl/predict/test_least_covered.py", "-k", "empty_sets"),
    ),
    Fault(
        "empty sets: the remedy is never suggested",
        "udcp_dsl/measure/coverage.py",
        "if share > FEW else",
        "if share > 1 else",
        (LEAST_COVERED, "-k", "empty_sets"),
    ),
    Fault(
        "rows: the summary of calibration rows omits a stage",
        "udcp_dsl/predict/chain.py",
        "[stage for stage in self.stages if stage.rows_used]",
        "[stage for stage in self.stages if stage.rows_used and not stage.repairs]",
        (LEAST_COVERED, "-k", "accounted"),
    ),
    Fault(
        "alpha: no warning if a coverage is passed as alpha",
        _WARNINGS,
        "_HIGH_ALPHA = Fraction(1, 2)",
        "_HIGH_ALPHA = Fraction(1)",
        (DOUBTS, "-k", "one_half"),
    ),
    Fault(
        "alpha: no warning at exactly 0.5",
        _WARNINGS,
        "promise.risk is None and alpha >= _HIGH_ALPHA",
        "promise.risk is None and alpha > _HIGH_ALPHA",
        (DOUBTS, "-k", "one_half"),
    ),
    Fault(
        "confidence: accepted without alpha",
        "udcp_dsl/predict/promise.py",
        "if self.confidence is not None and self.alpha_is_default:",
        "if False:",
        ("tests/udcp_dsl/predict/promises/test_promise.py",),
    ),
    Fault(
        "input warnings: two swapped columns are not noticed",
        _WARNINGS,
        'at, why = "", _exchanged_columns(rows)',
        "pass",
        (DOUBTS, "-k", "two_exchanged"),
    ),
    Fault(
        "input warnings: one confused label counts as two swapped columns",
        _WARNINGS,
        "if all(_below_chance(few",
        "if any(_below_chance(few",
        (DOUBTS, "-k", "mostly_called_one"),
    ),
    Fault(
        "labels: integers are returned as strings",
        "udcp_dsl/predict/predictor.py",
        "self.given_labels = labels_as_given(self.loss.labels, y, self._class_names)",
        "self.given_labels = None",
        (SETS, "-k", "integers_stay"),
    ),
    Fault(
        "labels: integers are returned as strings after loading",
        _SAVED,
        'predictor.given_labels = _given_labels(content["given_labels"], loss.K)',
        "predictor.given_labels = None",
        (SETS, "-k", "integers_stay"),
    ),
    Fault(
        "labels: scikit-learn classes are returned as strings",
        "udcp_dsl/sklearn.py",
        "self.predictor_.given_labels = self._given_labels()",
        "self.predictor_.given_labels = None",
        ("tests/udcp_dsl/test_sklearn.py", "-k", "predict_gives"),
    ),
    Fault(
        "labels: scikit-learn classes are returned as strings with cv",
        "udcp_dsl/sklearn.py",
        "mask, names, given_labels=self._given_labels(), ",
        "mask, names, ",
        ("tests/udcp_dsl/test_sklearn.py", "-k", "predict_gives"),
    ),
    Fault(
        "ids: numbers are written as strings",
        _WRITING,
        "ids=self.ids if values is None else values",
        "ids=self.ids",
        (IDS,),
    ),
    Fault(
        "ids: the column is always named id",
        _WRITING,
        "named = self.id_name if name is None or",
        "named = self.id_name if True or",
        (IDS,),
    ),
    Fault(
        "demo: no explanation if all coverages are below 1 - alpha",
        "udcp_dsl/cli/demo.py",
        "max(coverages) < 1 - alpha:",
        "max(coverages) < 0:",
        ("tests/udcp_dsl/cli/test_demo.py", "-k", "all_below"),
    ),
)

_HOSTILE = (
    Fault(
        "saved: an alpha may have any number of digits",
        "udcp_dsl/predict/chain.py",
        'alpha = exact_level(saved["alpha"], below=context.rule.below)',
        'alpha = Fraction(saved["alpha"])',
        ("tests/udcp_dsl/predict/test_hostile_predictors.py", "-k", "named_attack"),
    ),
    Fault(
        "saved: a harm may have any number of digits",
        "udcp_dsl/predict/calibrate/rule.py",
        'exact_level(str(most), "most", below=None)',
        "Fraction(str(most))",
        _NAMED_ATTACK,
    ),
    Fault(
        "saved: an anchor need not be a price",
        "udcp_dsl/predict/stages/anchor.py",
        "if anchor is not None and not (number and 0 <= anchor <= sys.float_info.max):",
        "if False:",
        ("tests/udcp_dsl/predict/test_hostile_predictors.py", "-k", "named_attack"),
    ),
    Fault(
        "saved: a number too large for a float raises a traceback",
        _SAVED,
        "except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:",
        "except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:",
        _NAMED_ATTACK,
    ),
    Fault(
        "saved: infinity raises a traceback",
        _SAVED,
        "except (ValueError, RecursionError):  # 1e999",
        "except RecursionError:  # 1e999",
        (HOSTILE, "-k", "json_leaves_open"),
    ),
    Fault(
        "saved: the last value of a repeated key is used",
        _SAVED,
        "if len(found) < len(pairs):",
        "if False:",
        (HOSTILE, "-k", "json_leaves_open"),
    ),
    Fault(
        "diagnostics: long lines are not shortened",
        "udcp_dsl/diagnostics.py",
        "if len(line) <= width:",
        "if True:",
        (DIAGNOSTICS, "-k", "long_line"),
    ),
    Fault(
        "diagnostics: the number shown is not limited",
        "udcp_dsl/diagnostics.py",
        "_MAX_RENDERED = 50",
        "_MAX_RENDERED = 50_000",
        (DIAGNOSTICS, "-k", "thousands"),
    ),
    Fault(
        "terminal: a missing spec raises a traceback when colours are on",
        "udcp_dsl/cli/terminal.py",
        "if diagnostic.span.source.text:",
        "if True:",
        ("tests/udcp_dsl/cli/test_in_a_terminal.py", "-k", "bad_input"),
    ),
    Fault(
        "studio: a spec that was changed on disk is overwritten",
        "udcp_dsl/studio/spec_folder.py",
        "path.read_bytes() not in (self.content, content)",
        "False",
        (STUDIO, "-k", "somebody_else"),
    ),
    Fault(
        "studio: cases saved at the same moment are lost",
        "udcp_dsl/studio/cases.py",
        "with studio.writing:",
        "if True:",
        (STUDIO, "-k", "at_once"),
    ),
)

_TABLES_AND_SPECS = (
    Fault(
        "spec: an unknown function hides other errors of its statement",
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
        "spec: an unknown statement is reported on the line before it",
        "udcp_dsl/language/syntax_faults.py",
        "return column == 1 and follows",
        "return column < 1 and follows",
        (SYNTAX, "-k", "unknown_statement"),
    ),
    Fault(
        "messages of commands name arguments of Python",
        "udcp_dsl/diagnostics.py",
        "return option if _NAMES_OPTIONS in os.environ else python",
        "return python",
        ("tests/udcp_dsl/cli/test_promises.py",),
    ),
    Fault(
        "messages in Python name options of commands",
        "udcp_dsl/diagnostics.py",
        "return option if _NAMES_OPTIONS in os.environ else python",
        "return option",
        ("tests/udcp_dsl/test_faces_of_commands.py",),
    ),
    Fault(
        "gap: rows whose optimum is not proved enter the means",
        "udcp_dsl/measure/gap.py",
        "if not self.proved.any():",
        "if False:",
        ("tests/udcp_dsl/cli/test_gap.py", "-k", "not_proved"),
    ),
    Fault(
        "columns: --ignore a,b is read as one name",
        "udcp_dsl/cli/row_options.py",
        "name for names in csv.reader(texts, skipinitialspace=True) for name in names",
        "name for name in texts",
        ("tests/udcp_dsl/cli/test_column_options.py",),
    ),
    Fault(
        "columns: only the first unexpected column is named",
        _MATRIX,
        "raise InputError(_unexpected_message(unknown))",
        "raise InputError(_unexpected_message(unknown[:1]))",
        (TABLES, "-k", "at_once"),
    ),
    Fault(
        "columns: the index that pandas writes is read as a label",
        _MATRIX,
        "if name not in known and not _INDEX.fullmatch(name)]",
        "if name not in known]",
        (TABLES, "-k", "index"),
    ),
    Fault(
        "tables: a damaged parquet file raises a traceback",
        "udcp_dsl/rows/arrow.py",
        "_DAMAGED = (LookupError, OverflowError)",
        "_DAMAGED = (OverflowError,)",
        ("tests/udcp_dsl/rows/test_damaged_tables.py",),
    ),
    Fault(
        "folders: the manifest is written among the parts",
        "udcp_dsl/cluster/folders.py",
        "return beside if os.access(place.parent, os.W_OK) else folder / NAME, None",
        "return folder / NAME, None",
        ("tests/udcp_dsl/predict/test_result_folders.py", "-k", "parts_alone"),
    ),
)

_MEANT = (
    Fault(
        "spec warnings: a label is called too expensive by its cost alone",
        "udcp_dsl/spec_warnings.py",
        "least = np.minimum(least, more.min(axis=0))",
        "least = np.minimum(least, np.inf)",
        (MEANT, "-k", "in_company"),
    ),
    Fault(
        "spec warnings: a term is called idle after trying only single labels and pairs",
        "udcp_dsl/spec_warnings.py",
        "yield from self._grown_sets(part)",
        "yield from ()",
        (MEANT, "-k", "some_realistic_set"),
    ),
    Fault(
        "spec warnings: a cap above a term is ignored",
        "udcp_dsl/spec_warnings.py",
        "held: Values = {id(part): self.empty_set[id(part)]}\n        for",
        "return self.change(part, values, shape)\n        held: Values = {}\n        for",
        (MEANT, "-k", "cap_is_named"),
    ),
    Fault(
        "spec warnings: an `or` is treated as a penalty for combinations",
        "udcp_dsl/spec_warnings.py",
        "return node.both and not any(isinstance(x, Not) for x in postorder(node))",
        "return not any(isinstance(x, Not) for x in postorder(node))",
        (MEANT, "-k", "may_pay_alone"),
    ),
)

HONESTY_FAULTS = (*_MEANT, *_SILENCE, *_HOSTILE, *_TABLES_AND_SPECS)
