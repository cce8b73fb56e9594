"""Prices: the best set at a price of probability, and the price at which each label is bought.

S_mu is the set of least L(S) + mu * (mass left out); as mu rises it goes along the lower hull of the points (mass left
out, L(S)) (`hull`). A label's score is the least mu at which it is in S_mu. One module a shape of loss: `laminar`,
`wholes`, `trees` (with `regions`, `ball_sums`, `region_choice`), `sizes`, `cuts` (with `cut_form`,
`max_flow`), `enumeration`.

Words of this room

- rem: the mass left out; x and x_low: a number of 106 bits, x + x_low (`numeric.double_double`).
- rise, fall; step, gain: a difference of costs and one of masses left out; their quotient is a price. Step and gain are
  those of the price that is looked at.
- entry price, or door: the least price at which anything in a category pays for the category too.
- closing price: the least price at which all of a category is bought together, for what having it whole saves.
- held: sets on the hull, found before what is on their left; slot, room for one; trial, for one that is compared.
- run: neighbours in some order of the labels, from `low` to before `high`; place: where a label is in that order.
- region: a label alone, or a ball of a hierarchy: the sets of a diameter lie in one of them; centre, radius, middle:
  see `regions`.
- shared: values of all balls come from sums that balls share, not from a loop over the labels of each.
- lean: which side is taken where a label or category is too near its price to tell: 1 in, -1 out; sure: none was.
- near, little, slack: how close floats may be before they are compared exactly, or sums taken anew.
- until: the price up to which no regions matter but those listed with a set; beyond it they are valued again.
"""
