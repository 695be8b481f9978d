"""Guesses at the classes of a pool, from before any label: names, columns, older models.

A `Guess` is a prior mean (docs/math.md, 13): how much it counts is learnt from the labels. Everything here
is a function of a pool's items and of what is given; nothing is stored.
"""

from workbench.guesses.columns import is_empty, likely_columns, of_classes, unknown_names
from workbench.guesses.guess import Agreement, Guess, stacked, standardised
from workbench.guesses.names import names_say_something
from workbench.guesses.sources import (
    SavedGuesses,
    cells_of,
    classes_in,
    columns_of,
    guess_of,
    guesses_of,
    names_speak,
    sources_of_columns,
)

__all__ = [
    "Agreement",
    "Guess",
    "SavedGuesses",
    "cells_of",
    "classes_in",
    "columns_of",
    "guess_of",
    "guesses_of",
    "is_empty",
    "likely_columns",
    "names_say_something",
    "names_speak",
    "of_classes",
    "sources_of_columns",
    "stacked",
    "standardised",
    "unknown_names",
]
