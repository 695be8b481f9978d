"""Paired measurements of speed, memory and quality; each prints the lines the docs quote."""

import os
from pathlib import Path

# Data sets, where a checkout has them beside it
_DATA = Path(__file__).resolve().parents[2] / "shared" / "datasets"
if _DATA.is_dir():
    os.environ.setdefault("WORKBENCH_DATA", str(_DATA))
