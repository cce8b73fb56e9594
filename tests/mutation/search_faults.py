"""Faults of the search: best sets at a price, at price 0, and the hull."""

from __future__ import annotations

from fault import Fault

SEARCH = "tests/udcp_solvers/search/test_search.py"
PRICE_ZERO = "tests/udcp_solvers/search/test_price_zero.py"

SEARCH_FAULTS = (
    Fault(
        "search: a free label worth less than the rounding error of costs is left out",
        "solvers/udcp_solvers/search/intervals.py",
        "if with_y <= cost:",
        "if with_y < cost:",
        (SEARCH, "-k", "tiny"),
    ),
    Fault(
        "search: the cost of a label alone is used as its cost beside other labels",
        "solvers/udcp_solvers/search/intervals.py",
        "if empty and not np.isnan(T.single_cost[y]):",
        "if not np.isnan(T.single_cost[y]):",
        (SEARCH, "-k", "beside"),
    ),
    Fault(
        "search: labels that may still change between two sets are fixed",
        "solvers/udcp_solvers/search/trace.py",
        "height = share * (b - mu) * state.gain",
        "height = 0.2 * share * (b - mu) * state.gain",
        (SEARCH,),
    ),
    Fault(
        "search: the second threshold is ignored, so labels are fixed that may still change",
        "solvers/udcp_solvers/search/bound.py",
        "max_change = second - total",
        "max_change = np.inf",
        (SEARCH,),
    ),
    Fault(
        "search at price 0: the incumbent is taken for one of the cheapest sets",
        "solvers/udcp_solvers/search/best.py",
        "search.least_known = asked.low > -np.inf and compare_costs(high, low, asked.low, 0.0, 0.0) <= 0",
        "search.least_known = True",
        (PRICE_ZERO, "-k", "of_all_sets"),
    ),
    Fault(
        "search at price 0: of sets that cost the same, the first found is taken",
        "solvers/udcp_solvers/search/best.py",
        "sign = -compare_masses(T.chosen, IN, found, T)",
        "sign = 1",
        (PRICE_ZERO, "-k", "of_all_sets"),
    ),
    Fault(
        "search at price 0: a node whose bound is attained is closed, whatever other sets cost the same",
        "solvers/udcp_solvers/search/best.py",
        "if outcome == ATTAINED and (asked.at_zero or (search.ties and may_tie(ints, floats, node, T))):",
        "if outcome == ATTAINED and search.ties and may_tie(ints, floats, node, T):",
        (PRICE_ZERO,),
    ),
    Fault(
        "search at price 0: a small price stands for it",
        "solvers/udcp_solvers/search/hull.py",
        "at_zero = state.asked == LEFT_END or (state.asked == ANCHOR_SET and state.anchor == 0.0)",
        "at_zero = False",
        (PRICE_ZERO, "-k", "not_meet or pays_nothing"),
    ),
    Fault(
        "search at price 0: masses are compared as floats",
        "solvers/udcp_solvers/search/price_zero.py",
        "    return _exact_sign(marks, least, found, T)",
        "    return 0",
        (PRICE_ZERO, "-k", "in_full"),
    ),
    Fault(
        "search at price 0: numbers of the model are taken as exact",
        "solvers/udcp_solvers/search/price_zero.py",
        "high, low = plus(high, low, costs_low[j * K + y])",
        "high, low = plus(high, low, 0.0)",
        (PRICE_ZERO,),
    ),
    Fault(
        "search at price 0: rows whose budget ended count as proved if no cheaper set is possible",
        "solvers/udcp_solvers/search/best.py",
        "gap = max(gap, float(search.slack))",
        "gap = 0.0",
        (PRICE_ZERO, "-k", "not_proved"),
    ),
    Fault(
        "search: corners are skipped that may have the label that is wanted",
        "solvers/udcp_solvers/search/trace.py",
        "excluded = a >= 0.0 and b >= 0.0 and (1.0 - share) * a + share * b - height > slack",
        "excluded = a >= 0.0 and b >= 0.0",
        (SEARCH, "-k", "three_faces or before"),
    ),
    Fault(
        "search: a search starts with the lines of the one before it",
        "solvers/udcp_solvers/search/trace.py",
        "    put(lines, R.lines[state.top if state.asked == INNER_END else LEFT])",
        "    return",
        (SEARCH, "-k", "three_faces or before"),
    ),
    Fault(
        "search: beyond the anchor, sets that lack a label of its set count although best sets are not nested",
        "solvers/udcp_solvers/search/hull.py",
        "if state.stretch != BEYOND or state.held or state.nested == NESTED:",
        "if state.stretch != PLAIN + 9:",
        (SEARCH, "-k", "only_supersets"),
    ),
    Fault(
        "search: no node is divided although labels of equal mass may change places",
        "solvers/udcp_solvers/search/best.py",
        "search.ties = repeats(ints, floats, T)",
        "search.ties = False",
        (SEARCH,),
    ),
)
