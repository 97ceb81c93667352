"""The steps of the demo up to a recipe over an opened index, each with its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from .. import Index
from ..encoders import Encoder, WordLlamaEncoder
from ..extract.atlas import Atlas
from ..recipes import PhaseGraph
from .names import NameFinder


class Stages:
    """Says what is done and, afterwards, how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        with self._console.status(f"{what} ..."):
            yield
        self._console.print(f"{time.perf_counter() - start:6.1f} s  {what}", highlight=False)


def encode(atlas: Atlas) -> tuple[Encoder, NDArray[np.float32]]:
    """The encoder, and a vector for each passage's text."""
    encoder = WordLlamaEncoder()
    return encoder, encoder.encode_passages(atlas.texts)


def make_index(atlas: Atlas, vectors: NDArray[np.float32], directory: Path) -> None:
    """Build the index of an atlas and save it."""
    graph = atlas.graph()
    rows = zip(atlas.ids, atlas.titles, atlas.texts, strict=True)
    index = Index.build(
        passages=[{"id": id, "title": title, "text": text} for id, title, text in rows],
        vectors=vectors,
        graph=graph,
        entities=list(atlas.entities),
        aliases={entity: names for entity, names in enumerate(atlas.aliases) if names},
    )
    index.save(directory)


def make_recipe(directory: Path, encoder: Encoder, options: dict[str, Any]) -> tuple[PhaseGraph, NameFinder]:
    """The recipe over the saved index, and what finds its names in a question."""
    index = Index.open(directory)
    names = NameFinder(index, case_sensitive=True)
    names.find([""])
    return PhaseGraph(index, encoder=encoder, **options), names
