"""``hopfuse build --from``: an index of a memory, made of facts that are extracted or that a reader finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from .. import Index
from ..encoders import Encoder
from ..errors import InputError
from ..extract import (
    Extraction,
    Memory,
    SpacyReader,
    abbreviations,
    build_memory,
    described,
    read_openie,
    read_triples,
)
from .build_checks import check_fit
from .reading import read_passages
from .synonym_bounds import Bounds, check_labels, joined_pairs

OPENIE, TRIPLES = (".json", ".jsonl"), (".tsv", ".nt", ".parquet")


def remembered(
    source: Path,
    passages: Path | None,
    encoder: Encoder | None,
    synonyms: Bounds | None,
    reading: Mapping[str, Any],
    **options: Any,
) -> tuple[Memory, Index]:
    """Read the facts, say what was made of them, and put the index together.

    Parameters
    ----------
    source : Path
        OpenIE (``.json``, ``.jsonl``), triples (``.tsv``, ``.nt``, ``.parquet``), or passages that a reader reads.
    passages : Path, optional
        Those that a ``.jsonl`` is of.
    encoder : Encoder, optional
        Gives entities their vectors, and passages theirs.
    synonyms : float, or mapping of str to float, optional
        The least similarity of entities that are joined, or one for each label; abbreviations that a passage or a name
        explains are joined, too.
    reading : mapping
        The options of :func:`hopfuse.cli.reading.reader_options`.
    **options
        ``vectors``, None beside an encoder, ``metric`` and ``storage`` of :meth:`hopfuse.Index.build`.
    """
    if synonyms is not None and encoder is None:
        raise InputError("--synonyms needs --encoder, which gives the entities their vectors")
    if isinstance(synonyms, Mapping):
        # A model that loads twice costs a second; a label that is found wrong after the reading costs all of that.
        check_labels(synonyms, SpacyReader().labels if reading["reader"] == "spacy" else ())
    memory = build_memory(_read(source, passages, reading, options))
    if encoder is None:
        _tell(memory, {"abbreviated": 0, "similar": 0})
        return memory, memory.index(**options)
    names = np.asarray(encoder.encode_passages(list(memory.entities)))
    short: NDArray[np.int64] = np.zeros((0, 2), np.int64)
    similar, similarities = short, np.zeros(0, np.float32)
    if synonyms is not None:
        explained = [*memory.texts, *memory.entities, *(alias for row in memory.aliases for alias in row)]
        short = memory.abbreviated(abbreviations(explained))
        similar, similarities = joined_pairs(names, memory.labels, synonyms)
    fresh = ~np.isin(similar @ [len(names), 1], short @ [len(names), 1])
    graph = memory.graph(
        np.concatenate([short, similar[fresh]]), np.concatenate([np.ones(len(short)), similarities[fresh]]).tolist()
    )
    options["vectors"] = encoder.encode_passages(list(memory.texts))
    index = memory.index(graph, entity_vectors=names, **options)
    _tell(memory, {"abbreviated": len(short), "similar": int(fresh.sum())})
    return memory, index


def _read(
    source: Path, passages: Path | None, reading: Mapping[str, Any], options: Mapping[str, Any]
) -> list[Extraction]:
    if reading["reader"] is not None:
        if passages is not None:
            raise InputError(f"--passages is given beside {source.name}, which --reader reads; leave it out")
        check_fit(source, **options)
        return read_passages(source, reading)
    suffix = source.suffix.lower()
    if suffix in OPENIE:
        return read_openie(source, passages)
    if passages is not None:
        raise InputError(f"--passages is given beside {source.name}, whose facts are the passages; leave it out")
    if suffix not in TRIPLES:
        allowed = ", ".join((*OPENIE, *TRIPLES))
        raise InputError(f"--from is {source.name!r}; its suffix must be one of {allowed}")
    return described(read_triples(source))


def _tell(memory: Memory, joined: dict[str, int]) -> None:
    out = ", ".join(f"{number:,} {reason}" for reason, number in memory.left_out.items())
    lines = (
        f"{len(memory.facts):,} facts; left out: {out}",
        f"{len(memory.settled):,} disagreements settled by majority",
        f"Synonyms: {joined['abbreviated']:,} by abbreviation, {joined['similar']:,} by similarity",
    )
    Console(stderr=True).print("\n".join(lines), soft_wrap=True, highlight=False)
