"""Rows of the files that a demo's folders have; what is not as it must be is refused by file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..evaluate.json_lines import json_objects, text_lines


def tsv(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Where each row is, and its fields: one for each column, separated by tabs, nothing quoted, no header."""
    for at, line in text_lines(path):
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise InputError(
                f"{path}, line {at} has {len(fields)} columns; it must have {len(columns)}, separated by tabs: "
                f"{', '.join(columns)}"
            )
        yield f"{path}, line {at}", fields


def question_vectors(path: Path, questions: int, dim: int) -> NDArray[Any]:
    """One vector for each question, of so many dimensions."""
    try:
        vectors = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as an .npy array: {error}") from None
    if vectors.shape != (questions, dim):
        raise InputError(
            f"{path} has shape {vectors.shape}; it must be ({questions}, {dim}): a vector for each question of "
            "queries.jsonl, of the dimensions of the passages' vectors"
        )
    return np.asarray(vectors)


def question_entities(path: Path, ids: Sequence[str]) -> list[list[str]]:
    """The names that each question mentions; questions are known by their ids, in their order."""
    mentions = list[list[str]]()
    for at, row in json_objects(path, ("id", "entities")):
        pairs = row["entities"]
        if not isinstance(pairs, list) or not all(map(_is_named, pairs)):
            raise InputError(f"{path}, line {at} has the entities {pairs!r}; they are a list of [name, kind]")
        if len(mentions) < len(ids) and str(row["id"]) != ids[len(mentions)]:
            raise InputError(
                f"{path}, line {at} is of the question {row['id']!r}, where queries.jsonl has {ids[len(mentions)]!r}; "
                "give a line for each question, in the order of queries.jsonl"
            )
        mentions.append([name for name, _ in pairs])
    if len(mentions) != len(ids):
        raise InputError(
            f"{path} has {len(mentions)} lines for the {len(ids)} questions of queries.jsonl; give it one each"
        )
    return mentions


def _is_named(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
