"""Sets of questions before their documents are cut into passages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .packages import Package


@dataclass(frozen=True)
class Section:
    """A part of a document that answers one question: the text under a heading, an entry or a turn."""

    title: str  #: of what the section stands in; never its own heading
    text: str  #: paragraphs, separated by empty lines
    document: str = ""  #: sections of one document are in reading order; entries of dictionaries have none


@dataclass(frozen=True)
class Question:
    """A question and the sections that answer it, by number."""

    id: str  #: the set's name and a key that stays the same when other questions are added
    type: str
    question: str
    answer: str
    gold: tuple[int, ...]


@dataclass(frozen=True)
class Set:
    """Documents in sections, and questions that one section answers."""

    name: str
    about: str
    packages: tuple[Package, ...]
    sections: tuple[Section, ...]
    questions: tuple[Question, ...]
    longest: int | None = 180  #: words of the longest passage of the equal cut; None: only the whole one


#: Makes a set from packages, which are unpacked into a cache.
Maker = Callable[[Path], Set]
