"""``hopfuse build --from`` with a folder of Parquet files or a database: the index of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ... import Index
from ...encoders import open_encoder
from ...errors import InputError
from ...stores import Source, open_source
from ..filters import read_types


def save_store(
    place: str,
    encoder: str | None,
    lexical: str | None,
    given: Mapping[str, Any],
    out: Path,
    save: Callable[[Index], None],
) -> None:
    """Save the index of a store's rows; if the passages have no vectors there, an encoder makes those of the index."""
    queries = {
        "passages": [given["passage_query"]],
        "entities": [given["entities"]],
        "edges": list(given["edges"]),
        "facts": [given["facts"]],
    }
    source = open_source(place, {table: [text for text in texts if text] for table, texts in queries.items()})
    scratch = next(folder for folder in (out, *out.absolute().parents) if folder.is_dir())

    def build(source: Source) -> Index:
        options = {name: given[name] for name in ("metric", "storage")} | {"lexical": lexical}
        index = Index.build(source, metadata_types=read_types(given["metadata_types"]), scratch=scratch, **options)
        if encoder is None:
            return index
        if index.dim is not None:
            raise InputError(
                "unused", "encoder", "{field} is given, but the store's passages have vectors; leave it out"
            )
        return index.with_encoder(open_encoder(encoder))

    if given["slot"] is None:
        save(build(source))
        return
    from ...stores.postgres import PostgresSource, followed

    if not isinstance(source, PostgresSource):
        raise InputError(
            "unsupported",
            "slot",
            "{field} is given, but the store is not PostgreSQL and cannot be followed; leave it out",
        )
    with followed(source, given["slot"], build) as index:
        save(index)
