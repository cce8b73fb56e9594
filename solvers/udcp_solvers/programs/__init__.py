"""Programs: sets proved optimal by integer programming. Only this package uses PuLP.

`instance` solves one row by one of two programs: `by_mass` (a chain of sets over rising masses) or `by_price` (the hull
over prices). Both ask `exact`, which asks `solver`, or neither where a loss has a way without a solver (`shortcuts`).
`workers` solve instances in processes, and `checkpoint` keeps their outcomes.

Terms of this package

- question, answer: what a solver is asked (constraints, labels that are in, costs) and what it returns; found: a set
  with its cost by the loss itself, and whether it is proved.
- inside: labels that every set has to hold.
- t: a mass that sets have to reach, decided in exact arithmetic; short: said of a set that does not reach it; cut: a
  constraint that excludes short sets and no others.
- canonical: of the best sets, the one selected by the rules (smallest, heaviest, first), whichever solver is asked.
- tally, report: what happened to one instance, and to all of a call.
"""
