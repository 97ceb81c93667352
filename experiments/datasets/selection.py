"""Select a folder's passages and questions from the public files by checksums, ids and numbers, not by texts."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..folders import read_lines

SELECTIONS = Path(__file__).parent / "selections"
_FIELDS = ("id", "gold", "hops")


def fingerprint(title: str, text: str) -> int:
    """Return the first 64 bits of a passage's SHA-256, with one space for any spaces, which copies of a file change."""
    plain = " ".join(f"{title}\n{text}".split())
    return int.from_bytes(hashlib.sha256(plain.encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Judged:
    """A question's id and the rows of its passages: all of them, and those of each hop, in order where it is known."""

    id: str
    gold: list[int]
    hops: list[list[int]]


@dataclass(frozen=True)
class Selection:
    """The passages of a folder in order, by fingerprint, and its questions."""

    passages: NDArray[np.uint64]
    questions: list[Judged]

    @classmethod
    def of_folder(cls, folder: Path) -> Selection:
        """Return the selection of a folder."""
        passages = [fingerprint(row["title"], row["text"]) for row in read_lines(folder / "passages.jsonl")]
        asked = [Judged(row["id"], row["gold"], row["hops"]) for row in read_lines(folder / "queries.jsonl")]
        return cls(np.array(passages, np.uint64), asked)

    @classmethod
    def read(cls, name: str, folder: Path = SELECTIONS) -> Selection:
        """Return the recorded selection of a set."""
        with (folder / f"{name}.questions.tsv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        questions = [
            Judged(row["id"], _numbers(row["gold"]), [_numbers(hop) for hop in row["hops"].split(";")]) for row in rows
        ]
        return cls(np.fromfile(folder / f"{name}.passages", ">u8").astype(np.uint64), questions)

    def write(self, name: str, folder: Path = SELECTIONS) -> None:
        """Record the selection: 8 bytes a passage, and a line a question."""
        self.passages.astype(">u8").tofile(folder / f"{name}.passages")
        with (folder / f"{name}.questions.tsv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(_FIELDS)
            for one in self.questions:
                table.writerow((one.id, _listed(one.gold), ";".join(map(_listed, one.hops))))

    def choose(self, found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return title and text of the passages, in order; raise ValueError if some are not among those found."""
        known: dict[int, tuple[str, str]] = {}
        for passage in found:
            known.setdefault(fingerprint(*passage), passage)
        missing = sum(key not in known for key in self.passages.tolist())
        if missing:
            raise ValueError(f"{missing} of {len(self.passages)} passages are not in the file: another release of it?")
        return [known[key] for key in self.passages.tolist()]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
