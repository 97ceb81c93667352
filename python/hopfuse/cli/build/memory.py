"""``hopfuse build --from`` a file of extracted facts, and what became of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..._validation import check_suffix, counted
from ...errors import InputError
from ...extract import Extraction, described, read_openie, read_triples
from ...extract.building import Built
from ..console import note

OPENIE, TRIPLES = (".json", ".jsonl"), (".tsv", ".nt", ".parquet")


class FactFile(NamedTuple):
    """A reader of facts in a file: OpenIE (``.json``, or ``.jsonl`` about passages), or triples."""

    path: Path

    def read(self, passages: Any, *, progress: Any = None) -> list[Extraction]:
        """Return the extractions of the file."""
        suffix = self.path.suffix.lower()
        if suffix == ".jsonl" and passages is None:
            raise InputError(
                "missing",
                "passages",
                "{@from} {file} has facts by passage id; give the file of the passages, {field}, too",
                file=self.path.name,
            )
        if suffix in OPENIE:
            return read_openie(self.path, passages)
        check_suffix(self.path, "from", *OPENIE, *TRIPLES)
        return described(read_triples(self.path))

    def check(self, passages: Path | None) -> None:
        """Refuse passages beside a file that has its own, or whose facts become some."""
        if passages is not None and self.path.suffix.lower() != ".jsonl":
            raise InputError(
                "conflict",
                "passages",
                "{field} is given beside {@from} {file}, whose facts become the passages; leave it out",
                file=self.path.name,
            )


def report(built: Built) -> None:
    """Print what was found, left out and joined."""
    memory, joined = built.memory, built.joined
    out = ", ".join(f"{number:,} {reason}" for reason, number in memory.left_out.items())
    lines = []
    if memory.num_names or memory.words is None:
        lines += [
            f"{counted(len(memory.facts), 'fact')}; left out: {out}",
            f"{counted(len(memory.conflicts), 'conflict')} resolved by majority",
            f"Synonyms: {joined['abbreviated']:,} by abbreviation, {joined['similar']:,} by similarity",
        ]
    if memory.words is not None:
        lines.append(counted(len(memory.entities) - memory.num_names, "word"))
    lines += _spoken(built)
    if len(memory.sequence):
        lines.append(f"{len(memory.sequence):,} pairs of passages that follow each other")
    note("\n".join(lines))


def _spoken(built: Built) -> list[str]:
    """Return in which languages the text is, and how much of it no reader is for."""
    shares = built.spoken.shares
    lines = [f"Languages: {', '.join(f'{language} {_percent(share)}' for language, share in shares.items()) or '?'}"]
    if built.language is not None:
        lines[0] += f"; words are read as {built.language} (--language)"
    if shares:
        lines.append(f"No reader is for {_percent(built.unread)} of the text (--language, --spacy-model)")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.005 else "< 1 %"
