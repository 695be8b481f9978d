"""Files that people bring: checked, kept where the project finds them again, never trusted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.pools.formats import endings_of
from workbench.pools.formats.files import File


def most_bytes() -> int:
    """Largest upload: what the server was started with (`--max-upload-mb`)."""
    import streamlit as st

    return int(st.get_option("server.maxUploadSize")) << 20


def is_of_images(pool: Mapping[str, Any]) -> bool:
    """True if a stored {"name", "options"} is of an uploaded file of images, as far as that tells."""
    name, options = File(b"", str(pool["name"])), pool.get("options") or {}
    uses = [u.get("use") for u in (options.get("columns") or {}).values() if isinstance(u, Mapping)]
    if "picture" in uses:
        return True
    images, tables = (name.plain_name.endswith(endings_of(kind)) for kind in ("image", "table"))
    return images and (not tables or "features" in options)


def check(name: str, data: bytes) -> None:
    """Checks that the browser makes too, and cannot be trusted to.

    Args:
        name: as the browser gave it.
        data: the file.

    Raises:
        InputError: too big, empty, or of a kind no pool is made of.
    """
    if not File(data, name).plain_name.endswith(endings_of()):
        kinds = ", ".join(ending.removeprefix(".") for ending in endings_of())
        raise InputError(f"{name!r} is not one of the kinds that can be read: {kinds}.")
    limit = most_bytes()
    if len(data) > limit:
        raise InputError(
            f"{name!r} has {len(data) / 2**20:.0f} MB; at most {limit >> 20} MB can be uploaded."
        )
    if not data:
        raise InputError(f"{name!r} is empty.")


def keep(name: str, data: bytes) -> Path:
    """Store an upload under the home folder, by its content.

    Args:
        name: as the browser gave it; only letters, digits, dots, dashes and underscores of it are kept.
        data: the file.

    Returns:
        Its path; the same bytes under the same name give the same path.
    """
    from workbench.store.pool_files import keep_upload

    check(name, data)
    return keep_upload(name, data)


def merged(options: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Reading options with a further decision; columns to leave out and uses of columns add up."""
    merged_options = {**options, **more}
    if "exclude" in more:
        merged_options["exclude"] = sorted({*options.get("exclude", ()), *more["exclude"]})
    if isinstance(more.get("columns"), Mapping) and isinstance(options.get("columns"), Mapping):
        merged_options["columns"] = {**options["columns"], **more["columns"]}
    return merged_options
