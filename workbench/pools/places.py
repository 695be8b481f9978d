"""The options of a pool that name files: what travels with a project, and what no document may choose."""

from collections.abc import Mapping
from typing import Any

from workbench.pools.encoded import split_sets
from workbench.pools.features.vectors import PREFIX

OF_FILES = ("folder", "labels")
"""Options that are a path: of the pictures that a table names, of the labels of idx images."""
YES = ("fetch",)
"""Options that are a person's yes: a document cannot give it."""
_NETWORKS = (".json", ".onnx")


def files_in(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths that options name.

    Args:
        options: of `load_pool`.

    Returns:
        Each path once: folders and labels beside the pool, vectors, networks in files.
    """
    paths = [str(options[name]) for name in OF_FILES if options.get(name)]
    paths += [path for path in map(_path_of, _sets(options)) if path]
    return tuple(dict.fromkeys(paths))


def with_files(options: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """The same options with other paths.

    Args:
        options: of `load_pool`.
        places: path -> path; those it does not have stay.
    """
    new_options = dict(options)
    for name in OF_FILES:
        if new_options.get(name):
            new_options[name] = places.get(str(new_options[name]), new_options[name])
    if _sets(options):
        parts = []
        for part in _sets(options):
            path = _path_of(part)
            new_path = places.get(path, path)
            if part.startswith(PREFIX):
                column = part.removeprefix(PREFIX).partition("#")[2]
                part = f"{PREFIX}{new_path}#{column}" if column else f"{PREFIX}{new_path}"
            elif path:
                part = new_path
            parts.append(part)
        new_options["features"] = "+".join(parts)
    return new_options


def _sets(options: Mapping[str, Any]) -> list[str]:
    features = options.get("features")
    return split_sets(features) if isinstance(features, str) and features else []


def _path_of(part: str) -> str:
    """The file that a set of features is read from; "" for none."""
    if part.startswith(PREFIX):
        return part.removeprefix(PREFIX).partition("#")[0]
    return part if part.lower().endswith(_NETWORKS) else ""
