"""Which items are near: searches, the graph of a pool, twins."""
