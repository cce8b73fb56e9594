"""Search: the best set at a price for any loss of the language, by branch and bound in compiled code.

Words of this room. A *quantity* is a constant, label costs and weights on categories: easy to optimise. An *operation*
is a node of the loss over quantities. A *branch* is a part of all sets: some labels are in or out, a category is said
to be touched, a quantity is bounded, an indicator or a minimum is decided. Its *minorant* is a quantity that lies
below the loss on all its sets. A *line* is the slope at which a table of counts, or a bound, enters the minorant; a
*mixture* the share of the first operand of a maximum. The *budget* counts branches, never time: answers depend on the
loss, the row and the price alone.
"""
