"""The place of a person's projects, and folders and files that only they may read."""

import os
from pathlib import Path


def workbench_home() -> Path:
    """The folder of projects and database: WORKBENCH_HOME, else the user's data folder."""
    folder = os.environ.get("WORKBENCH_HOME")
    if folder:
        return Path(folder).expanduser()
    from platformdirs import user_data_path

    return Path(user_data_path("workbench", appauthor=False))


def private_folder(path: Path) -> None:
    """Make a folder, with those above it, that only its owner may look into."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there stays as it is."""
    private_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
