"""Prices: the best set at a price of probability, and the price at which each label is bought."""
