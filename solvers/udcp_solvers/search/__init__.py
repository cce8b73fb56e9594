"""Search: the best set at a price for any loss of the language, by branch and bound in compiled code.

Notation. K labels y with masses p(y); C categories c; Q quantities j; N operations i; mu a price. A set S is *better*
if L(S) - mu p(S) is less. `worth` of a label is mu p(y). docs/engine.md is a map of the room with a worked example.

Glossary
--------
budget
    How many nodes may be looked at. It counts nodes, never time: answers depend on the loss, the row and the price.
candidates, open labels
    Labels that are not out at the root; of these, the ones that are free in some node.
ceiling
    For min(L, c): the value of all labels at the limit c, one set beside those of the nodes.
chosen, found
    The set that attains the last bound; the incumbent, and at the end the answer.
counted
    A table of the number of labels that is minimised number by number, beside the minorant.
entry, threshold
    An atom such as `worst` or `diameter` is the largest entry of a label; the set pays f t for the threshold t that
    its entries do not exceed.
factor
    By what an operation is multiplied on the way down from the loss.
forest
    Categories that are nested or disjoint: over these a minorant is minimised in one pass. Others *cross* it.
gap
    By how much another set may be better than the one found, once the budget is used up.
hard atom
    `worst` (least over columns of the largest entry), the farthest pair, the sum over pairs.
incumbent
    The best set known so far.
line
    The slope at which a table of counts or a bound enters the minorant; of a maximum, how its mixture leans.
margin
    How much worse than the best set, at least, every set is in which one label is changed.
minorant
    A quantity, minus mu p, that lies below L - mu p on all sets of a node; its minimum is the node's bound.
mixture
    s a + (1 - s) b, which is at most max(a, b).
node
    A part of all sets: some labels in or out, categories that must be touched, quantities bounded, indicators and
    minima decided. Its two halves are `here`, which has the chosen set, and `there`.
operation
    A node of the loss over quantities: sums, tables, maxima, comparisons, hard atoms.
point
    The value of a quantity or operation on the set at hand.
quantity
    A constant, label costs and weights on categories: easy to minimise.
shift
    What labels that were dropped after the first node are worth: values before and after differ by it.
slack, tie room
    Below this two values are equal; up to this above the incumbent nodes are still looked at.
tells
    Whether every node so far was closed with bounds for each label, so that margins can use them.
touched
    A category is touched by a set that holds one of its labels.
twins
    Interchangeable labels: of these the likelier are in first.
"""
