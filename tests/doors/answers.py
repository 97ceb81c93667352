"""What a door answers to a question: a ranking with notes, or an error; and how the answers of doors are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from hopfuse.errors import HopfuseError


class Note(NamedTuple):
    """A note beside a ranking; what a door does not say of it is None."""

    code: str | None
    field: str | None
    sentence: str | None = None


@dataclass(frozen=True)
class Answer:
    """A ranking as ids and scores, best first, and its notes."""

    hits: Sequence[tuple[str | int, float]]
    notes: Sequence[Note] = ()

    @classmethod
    def of(cls, hits: Iterable[Any], notes: Iterable[HopfuseError]) -> Answer:
        """Return the answer that Python gives: objects with an id and a score, and errors that were not raised."""
        said = [Note(one.code, None if one.field is None else str(one.field), str(one)) for one in notes]
        return cls([(hit.id, float(hit.score)) for hit in hits], said)

    @classmethod
    def read(cls, row: Mapping[str, Any], places: Mapping[str, str] = MappingProxyType({})) -> Answer:
        """Return the answer of a JSON object with hits, and with notes, as errors or as sentences, if there are any."""
        said = [
            Note(None, None, one)
            if isinstance(one, str)
            else Note(one["code"], relative(one["field"], places), one["message"])
            for one in row.get("notes", ())
        ]
        return cls([(hit["id"], hit["score"]) for hit in row["hits"]], said)


@dataclass(frozen=True)
class Refusal(Exception):  # noqa: N818 - an answer too
    """An error: its class (None if a door does not say it), its code, and its field relative to the question."""

    kind: str | None
    code: str
    field: str | None

    @classmethod
    def of(cls, error: HopfuseError, places: Mapping[str, str]) -> Refusal:
        """Return an error with its field relative to the question."""
        return cls(type(error).__name__, error.code, relative(error.field, places))

    @classmethod
    def read(cls, error: Mapping[str, Any], places: Mapping[str, str]) -> Refusal:
        """Return the error of a JSON object."""
        return cls(error.get("class"), error["code"], relative(error["field"], places))


def relative(field: str | None, places: Mapping[str, str]) -> str | None:
    """Return a field without a door's place: the first pattern that matches its beginning is replaced."""
    for pattern, plain in places.items():
        found = re.match(pattern, field or "")
        if found is not None:
            return (plain + str(field)[found.end() :]).lstrip(".") or None
    return field


def difference(name: str, expected: Any, got: Any) -> str:
    """Return how a door's answer differs, in lines; empty if it does not."""
    if got == expected:
        return ""
    if not (isinstance(expected, Answer) and isinstance(got, Answer)):
        return f"{name}: expected {_shown(expected)}\n{' ' * len(name)}       got {_shown(got)}"
    lines = [f"{name}:"]
    if got.hits != expected.hits:
        lines += [f"  hits, expected {_ranking(expected)}", f"            got {_ranking(got)}"]
    if got.notes != expected.notes:
        lines += [f"  notes, expected {expected.notes}", f"             got {got.notes}"]
    return "\n".join(lines)


def _ranking(answer: Answer) -> str:
    return ", ".join(f"{id} {score!r}" for id, score in answer.hits) or "nothing"


def _shown(one: Any) -> str:
    return f"hits {_ranking(one)}, notes {one.notes}" if isinstance(one, Answer) else repr(one)
