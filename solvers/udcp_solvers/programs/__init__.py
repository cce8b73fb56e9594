"""Programs: sets proved optimal by integer programming. This room alone knows PuLP.

`instance` takes a row to its outcome, by one of two programs: `by_mass` (a chain of sets over rising masses) and
`by_price` (the hull over prices). Both ask `exact`, which asks `solver`, or needs none where there is a way around it
(`shortcuts`). `workers` run instances in processes, and `checkpoint` keeps their outcomes. `best_set` explains one set.

Words of this room

- question, answer: what a solver is asked (rows, labels that are in, costs) and what it says; found: a set that came of
  it, with its cost by the loss itself, and whether it is proved.
- inside: labels that are in whatever happens.
- t: a mass to be reached, decided in exact arithmetic; short: of a set, that it is not; cut: a row that shuts out short
  sets and no other.
- canonical: of the best sets, the one that the rules name (smallest, heaviest, first), whichever solver is asked.
- tally, report: what happened to one instance, and to all of a call.
"""
