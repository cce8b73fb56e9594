"""Known faults of orders that nobody said: columns without names, integers for names, rows out of step with truth."""

from __future__ import annotations

from fault import Fault

WARNINGS = "udcp_dsl/predict/row_warnings.py"
ORDERS = "tests/udcp_dsl/test_orders.py"

ORDER_FAULTS = (
    Fault(
        "orders: an array after calibration by name is taken in the order of the spec",
        "udcp_dsl/predict/predictor.py",
        "if rows.columns is None and self.columns is not None:",
        "if False:",
        (ORDERS, "-k", "an_array_is_refused"),
    ),
    Fault(
        "orders: a saved predictor forgets the order of its columns",
        "udcp_dsl/predict/saved.py",
        'predictor.columns = tuple(content["columns"])',
        "predictor.columns = None",
        (ORDERS, "-k", "the_order_is_saved"),
    ),
    Fault(
        "orders: streams take columns without names in the order of the spec",
        "udcp_dsl/cluster/streams.py",
        "    predictor.check_columns(rows)\n",
        "",
        (ORDERS, "-k", "batches_of_lists or files_without"),
    ),
    Fault(
        "orders: rows that stay in their files forget the names of their columns",
        "udcp_dsl/rows/source.py",
        "Block(np.empty((n, 0)), [], columns=named)",
        "Block(np.empty((n, 0)), [])",
        (ORDERS, "-k", "stay_in_their_files"),
    ),
    Fault(
        "orders: integers for names that are not sorted are not warned of",
        WARNINGS,
        "if rows.counted and labels != ordered:",
        "if False:",
        (ORDERS, "-k", "integers"),
    ),
    Fault(
        "orders: integer classes are positions in the spec, whatever class_names say",
        "udcp_dsl/sklearn.py",
        "[names[i] for i in truth(entries, names)]",
        "[labels[i] for i in truth(entries, names)]",
        (ORDERS, "-k", "classes_that_are_integers"),
    ),
    Fault(
        "orders: true labels of data sets are positions in any spec",
        "udcp_dsl/rows/columns.py",
        "return [self.labels[position] for position in self.tolist()]",
        "return np.asarray(self)",
        (ORDERS, "-k", "know_their_names"),
    ),
    Fault(
        "orders: rows out of step with truth are not warned of",
        WARNINGS,
        "np.quantile(means[1:], 0.95)",
        "np.quantile(means[1:], 0.0)",
        (ORDERS, "-k", "shuffled"),
    ),
    Fault(
        "orders: classifiers of rare events are accused",
        WARNINGS,
        "if len(some) - np.bincount(some.truth).max() < _MIN_OTHERS:",
        "if False:",
        (ORDERS, "-k", "rare_events"),
    ),
    Fault(
        "orders: prediction with truth does not warn of another order",
        "udcp_dsl/cli/predict.py",
        "        tally.warn_of_another_order(predictor.loss.labels)\n",
        "",
        (ORDERS, "-k", "prediction_with_truth"),
    ),
    Fault(
        "costs by class: any loss is said to have sets of lac",
        WARNINGS,
        "oracle.priced and loss.facts.separable and",
        "oracle.priced and",
        (ORDERS, "-k", "by_class"),
    ),
)
