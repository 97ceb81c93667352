"""``hopfuse build --from`` and ``--reader``: an index of extracted facts, or of what a reader finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import Index
from ..._validation import check_suffix, counted
from ...encoders import Encoder
from ...errors import InputError
from ...extract import (
    Extraction,
    Memory,
    SpacyReader,
    abbreviations,
    build_memory,
    described,
    read_openie,
    read_triples,
    synonym_bounds,
    synonym_pairs,
)
from ...index.contents import passage_vectors, text_to_index
from ...io.tables import Table
from ..console import note
from .rules import FACT_READERS
from .sources import make_word_reader, read_passages, reading_bar

OPENIE, TRIPLES = (".json", ".jsonl"), (".tsv", ".nt", ".parquet")
Bounds = float | Mapping[str, float]


def read_memory(
    source: Path | None,
    path: Path | None,
    passages: Table | None,
    synonyms: Bounds | None,
    reading: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Memory:
    """Read facts from a file, or from passages with a reader, and the passages' words.

    ``source`` is OpenIE (``.json``, or ``.jsonl`` about ``passages``) or triples (``.tsv``, ``.nt``, ``.parquet``);
    ``passages`` were read from ``path``; ``synonyms`` is from :func:`hopfuse.extract.synonym_bounds`; ``reading`` are
    the options of :func:`hopfuse.cli.build.sources.reader_options`; ``options`` are those of
    :meth:`hopfuse.Index.build`.
    """
    if isinstance(synonyms, Mapping):
        # Loading the model twice costs a second; a wrong label found only after reading would waste the whole run.
        synonym_bounds(synonyms, SpacyReader().labels if "spacy" in reading["reader"] else ())
    words = make_word_reader(reading)
    if source is not None:
        found = _read(source, passages)
    else:
        assert passages is not None
        plain = Index.build(passages=passages, **options)  # refuses vectors that do not fit, before anything is read
        if not plain.num_passages:
            raise InputError("empty", "passages", "{field} {path} has no passages; {@reader} needs some", path=path)
        if words is not None and not FACT_READERS & set(reading["reader"]):
            with reading_bar("Reading words") as progress:
                return build_memory(words.read(passages, progress=progress))
        found = read_passages(passages, reading)
    return build_memory(found if words is None else words.add(found))


def index_of_memory(memory: Memory, encoder: Encoder | None, synonyms: Bounds | None, **options: Any) -> Index:
    """Return the index of a memory, and print what became of its facts.

    The encoder makes the entities' vectors, and the passages' if ``vectors`` is None. Joined are entities of at least
    the similarity ``synonyms`` (one, or one per label), and abbreviations that a passage or a name explains.
    """
    if encoder is None:
        _report(memory, {"abbreviated": 0, "similar": 0})
        return memory.index(**options)
    # Words are matched exactly, so they need no vectors.
    vectors = np.asarray(encoder.encode_passages(list(memory.entities))) if memory.num_names else None
    short: NDArray[np.int64] = np.zeros((0, 2), np.int64)
    similar, similarities = short, np.zeros(0, np.float32)
    if synonyms is not None and vectors is not None:
        names = vectors[: memory.num_names]
        explained = [*memory.texts, *memory.entities[: len(names)], *(alias for row in memory.aliases for alias in row)]
        short = memory.abbreviated(abbreviations(explained))
        similar, similarities = synonym_pairs(names, synonyms, memory.labels[: len(names)])
    fresh = ~np.isin(similar @ [len(memory.entities), 1], short @ [len(memory.entities), 1])
    graph = memory.graph(
        np.concatenate([short, similar[fresh]]), np.concatenate([np.ones(len(short)), similarities[fresh]]).tolist()
    )
    if options["vectors"] is None:
        texts = [text_to_index(title, text) for title, text in zip(memory.titles, memory.texts, strict=True)]
        options |= {"vectors": passage_vectors(encoder, texts, memory.ids), "encoder": encoder}
    index = memory.index(graph, entity_vectors=vectors, **options)
    _report(memory, {"abbreviated": len(short), "similar": int(fresh.sum())})
    return index


def _read(source: Path, passages: Table | None) -> list[Extraction]:
    suffix = source.suffix.lower()
    if suffix == ".jsonl" and passages is None:
        raise InputError(
            "missing",
            "passages",
            "{@from} {file} has facts by passage id; give the file of the passages, {field}, too",
            file=source.name,
        )
    if suffix in OPENIE:
        return read_openie(source, passages)
    if passages is not None:
        raise InputError(
            "conflict",
            "passages",
            "{field} is given beside {@from} {file}, whose facts become the passages; leave it out",
            file=source.name,
        )
    check_suffix(source, "from", *OPENIE, *TRIPLES)
    return described(read_triples(source))


def _report(memory: Memory, joined: Mapping[str, int]) -> None:
    out = ", ".join(f"{number:,} {reason}" for reason, number in memory.left_out.items())
    lines = []
    if memory.num_names or memory.words is None:
        lines += [
            f"{counted(len(memory.facts), 'fact')}; left out: {out}",
            f"{counted(len(memory.conflicts), 'conflict')} resolved by majority",
            f"Synonyms: {joined['abbreviated']:,} by abbreviation, {joined['similar']:,} by similarity",
        ]
    if memory.words is not None:
        lines.append(counted(len(memory.entities) - memory.num_names, "word"))
    if len(memory.sequence):
        lines.append(f"{len(memory.sequence):,} pairs of passages that follow each other")
    note("\n".join(lines))
