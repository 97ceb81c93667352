"""``hopfuse build --from`` with a folder of Parquet files or a database: the index of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ... import Index
from ..._validation import counted
from ...errors import InputError
from ...index.contents import passage_vectors
from ...stores import Source, open_source
from ..filters import read_types
from ..options import make_encoder

#: Options of builds from files.
FILE_OPTIONS = ("vectors", "nodes", "aliases", "entity_vectors", "fact_ends")
#: Options whose values are queries if the store is a database, and --slot, which only a database has.
QUERY_OPTIONS = ("edges", "entities", "facts", "slot")


def check_store(passages: Path | None, synonyms: str | None, conflicts: Path | None, given: Mapping[str, Any]) -> None:
    """Refuse options of builds from files or from extracted facts."""
    found: dict[str, Any] = {"PASSAGES": passages, "--synonyms": synonyms, "--conflicts": conflicts}
    found["--reader"] = given["readers"] or None
    found |= {f"--{name.replace('_', '-')}": given[name] for name in FILE_OPTIONS}
    for name, value in found.items():
        if value is not None:
            raise InputError(
                "UNSORTED", name, "{field} is given with {@from} and a store, which has its own; leave one out"
            )


def check_files(given: Mapping[str, Any]) -> None:
    """Refuse options of stores for a build from files."""
    for name, value in (("--passages", given["passage_query"]), ("--slot", given["slot"])):
        if value is not None:
            raise InputError("unused", name, "{field} is given without {@from} DATABASE, which it needs; leave it out")
    if len(given["edges"]) > 1:
        raise InputError(
            "UNSORTED",
            "edges",
            "{field} is given {count}; only {@from} DATABASE takes several",
            count=counted(len(given["edges"]), "time"),
        )


def save_store(
    place: str, encoder: str | None, given: Mapping[str, Any], out: Path, save: Callable[[Index], None]
) -> None:
    """Save the index of a store's rows; if the passages have no vectors there, an encoder makes them."""
    queries = {
        "passages": [given["passage_query"]],
        "entities": [given["entities"]],
        "edges": list(given["edges"]),
        "facts": [given["facts"]],
    }
    source = open_source(place, {table: [text for text in texts if text] for table, texts in queries.items()})
    scratch = next(folder for folder in (out, *out.absolute().parents) if folder.is_dir())

    def build(source: Source) -> Index:
        options = {name: given[name] for name in ("metric", "storage")}
        index = Index.build(source, metadata_types=read_types(given["metadata_types"]), scratch=scratch, **options)
        if encoder is None:
            return index
        if index.dim is not None:
            raise InputError(
                "unused", "encoder", "{field} is given, but the store's passages have vectors; leave it out"
            )
        model = make_encoder(encoder)
        return index.with_vectors(passage_vectors(model, index.texts_to_index(), index.passage_ids), encoder=model)

    if given["slot"] is None:
        save(build(source))
        return
    from ...stores.postgres import PostgresSource, followed

    if not isinstance(source, PostgresSource):
        raise InputError(
            "unused", "slot", "{field} is given, but the store is not PostgreSQL and cannot be followed; leave it out"
        )
    with followed(source, given["slot"], build) as index:
        save(index)
