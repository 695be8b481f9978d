"""Schemas of every document that comes in, checked before anything is stored.

Pydantic does the checking (strict: nothing is converted on the way, NaN is no number). A document of another
shape is refused in one sentence that says which field, and what stands there.
"""
