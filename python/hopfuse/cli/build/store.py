"""The index of a store: ``hopfuse build --from`` with a folder or a URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import Index
from ...errors import InputError
from ...stores import open_source
from ..filters import read_types
from ..options import make_encoder

#: Options of builds from files.
FILE_OPTIONS = ("vectors", "edges", "entities", "nodes", "aliases", "entity_vectors", "facts", "fact_ends")


def check_store(passages: Path | None, synonyms: str | None, conflicts: Path | None, given: Mapping[str, Any]) -> None:
    """Refuse options of builds from files, and of extracted facts."""
    found: dict[str, Any] = {
        "PASSAGES": passages,
        "--synonyms": synonyms,
        "--conflicts": conflicts,
        "--reader": given["readers"] or None,
    }
    found |= {f"--{name.replace('_', '-')}": given[name] for name in FILE_OPTIONS}
    for name, value in found.items():
        if value is not None:
            raise InputError(f"{name} is given beside --from with a store, which has its own; leave one out")


def index_of_store(place: str, encoder: str | None, out: Path, given: Mapping[str, Any]) -> Index:
    """Return the index of a store's rows; an encoder gives vectors to passages that have none there."""
    source = open_source(place)
    scratch = next(folder for folder in (out, *out.absolute().parents) if folder.is_dir())
    options = {name: given[name] for name in ("metric", "storage")}
    index = Index.build(source, metadata_types=read_types(given["metadata_types"]), scratch=scratch, **options)
    if encoder is None:
        return index
    if index.dim is not None:
        raise InputError("--encoder is given for a store whose passages have vectors; leave one out")
    model = make_encoder(encoder)
    return index.with_vectors(model.encode_passages(index.texts_to_index()), encoder=model)
