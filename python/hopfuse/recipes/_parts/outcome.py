"""A search of a batch, as its traces read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types import Hits, Seeds
from .direct import Rarest
from .filters import View
from .seeding import Seed


class Outcome(NamedTuple):
    """A search of a batch over lists that weights fuse: its inputs, and its results."""

    seeds: Sequence[Sequence[Seed]]  # that each question names; empty without a graph
    starts: Seeds | None  # the same, as nodes
    rarest: Sequence[Rarest | None]
    direct: NDArray[np.float64]
    lists: Mapping[str, Hits]
    hits: Hits
    view: View | None
    fell_back: NDArray[np.bool_]
