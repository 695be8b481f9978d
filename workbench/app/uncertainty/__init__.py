"""The Uncertainty page: maps of the pool, models of other rounds, items under the hand."""
