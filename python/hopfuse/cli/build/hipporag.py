"""``hopfuse build --from FOLDER``: an index of a folder written by HippoRAG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import Index
from ...adapters.hipporag_folder import SYNONYMS, is_folder, read_folder
from ...errors import InputError
from .memory import read_bounds
from .store import FILE_OPTIONS, QUERY_OPTIONS

__all__ = ["check_folder", "index_of_folder", "is_folder", "refuse_results_alone"]


def refuse_results_alone(folder: str) -> None:
    """Refuse a folder that has HippoRAG's OpenIE results, but no vectors of a model."""
    found = sorted(Path(folder).glob("openie_results_ner_*.json")) if Path(folder).is_dir() else []
    if found:
        raise InputError(
            "UNSORTED",
            None,
            "{folder} has HippoRAG's {name}, but no folder of a model with vectors; let HippoRAG index "
            "first, or give the file: {@from} {found} {@encoder} ...",
            folder=folder,
            name=found[0].name,
            found=found[0],
        )


def check_folder(passages: Path | None, conflicts: Path | None, encoder: str | None, given: Mapping[str, Any]) -> None:
    """Refuse options for what the folder itself holds."""
    found: dict[str, Any] = {"PASSAGES": passages, "--conflicts": conflicts, "--encoder": encoder}
    found |= {"--reader": given["readers"] or None, "--metadata-type": given["metadata_types"] or None}
    found["--passages"] = given["passage_query"]
    found |= {f"--{name.replace('_', '-')}": given[name] or None for name in (*FILE_OPTIONS, *QUERY_OPTIONS)}
    for name, value in found.items():
        if value is not None:
            raise InputError(
                "unused", name, "{field} is given with {@from} and a HippoRAG folder, which has its own; leave it out"
            )


def index_of_folder(folder: str, synonyms: str | None, given: Mapping[str, Any]) -> Index:
    """Return the index of a folder, entities joined from the given similarity on, by default HippoRAG's."""
    bound = SYNONYMS if synonyms is None else read_bounds(synonyms)
    if isinstance(bound, Mapping):
        raise InputError(
            "UNSORTED", "synonyms", "{field} has labels, but HippoRAG's entities have none; give one similarity for all"
        )
    return read_folder(folder, synonyms=bound, metric=given["metric"], storage=given["storage"])
