"""``hopfuse build``: an index from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import Index
from ..errors import InputError
from ..types.corpus import METRICS, STORAGES
from .build_checks import check_language, check_out, check_vectors, with_bm25
from .info import index_table
from .nodes import read_nodes
from .options import DIRECTORY, FILE, encoder_option, make_encoder
from .reading import check_reader, reader_options
from .remember import remembered
from .settled_file import check_settled, save_recorded
from .synonym_bounds import read_bounds


@click.command()
@click.option("--passages", type=FILE, help="Rows of id, title, text: .jsonl, .tsv or .parquet.")
@click.option(
    "--from",
    "source",
    type=FILE,
    help="Facts: OpenIE (.json as HippoRAG has it, or .jsonl beside --passages) or triples (.tsv, .nt, .parquet); with "
    "--reader, passages.",
)
@reader_options
@click.option(
    "--synonyms",
    metavar="SIMILARITY",
    help="With --from: join entities that --encoder finds so similar, and abbreviations with what they stand for. With "
    "--reader spacy also one for each label: PERSON=0.85,ORG=0.8,*=0.9.",
)
@click.option(
    "--settled", type=FILE, help="With --from: write what was kept where passages disagree, and dropped: .jsonl."
)
@click.option("--overwrite", is_flag=True, help="Replace the file of --settled where it exists.")
@click.option("--vectors", type=FILE, help="One vector per passage: .npy.")
@encoder_option
@click.option("--edges", type=FILE, help="Rows of src, dst, type, weight: .jsonl, .tsv or .parquet.")
@click.option("--entities", type=FILE, help="Rows of name: .jsonl, .tsv or .parquet.")
@click.option("--nodes", type=FILE, help="In place of --entities: lines of node, passage or entity, name: .tsv.")
@click.option("--aliases", type=FILE, help="Other names: .jsonl with entity (name or number) and aliases (a list).")
@click.option("--entity-vectors", type=FILE, help="One vector per entity: .npy.")
@click.option("--facts", type=FILE, help="Rows of head, relation, tail, passage (its row): .jsonl, .tsv or .parquet.")
@click.option(
    "--fact-ends",
    type=click.Choice(("name", "node")),
    help="Heads and tails of --facts are names of entities, as they are written, or nodes P .. N-1.  [default: name]",
)
@click.option("--metric", type=click.Choice(METRICS), default="ip", show_default=True)
@click.option("--storage", type=click.Choice(STORAGES), default="float32", show_default=True)
@click.option(
    "--lexical",
    is_flag=False,
    flag_value="english",
    metavar="[LANGUAGE]",
    help="Keep BM25 over titles and texts: stop words and stems of this language, english where absent, or none.",
)
@click.option("--out", type=DIRECTORY, required=True, help="Directory of the index; made where absent.")
def build(
    passages: Path | None,
    source: Path | None,
    synonyms: str | None,
    settled: Path | None,
    overwrite: bool,
    vectors: Path | None,
    encoder: str | None,
    edges: Path | None,
    entities: Path | None,
    nodes: Path | None,
    aliases: Path | None,
    entity_vectors: Path | None,
    facts: Path | None,
    fact_ends: Any,
    metric: Any,
    storage: Any,
    lexical: str | None,
    out: Path,
    **reading: Any,
) -> None:
    """Build an index from files.

    Passages are nodes 0 .. P-1 of the graph, in their order; entities are nodes P .. N-1. With --from, entities, edges
    and aliases are made of the facts, which the index keeps; else it keeps those of --facts.
    """
    check_vectors(vectors, encoder, entity_vectors, metric, storage)
    if entities is not None and nodes is not None:
        raise InputError("--entities and --nodes are both given; each names the entities")
    if fact_ends is not None and facts is None:
        raise InputError("--fact-ends is given without --facts, whose heads and tails it is about")
    check_reader(reading)
    bounds = None if synonyms is None else read_bounds(synonyms)
    check_settled(settled, {"--from": source, "--passages": passages, "--vectors": vectors}, out, overwrite=overwrite)
    check_language(lexical)
    check_out(out)
    made = None if encoder is None else make_encoder(encoder)
    if source is not None:
        given = {"--edges": edges, "--entities": entities, "--nodes": nodes, "--aliases": aliases, "--facts": facts}
        for name, value in (given | {"--entity-vectors": entity_vectors}).items():
            if value is not None:
                raise InputError(f"{name} is given beside --from, which makes its own; leave one of them out")
        options = {"vectors": vectors, "metric": metric, "storage": storage}
        memory, index = remembered(source, passages, made, bounds, reading, **options)
    elif passages is None:
        raise InputError("there is nothing to build from: give --passages, or --from")
    elif reading["reader"] is not None:
        raise InputError("--reader is given without --from; name there the passages that it reads")
    elif synonyms is not None:
        raise InputError("--synonyms is given without --from; edges of --edges are taken as they are")
    else:
        named = None if nodes is None else read_nodes(nodes)
        others = None if aliases is None else read_aliases(aliases)
        index = Index.build(
            passages=passages,
            vectors=vectors if made is None else made.encode_passages(_texts(passages)),
            graph=edges,
            entities=entities if named is None else named.entities,
            aliases=others,
            entity_vectors=entity_vectors,
            facts=facts,
            fact_ends=fact_ends or "name",
            metric=metric,
            storage=storage,
        )
        if named is not None and named.passages != index.num_passages:
            raise InputError(f"--nodes has {named.passages} passages, --passages {index.num_passages}; they must agree")
    if lexical is not None:
        index = with_bm25(index, lexical)
    generation = index.save(out) if settled is None else save_recorded(settled, memory, lambda: index.save(out))
    Console(stderr=True).print(f"Saved generation {generation} in {out}", soft_wrap=True, highlight=False)
    Console().print(index_table(index.info() | {"generation": generation}))


def _texts(passages: Path) -> list[str]:
    return list(Index.build(passages=passages).texts)


def read_aliases(path: Path) -> dict[int | str, list[str]]:
    """Other names by entity, from a .jsonl file; what an entity's rows have is put together."""
    found: dict[int | str, list[str]] = {}
    try:
        with open(path, encoding="utf-8") as file:  # a line ends at a line feed: JSON may hold the other separators
            lines = [line.rstrip("\n") for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--aliases: {path} cannot be read as UTF-8 text: {error}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            entity, names = row["entity"], row["aliases"]
            fits = isinstance(entity, (int, str)) and not isinstance(entity, bool) and isinstance(names, list)
        except (ValueError, TypeError, KeyError):
            fits = False
        if not fits:
            raise InputError(f'{path}, line {number} is {line[:80]!r}; it must be {{"entity": ..., "aliases": [...]}}')
        found.setdefault(entity, []).extend(names)
    return found
