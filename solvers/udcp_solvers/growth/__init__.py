"""Growth: orders in which a set grows, label after label, each with the best ratio (M - L(S + y)) / (1 - p + eps).

`growing` computes L(S + y) in the one way that decides all ties. The other ways find the same order sooner, by numbers
that are good up to a slack, and ask it where that is not enough: `merge`, `window` and `farthest`, over `lists` of
labels that cost the same, of which `heads` keeps the first.

Words of this room

- list: labels that the loss cannot tell apart, whatever the set; its head is the likeliest that is not placed yet.
- class: lists that cost the same at the moment, since the categories that they have yet to pay for weigh the same.
- touched: of a category, that the set has a label of it; unpaid: of a class, that some of its categories are not.
- extra: what a label of a class costs beyond what any label costs; slack: how far that may be from the loss.
- level: classes whose extras are too near to tell apart; front: the levels whose first label may come next.
- pool, window: some hundred labels of which the next few come, and some two dozen of which the next one does.
- rank: the place of a label by falling p; K stands for none.
- wanted, floor: an order may end once a label is placed, or once less mass remains; count: how far it goes.
"""
