"""Documents and languages of passages after changes; those that no passage has any more are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..contents import labels_of
from ..file.rows import take_rows
from ..file.sections import Section
from ..parts.passages import LABELS, Label, ascending_numbers, taken_strings, used
from .delta import DeltaRows


def merge_labels(delta: DeltaRows, passages: NDArray[np.int64]) -> dict[str, NDArray[Any] | Section]:
    """Return the sections of the labels of passages, given by their slots in the order of the rows."""
    found: dict[str, NDArray[Any] | Section] = {}
    for label in LABELS:
        if delta.knows(label.codes):
            found |= _merged(delta, label, passages)
    return found


def _merged(delta: DeltaRows, label: Label, passages: NDArray[np.int64]) -> dict[str, NDArray[Any] | Section]:
    codes = take_rows(delta.whole(label.codes), passages)
    known = labels_of(delta.base, label).values
    if label.numbers and delta.knows(label.numbers):
        numbers = delta.whole(label.numbers)
        codes, kept = used(codes, ascending_numbers(known, numbers[len(known) :].tolist()))
        return {label.codes: codes, label.numbers: take_rows(numbers, kept)} if kept.size else {}
    codes, kept = used(codes, ascending_numbers(known, delta.strings(label.strings)))
    return {label.codes: codes, **taken_strings(label.strings, delta.column(label.strings), kept)} if kept.size else {}
