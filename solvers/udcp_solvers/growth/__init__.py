"""Growth: orders in which a set grows, label after label."""
