"""Neighbours of items: searches, the graph of a pool, twins."""
