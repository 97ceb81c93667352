"""``hopfuse build --from FOLDER``: an index of a folder written by HippoRAG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import Index
from ...adapters.hipporag_folder import SYNONYMS, is_folder, read_folder
from ...errors import InputError
from ...extract import synonym_bounds

__all__ = ["index_of_folder", "is_folder", "refuse_results_alone"]


def refuse_results_alone(folder: str) -> None:
    """Refuse a folder that has HippoRAG's OpenIE results, but no vectors of a model."""
    found = sorted(Path(folder).glob("openie_results_ner_*.json")) if Path(folder).is_dir() else []
    if found:
        raise InputError(
            "missing",
            "from",
            "{field} is {given!r}, which has HippoRAG's {file}, but no folder of a model with vectors; let HippoRAG "
            "index first, or give the file: {@from} {given}/{file} {@encoder} ...",
            given=folder,
            file=found[0].name,
        )


def index_of_folder(folder: str, synonyms: str | None, given: Mapping[str, Any]) -> Index:
    """Return the index of a folder, entities joined from the given similarity on, by default HippoRAG's."""
    bound = SYNONYMS if synonyms is None else synonym_bounds(synonyms)
    if isinstance(bound, Mapping):
        raise InputError(
            "unsupported",
            "synonyms",
            "{field} has labels, but HippoRAG's entities have none; give one similarity for all",
        )
    return read_folder(folder, synonyms=bound, metric=given["metric"], storage=given["storage"])
