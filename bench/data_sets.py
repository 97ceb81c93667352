"""Find the data sets: one folder for each, in the folder that HOPFUSE_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

#: Names the folder that contains the data sets, such as hotpotqa. docs/datasets.md says how to make them.
VARIABLE = "HOPFUSE_DATA"


def data_root() -> Path:
    """Return the folder of the data sets: HOPFUSE_DATA, or ``shared/data`` beside the checkout."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[2] / "shared" / "data")
