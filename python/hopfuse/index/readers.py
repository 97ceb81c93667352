"""Tables from whatever a user has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .arrow_tables import read_arrow, read_parquet
from .tables import Spec, Table, from_rows
from .text_files import read_jsonl, read_tsv

READERS = {".jsonl": read_jsonl, ".tsv": read_tsv, ".parquet": read_parquet}


def read_table(source: Any, spec: Spec) -> Table:
    """Read a path (.jsonl, .tsv, .parquet), an Arrow table, or mappings, one a row.

    Raises
    ------
    InputError
        The source is of another kind, or a row is malformed; the message names file and line.
    MissingExtraError
        An Arrow table or a Parquet file is given and pyarrow is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        return _read_path(Path(source), spec)
    if hasattr(source, "__arrow_c_stream__"):
        return read_arrow(source, spec)
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes, np.ndarray)):
        return from_rows(source, spec, lambda i: f"{spec.what}[{i}]")
    raise InputError(
        f"{spec.what} is a {type(source).__name__}; allowed: a path ({', '.join(READERS)}), an Arrow table, "
        f"or a list of mappings with {', '.join(map(repr, spec.required))}"
    )


def existing_file(path: Path, what: str) -> Path:
    """The path, if it is a file."""
    if not path.is_file():
        raise InputError(f"{what}: there is no file {str(path)!r}")
    return path


def _read_path(path: Path, spec: Spec) -> Table:
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(f"{spec.what} is the path {str(path)!r}; its suffix must be one of {', '.join(READERS)}")
    return read(existing_file(path, spec.what), spec)
