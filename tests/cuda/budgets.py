"""The budget of a kernel, as the comment above it states it: kernels/README.md has the convention."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

#: A number, or numbers and placeholders of the kernel's name multiplied: 256, 32 L, 4 * 64 L.
AMOUNT = r"(?:\d+|[A-Z]+\b)(?:[ *]+(?:\d+|[A-Z]+\b))*"
FIELDS = {
    "Block": rf"\bBlock: *({AMOUNT})",
    "Registers": r"\bRegisters: *<= *(\d+)",
    "Shared memory": rf"\bShared memory: *(?:<= *)?({AMOUNT})( KiB)?",
}
#: What a kernel's own paragraph begins with; capitals stand for what its macro puts there.
NAME = r"([a-z][a-zA-Z0-9]*_\w+): "
OCCUPANCY = r"\(occupancy (\d+) *%\)"
DEFAULT_OCCUPANCY = 50
FORM = 'write "Block: 256. Shared memory: 1024 bytes. Registers: <= 40 (occupancy 50 %)."'


class BudgetError(Exception):
    """A kernel has no budget, or one that cannot be read; the message says where and how to write it."""


@dataclass(frozen=True)
class Budget:
    """``block``: threads, or None where ``__launch_bounds__`` says it.

    ``shared``: bytes of a block, static and dynamic. ``occupancy``: the least, in percent.
    """

    block: int | None
    registers: int
    shared: int
    occupancy: int


class Paragraph(NamedTuple):
    """Part of a comment, up to a blank line or a line that begins with the next kernel's name.

    ``below``: the number of the line under the whole comment.
    """

    text: str
    below: int


def read_paragraphs(lines: list[str]) -> Iterator[Paragraph]:
    words: list[list[str]] = [[]]
    for number, line in enumerate([*lines, ""]):
        comment = re.match(r"\s*//+ ?(.*?)\s*\\?$", line)
        if comment is None:
            yield from (Paragraph(" ".join(part), number) for part in words if part)
            words = [[]]
            continue
        if not comment[1] or re.match(NAME, comment[1]):
            words.append([])
        if comment[1]:
            words[-1].append(comment[1].strip())


def bind(pattern: str, kernel: str) -> dict[str, str] | None:
    """What the placeholders (runs of capitals) of a name stand for, or None where the kernel has another name."""
    names = re.findall(r"[A-Z]+", pattern)
    found = re.fullmatch(re.sub(r"[A-Z]+", r"(\\w+?)", pattern), kernel)
    return dict(zip(names, found.groups(), strict=True)) if found is not None else None


def is_directly_above(lines: list[str], below: int, kernel: str) -> bool:
    """Whether the code under a comment declares the kernel before its body, with no blank line between."""
    head = []
    for line in lines[below:]:
        if not line.strip():
            break
        head.append(line)
        if "{" in line:
            break
    return re.search(rf"\b{kernel}\b", " ".join(head).split("{")[0]) is not None


def find_comment(lines: list[str], kernel: str) -> tuple[str, dict[str, str]] | None:
    """The paragraph that begins with the kernel's name, the most literal one; or the comment right above it."""
    named, above = [], []
    for paragraph in read_paragraphs(lines):
        name = re.match(NAME, paragraph.text)
        bound = bind(name[1], kernel) if name is not None else None
        if bound is not None:
            named.append((len(bound), paragraph.text, bound))
        elif "Registers:" in paragraph.text and is_directly_above(lines, paragraph.below, kernel):
            above.append(paragraph.text)
    if named:
        return min(named, key=lambda found: found[0])[1:]
    return (above[-1], {}) if above else None


def amount(text: str, bound: dict[str, str]) -> int:
    return prod(int(bound.get(word, word)) for word in re.findall(r"\w+", text))


def read_budget(source: Path, kernel: str) -> Budget:
    """The budget of one kernel of a file."""
    where = f"{source.name}: kernel {kernel}"
    found = find_comment(source.read_text(encoding="utf-8").splitlines(), kernel)
    if found is None or "Registers:" not in found[0]:
        raise BudgetError(f"{where} has no comment above it that states its budget; {FORM}")
    comment, bound = found
    fields = {name: re.search(pattern, comment) for name, pattern in FIELDS.items()}
    for name, field in fields.items():
        if field is None and f"{name}:" in comment:
            raise BudgetError(f"{where}: what its comment says of {name!r} cannot be read; {FORM}")
    try:
        values = {name: amount(field[1], bound) for name, field in fields.items() if field is not None}
    except ValueError:
        raise BudgetError(f"{where}: its comment counts in a letter that its name does not have; {FORM}") from None
    shared = fields["Shared memory"]
    stated = re.search(OCCUPANCY, comment)
    return Budget(
        values.get("Block"),
        values["Registers"],
        values.get("Shared memory", 0) * (1024 if shared is not None and shared[2] else 1),
        int(stated[1]) if stated is not None else DEFAULT_OCCUPANCY,
    )
