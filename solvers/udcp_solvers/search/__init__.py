"""Search: the best set at a price for any loss of the language, by branch and bound in compiled code.

docs/engine.md is a map of the room, with an example from a loss to its prices. `prices` is what others call.

Notation. K labels y with masses p(y); C categories c; Q quantities j; N operations i; mu a price; p(S) the mass of a
set S, and L(S) what it costs. A set is *better* if L(S) - mu p(S) is less. In code, T is the workspace,
R the trace of a hull, W the branches of `by_mass`, L the line that is moved, and f a factor.

Glossary
--------
anchor, S*
    A price that was fixed on other rows, and the best set at it.
bound
    A value that L(S) - mu p(S) is not below on the sets of a node: the minimum of the minorant.
budget
    How many nodes may be looked at. It counts nodes, never time: answers depend on the loss, the row and the price.
candidates, open labels
    Labels that are not out at the root; of these, the ones that are free in some node.
ceiling
    For min(L, c): the value of all labels at the limit c, one set beside those of the nodes.
change
    By how much the bound of a node rises, at least, if a label is in where it is out, or out where it is in.
chosen
    The set that attains the last bound.
corner
    A set that is the best at some price: a corner of the lower hull of all points (p(S), L(S)).
counted
    A table of the number of labels that is minimised number by number, beside the minorant.
entry, threshold
    `worst` and diameters are the largest entry of a label; the set pays f t for the threshold t that its entries do not
    exceed.
factor
    By what an operation is multiplied on the way down from the loss.
forest
    Categories that are nested or disjoint: a minorant is minimised over these in one pass. Other categories *cross* it.
gap
    By how much another set may be better than the one found, once the budget is used up.
hard atom
    An atom that is no quantity: `worst` (the least over columns of the largest entry), the farthest pair, the sum over
    pairs.
incumbent, found
    The best set known so far; at the end, the answer.
left end, right end
    The corners between which the hull is traced; corners that wait lie between them.
line
    A number that shapes the minorant: the slope of a table or of a bound, or how far a mixture leans from one half.
margin
    How much worse than the best set every set is, at least, in which one label is changed.
minorant
    Label values, category weights and a constant that lie below L - mu p on all sets of a node.
mixture
    s a + (1 - s) b, which is at most max(a, b).
node
    A part of all sets: labels in or out, categories that must be touched, quantities bounded, indicators and minima
    decided. Of its two halves, `here` has the chosen set and `there` does not.
operation
    A node of the loss over quantities: a sum, table, maximum, comparison or hard atom.
point
    The value of a quantity or operation on the set at hand.
quantity
    A constant, label costs and weights on categories: easy to minimise.
root
    The first node: all sets that agree with the labels that are fixed.
shift
    What the labels that were dropped after the first node are worth: values before and after differ by it.
slack, tie room
    Two values closer than the slack are equal; nodes up to the tie room above the incumbent are still looked at.
stretch
    A part of the hull that is traced for itself: all of it, inside the anchor, up to it, or beyond it.
tells
    Whether all nodes so far were closed with bounds for each label, so that margins can use them.
touched
    A set touches a category if it holds one of its labels.
twins
    Interchangeable labels: of these the likelier are in first.
value
    What a label adds to the minorant.
worth
    mu p(y), of a label that is open.
"""
