"""The files that the projects of a database need, which nothing that a person exports is written over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.store.store import Store

_VECTORS = "embeddings:"  # before the path of a file of vectors


def files_in_use(store: Store) -> Iterator[Path]:
    """Files and folders that the projects of a database need: their pools, features made elsewhere, itself.

    Args:
        store: of the projects.

    Yields:
        Paths, also of what is not there now.
    """
    if store.url.startswith("sqlite"):
        from sqlalchemy import make_url

        if place := make_url(store.url).database:
            yield Path(place)
    for project in store.projects():
        for key, text in _texts(project.pool):
            vectors = text.removeprefix(_VECTORS)
            if vectors != text:
                yield Path(vectors.partition("#")[0])
            elif key == "folder" or Path(text).is_absolute():
                yield Path(text)


def _texts(document: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a document, each with the key it stands at."""
    if isinstance(document, dict):
        for name, part in document.items():
            yield from _texts(part, str(name))
    elif isinstance(document, list):
        for part in document:
            yield from _texts(part, key)
    elif isinstance(document, str):
        yield key, document
