"""An index of a folder that HippoRAG wrote: ``hopfuse build --from FOLDER``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import Index
from ...adapters.hipporag_folder import SYNONYMS, is_folder, read_folder
from ...errors import InputError
from .memory import read_bounds
from .store import FILE_OPTIONS, QUERY_OPTIONS

__all__ = ["check_folder", "index_of_folder", "is_folder"]


def check_folder(passages: Path | None, conflicts: Path | None, encoder: str | None, given: Mapping[str, Any]) -> None:
    """Refuse options that say what the folder itself has."""
    found: dict[str, Any] = {"PASSAGES": passages, "--conflicts": conflicts, "--encoder": encoder}
    found |= {"--reader": given["readers"] or None, "--metadata-type": given["metadata_types"] or None}
    found["--passages"] = given["passage_query"]
    found |= {f"--{name.replace('_', '-')}": given[name] or None for name in (*FILE_OPTIONS, *QUERY_OPTIONS)}
    for name, value in found.items():
        if value is not None:
            raise InputError(
                f"{name} is given beside --from with a folder of HippoRAG's, which has its own; leave it out"
            )


def index_of_folder(folder: str, synonyms: str | None, given: Mapping[str, Any]) -> Index:
    """Return the index of a folder, whose entities are joined from a similarity on that HippoRAG's graph had."""
    bound = SYNONYMS if synonyms is None else read_bounds(synonyms)
    if isinstance(bound, Mapping):
        raise InputError("--synonyms has labels, and HippoRAG's entities have none; give one similarity for all")
    return read_folder(folder, synonyms=bound, metric=given["metric"], storage=given["storage"])
