"""Prices: the best set at a price of probability, and the price at which each label is bought.

S_mu is the set of least L(S) + mu * (mass left out). As mu rises, S_mu moves along the lower hull of the points (mass
left out, L(S)) (`hull`). A label's score is the lowest mu at which it is in S_mu. There is one module per class of
losses: `laminar`, `wholes`, `trees` (with `regions`, `ball_sums`, `region_choice`), `sizes`, `cuts` (with `cut_form`,
`max_flow`), `enumeration`.

Terms of this package

- rem: the mass left out; x and x_low: a number of 106 bits, x + x_low (`numeric.double_double`).
- rise and fall, step and gain: a difference of costs and a difference of masses left out; their quotient is a price.
  Step and gain belong to the price in question.
- entry price: the lowest price at which something inside a category is also worth the weight of the category.
- closing price: the lowest price at which a category is bought whole, because of what the whole saves.
- held: sets on the hull, found before those to their left; slot: space for one of them; trial: a set to be compared.
- run: consecutive labels in some order, from `low` to `high` - 1; place: the position of a label in that order.
- region: a single label, or a ball of a hierarchy; every set lies in a region of the same diameter. For centre and
  radius see `regions`.
- shared: values of all balls come from common sums, not from a loop over the labels of each ball.
- lean: the decision for a label or category too near its price to tell, 1 in, -1 out; sure: there was none.
- near, slack: tolerances within which values are compared exactly; little: sums below this are computed directly.
- listed_until: the price up to which only the regions listed with a set matter; beyond it, regions are valued again.
"""
