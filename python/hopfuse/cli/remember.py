"""``hopfuse build --from``: an index of a memory, made of facts that are extracted or that a reader finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from .. import Index
from ..encoders import Encoder
from ..errors import InputError
from ..extract import (
    Extraction,
    Memory,
    abbreviations,
    build_memory,
    described,
    read_openie,
    read_triples,
    similar_pairs,
)
from .build_checks import check_fit
from .reading import read_passages

OPENIE, TRIPLES = (".json", ".jsonl"), (".tsv", ".nt", ".parquet")


def remembered(
    source: Path,
    passages: Path | None,
    encoder: Encoder | None,
    synonyms: float | None,
    reading: Mapping[str, Any],
    **options: Any,
) -> Index:
    """Read the facts, say what was made of them, and put the index together.

    Parameters
    ----------
    source : Path
        OpenIE (``.json``, ``.jsonl``), triples (``.tsv``, ``.nt``, ``.parquet``), or passages that a reader reads.
    passages : Path, optional
        Those that a ``.jsonl`` is of.
    encoder : Encoder, optional
        Gives entities their vectors, and passages theirs.
    synonyms : float, optional
        The least similarity of entities that are joined; abbreviations that a passage explains are joined, too.
    reading : mapping
        The options of :func:`hopfuse.cli.reading.reader_options`.
    **options
        ``vectors``, None beside an encoder, ``metric`` and ``storage`` of :meth:`hopfuse.Index.build`.
    """
    if synonyms is not None and encoder is None:
        raise InputError("--synonyms needs --encoder, which gives the entities their vectors")
    if synonyms is not None and not 0 <= synonyms <= 1:
        raise InputError(f"--synonyms is {synonyms}; it must be a similarity in [0, 1]")
    memory = build_memory(_read(source, passages, reading, options))
    if encoder is None:
        return _told(memory, memory.index(**options), {"abbreviated": 0, "similar": 0})
    names = np.asarray(encoder.encode_passages(list(memory.entities)))
    short = memory.abbreviated(abbreviations(memory.texts)) if synonyms is not None else np.zeros((0, 2), np.int64)
    similar, similarities = similar_pairs(names, synonyms) if synonyms is not None else (short, np.zeros(0, np.float32))
    fresh = ~np.isin(similar @ [len(names), 1], short @ [len(names), 1])
    graph = memory.graph(
        np.concatenate([short, similar[fresh]]), np.concatenate([np.ones(len(short)), similarities[fresh]]).tolist()
    )
    options["vectors"] = encoder.encode_passages(list(memory.texts))
    index = memory.index(graph, entity_vectors=names, **options)
    return _told(memory, index, {"abbreviated": len(short), "similar": int(fresh.sum())})


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


def _told(memory: Memory, index: Index, joined: dict[str, int]) -> Index:
    out = ", ".join(f"{number:,} {reason}" for reason, number in memory.left_out.items())
    lines = (
        f"{len(memory.facts):,} facts; left out: {out}",
        f"{len(memory.settled):,} disagreements settled by majority",
        f"Synonyms: {joined['abbreviated']:,} by abbreviation, {joined['similar']:,} by similarity",
    )
    Console(stderr=True).print("\n".join(lines), soft_wrap=True, highlight=False)
    return index
