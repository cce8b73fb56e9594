"""Search: the best set at a price for any loss of the language, by branch and bound in compiled code.

docs/engine.md maps the package and follows an example from a loss to its prices. Other packages call `prices`.

Notation. K labels y with masses p(y); C categories c; Q quantities j; N operations i; mu a price; p(S) the mass of a
set S, and L(S) its cost. A set is *better* if L(S) - mu p(S) is less. In code, T is the workspace, R the trace of a
hull, W the branches of `by_mass`, and f a factor.

Glossary
--------
anchor, S*
    A price that was fixed on other rows, and the best set at it.
bound
    A lower bound of L(S) - mu p(S) on the sets of a node: the minimum of the minorant.
branch
    In `by_mass`, a part of the sets that have the mass: labels in or out. A label divides it into two halves.
budget
    The most nodes that may be looked at. It counts nodes, not time: answers depend on the loss, the row and the price.
candidates, open labels
    Labels that are not out at the root; of these, the ones that are free in some node.
ceiling
    For min(L, c): the cost c. All labels at this cost are one more set beside those of the nodes, and its L - mu p is
    the *ceiling value*.
change
    How much the bound of a node rises, at least, if a label changes sides: in instead of out, or out instead of in.
chosen
    The set that attains the last bound.
corner
    A set that is the best at some price: a corner of the lower hull of all points (p(S), L(S)).
counted
    A table of the number of labels that is minimised number by number, together with the minorant.
cutoff
    The bound from which on a node is dropped: the lesser of the incumbent and the ceiling value, up to the tie room.
entry, threshold
    `worst` and diameters are the largest entry of a label in the set; a set pays f t for a threshold t that no entry of
    its labels exceeds.
factor
    What an operation is multiplied by on the way down from the loss.
excess
    In `by_mass`, the mass of a set minus the mass that is asked for; below 0 if the set is short.
forest
    Categories that are nested or disjoint: a minorant is minimised over these in one pass. Other categories *cross* it.
gap
    How much better another set may be than the one found, if the budget is used up.
grid
    Evenly spaced numbers, given by offset and step, that include all values of the loss. `by_mass` rounds bounds up to
    the next one.
guide
    The small price with which the question at price 0 is asked: it leads the search to heavy sets, and decides nothing.
half
    One of the two parts into which a node or a branch is divided. In `pairs`, half of what a label pays.
hard atom
    An atom that is not a quantity: `worst` (the least over columns of the largest entry), the farthest pair, the sum
    over pairs.
incumbent, found
    The best set known so far; at the end, the answer.
left end, right end
    The corners between which the hull is traced; corners that wait lie between them.
line
    A parameter of the minorant: the slope of a table or of a bound, or how far a mixture leans from one half.
margin
    How much worse than the best set, at least, every set is in which a given label is changed.
margins_from_closed
    Whether all nodes so far were closed with bounds for each label, so that margins can use them.
minorant
    Label values, category weights and a constant whose sum is at most L - mu p on all sets of a node.
mixture
    s a + (1 - s) b, which is at most max(a, b).
node
    A part of all sets: labels in or out, categories that must be touched, quantities bounded, indicators and minima
    decided. Of its two halves, `here` has the chosen set and `there` does not.
operation
    A node of the loss over quantities: a sum, table, maximum, comparison or hard atom.
outcome
    What becomes of a node once it is bounded: `best._tighten` has the list.
point
    The value of a quantity or operation on the present set.
quantity
    A constant, label costs and weights on categories: easy to minimise.
root
    The first node: all sets that agree with the labels that are fixed.
settled
    Labels that are not open, since every set that is looked at holds them: what they cost and touch is kept apart.
shift
    The worth of the labels that the root fixed as in. They are no longer open, and their worth is no longer subtracted:
    values from then on are higher by the shift than those before.
short
    In `by_mass`, of less than the mass that is asked for. Each branch keeps one set that is short and one that has the
    mass.
slack, tie room
    Two values closer than the slack are equal; nodes up to the tie room above the incumbent are still looked at.
stretch
    A part of the hull that is traced separately: all of it, inside the anchor, up to it, or beyond it.
touched
    A set touches a category if it holds one of its labels.
twins
    Interchangeable labels; the likelier ones enter first.
value
    What a label adds to the minorant.
worth
    mu p(y), for an open label.
"""
