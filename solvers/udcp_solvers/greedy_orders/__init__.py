"""Orders in which a set grows label by label, each with the best ratio max(M - L(S + y), 0) / (max(1 - p, 0) + eps).

`incremental_cost` computes L(S + y) by the floats that decide every tie. `lists` groups labels that the loss cannot
tell apart and approximates what one more of each costs; `steps` picks, takes and updates, and evaluates only what the
approximation leaves open. `candidate_heads` ranks the labels of a row and deals them into their lists.

Glossary

- list: labels that the loss cannot tell apart, whatever the set; its head is the likeliest that is not placed yet.
- class: lists that cost the same at the moment, since the categories that they have yet to pay for weigh the same.
- touched: a category that has a label in the set; unpaid: a class some of whose categories are not touched.
- extra: what a label of a class costs beyond what any label costs; slack: how far that may be from the loss.
- rank: the place of a label by falling p; K stands for none.
- wanted, floor: an order may end once this label is placed, or once less mass remains; count: how far it goes.
"""
