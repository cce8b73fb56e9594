"""Greedy orders: a set grows by the label with the best ratio max(M - L(S + y), 0) / (max(1 - p, 0) + eps).

`incremental_cost` computes L(S + y) to the bit, which decides every tie. `lists` groups labels that the loss cannot
tell apart and approximates the cost of one more label of each group. `steps` adds one label per step and evaluates L
only where the approximation does not decide. `candidate_heads` ranks the labels of a row and assigns them to lists.
For orders that are given, `prefix_costs` computes the cost of each prefix; `penalized` needs nothing else.

Glossary

- list: labels that the loss cannot tell apart, whatever the set; its head is the likeliest that is not placed yet.
- class: lists that cost the same at present, since their own numbers and the weights of their untouched categories are
  equal.
- touched: a category that has a label in the set; unpaid: a class some of whose categories are not touched.
- extra: the cost of a label of a class beyond the cost common to all labels; slack: the largest error of the
  approximation.
- rank: the position of a label by falling p; K stands for none.
- wanted, floor: an order may stop once label `wanted` is placed, or once less mass than `floor` remains; count: the
  number of labels placed.
"""
