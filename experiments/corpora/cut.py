"""Cut the sections of documents into passages: about equally long ones, or whole sections of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .sets import Section


@dataclass(frozen=True)
class Passage:
    """A passage and the sections that it has text of, by number."""

    title: str
    text: str
    document: str
    position: int
    sections: tuple[int, ...]


def whole(sections: Sequence[Section]) -> list[Passage]:
    """Return one passage for each section, from a line to thousands of words."""
    return _placed((s.title, s.text, s.document, (i,)) for i, s in enumerate(sections))


def equal(sections: Sequence[Section], longest: int) -> list[Passage]:
    """Return passages of at most ``longest`` words.

    A longer section is cut at paragraphs, sentences or words into about equal pieces. Neighbours of one document are
    joined while they are not longer together.
    """
    made: list[tuple[str, list[str], str, list[int]]] = []
    for i, section in enumerate(sections):
        for piece in pieces(section.text, longest):
            if made:
                title, texts, document, numbers = made[-1]
                fits = sum(map(words, texts)) + words(piece) <= longest
                if fits and (title, document) == (section.title, section.document):
                    texts.append(piece)
                    numbers.append(i)
                    continue
            made.append((section.title, [piece], section.document, [i]))
    return _placed(
        (title, "\n\n".join(texts), document, tuple(dict.fromkeys(numbers))) for title, texts, document, numbers in made
    )


def words(text: str) -> int:
    """Return the number of words, separated by white space."""
    return len(text.split())


def pieces(text: str, longest: int) -> list[str]:
    """Return a text in pieces of at most ``longest`` words and about equal lengths."""
    total = words(text)
    if total <= longest:
        return [text]
    target = total / -(-total // (longest * 0.9))  # with room for whole sentences
    made: list[list[str]] = [[]]
    count = done = 0
    for unit in _units(text, longest):
        size = words(unit)
        # A new piece begins where the running total is nearest to a multiple of the target.
        if made[-1] and (count + size > longest or done + size / 2 >= target * len(made)):
            made.append([])
            count = 0
        made[-1].append(unit)
        count += size
        done += size
    return ["".join(piece).strip() for piece in made]


def _units(text: str, longest: int) -> Iterator[str]:
    """Yield paragraphs, or sentences of long paragraphs, or runs of words of long sentences, with their separators."""
    for paragraph in re.split(r"(?<=\n\n)(?=\S|[ \t])", text):
        if words(paragraph) <= longest // 3:
            yield paragraph
            continue
        for sentence in re.split(r"(?<=[.!?]\s)|(?<=\n)", paragraph):
            if words(sentence) <= longest // 2:
                yield sentence
            else:
                step = longest // 4
                run = re.findall(r"\S+\s*", sentence)
                yield from ("".join(run[at : at + step]) for at in range(0, len(run), step))


def _placed(rows: Iterator[tuple[str, str, str, tuple[int, ...]]]) -> list[Passage]:
    """Return passages with their positions in their documents."""
    counts: dict[str, int] = {}
    made = []
    for title, text, document, numbers in rows:
        position = counts.get(document, 0)
        counts[document] = position + 1
        made.append(Passage(title, text, document, position, numbers))
    return made
