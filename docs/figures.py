"""Read the figures that the pages state from the result files they come from.

A figure in a sentence or a cell is followed by a comment that says where it stands::

    19.4 ms<!-- from bench/results/xeon.jsonl case=ppr-hotpotqa peer=igraph batch=64 hopfuse/median *1000 -->
    93.6<!-- from experiments/results/side-by-side.json hotpotqa/folder/means/guided-walk+words/recall@5 *100 -->

First the file; then, for rows (``.jsonl``, ``.csv``, or a list in ``.json``), ``name=value`` for each column that
chooses the one row, where a name may stand in the row's ``sizes``; then the path to the value; last, a factor. Words
with spaces are quoted. What is written must be the value, rounded to the digits that are written.

``python docs/figures.py`` checks every page; tests/test_figures.py runs the same checks.
"""

from __future__ import annotations

import csv
import functools
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: The pages on which every figure needs a source: those that a reader decides by, and those that have no other figures.
STRICT = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("index", "start", "compare", "glossary", "operations", "retriever", "triple-hybrid")
    ),
    *(
        f"docs/guides/{name}.md"
        for name in ("chunks", "cpp", "gpu", "hipporag", "memory", "offline", "research", "service")
    ),
)
UNITS = r"(?:[µmn]?s|×(?! ?\d)|%|percent|points?|[KMGT]i?B|minutes?|hours?|seconds?|milliseconds?)"
NUMBER = r"(?<![\w.,])[-−]?\d+(?:,\d{3})*(?:\.\d+)?"
MARKED = re.compile(rf"({NUMBER})[*_]*(?: ?{UNITS})?[*_]*\s*<!--\s*from\s+(.*?)\s*-->", re.DOTALL)
#: A figure: a number with a unit, with decimals, or of four digits and more with a comma.
FIGURE = re.compile(rf"(?<![\w.,/-])(?:{NUMBER} ?{UNITS}(?![\w-])|\d+\.\d+(?![\w.])|\d+(?:,\d{{3}})+)")
#: Numbers of releases.
RELEASE = re.compile(
    r"(?:Python|GCC|Clang|capability|capabilities|CUDA|glibc|macOS|CMake|version|RFC|[<>=]=?)\s*\d+(?:\.\d+)*\+?"
)
#: What docs/tables.py writes, and what is no prose.
GENERATED = re.compile(r"<!-- ([\w-]+): python docs/tables\.py -->.*?<!-- end of \1 -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

#: A page or a part of one that a command writes.
WRITTEN = re.compile(
    r"This page is written by|Measured by `python -m|<!-- ([\w-]+)(?:: [^>]*)? -->.*?<!-- end of \1 -->", re.S
)
FILE = re.compile(r"\b(?:bench|experiments|docs)/results/[\w.-]+\.(?:jsonl?|csv)\b")


@dataclass(frozen=True)
class Source:
    """The place of a value: a file, what chooses the row, the path in it, and a factor."""

    file: str
    row: tuple[tuple[str, str], ...]
    path: str
    factor: float

    @classmethod
    def read(cls, text: str) -> Source:
        file, *words = shlex.split(text)
        factor = float(words.pop()[1:]) if words and re.fullmatch(r"\*[\d.e+-]+", words[-1]) else 1.0
        if not words or "=" in words[-1].partition("/")[0]:
            raise ValueError(f"{text!r} names no value; the path stands behind the conditions")
        if not all("=" in word for word in words[:-1]):
            raise ValueError(f"{text!r} has more than one path; quote one with spaces")
        row = tuple((name, value) for name, _, value in (word.partition("=") for word in words[:-1]))
        return cls(file, tuple(sorted(row)), words[-1], factor)

    @property
    def measure(self) -> str:
        """Return what is measured, without the file."""
        return " ".join([*(f"{name}={value}" for name, value in self.row), self.path])

    def value(self, root: Path = ROOT) -> float:
        found = content(root / self.file)
        if self.row:
            found = self._one_row(found)
        for key in _steps(self.path, found):
            found = found[key]
        if isinstance(found, str):
            found = float(found)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise TypeError(f"{self.measure} in {self.file} is {type(found).__name__}, not a number")
        return self.factor * found

    def _one_row(self, rows: Any) -> Mapping[str, Any]:
        if not isinstance(rows, list):
            raise TypeError(f"{self.file} is not a list of rows")
        matching = [row for row in rows if all(_text(row, name) == value for name, value in self.row)]
        if len(matching) != 1:
            raise LookupError(f"{len(matching)} rows of {self.file} have {dict(self.row)}")
        return matching[0]


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row[name] if name in row else (row.get("sizes") or {}).get(name)
    return None if value is None else str(value)


def _steps(path: str, found: Any) -> Iterator[Any]:
    """Yield the keys of a path; a key may itself have slashes, and a number counts in a list."""
    rest = path
    while rest:
        if isinstance(found, list):
            head, _, rest = rest.partition("/")
            key: Any = int(head)
        else:
            keys = [key for key in found if rest == key or rest.startswith(f"{key}/")]
            if not keys:
                raise LookupError(f"no {rest!r} among {sorted(found)[:20]}")
            key = max(keys, key=len)
            rest = rest[len(key) + 1 :]
        yield key
        found = found[key]


@functools.cache
def content(file: Path) -> Any:
    """Return what a result file holds: JSON, or a list of rows."""
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if file.suffix == ".csv":
        with file.open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return json.loads(file.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Figure:
    """A number on a page, and where it comes from."""

    page: str
    line: int
    written: str
    source: Source


def pages(root: Path = ROOT) -> list[str]:
    """Return README.md and the pages of docs/."""
    return ["README.md", *sorted(str(page.relative_to(root)) for page in (root / "docs").rglob("*.md"))]


def figures_of(page: str, text: str) -> list[Figure]:
    """Return the figures of a page that name their source."""
    return [
        Figure(page, text.count("\n", 0, found.start()) + 1, found[1], Source.read(" ".join(found[2].split())))
        for found in MARKED.finditer(text)
    ]


def wrong(figure: Figure, root: Path = ROOT) -> str | None:
    """Say how a figure differs from its file, or return None."""
    plain = figure.written.replace(",", "").replace("−", "-")
    decimals = len(plain.partition(".")[2])
    try:
        value = figure.source.value(root)
    except (KeyError, IndexError, LookupError, TypeError, ValueError, OSError) as error:
        return f"{figure.page}:{figure.line}: {figure.written}: {error}"
    if abs(float(plain) - value) <= 0.5 * 10.0**-decimals * (1 + 1e-9):
        return None
    return (
        f"{figure.page}:{figure.line}: {figure.written} is {value:.6g} in {figure.source.file}: {figure.source.measure}"
    )


def comments_without_figure(page: str, text: str) -> list[str]:
    """Return the comments that stand behind no number."""
    begun = len(re.findall(r"<!--\s*from\s", text))
    return [] if begun == len(MARKED.findall(text)) else [f"{page}: a source stands behind no number"]


def without_source(page: str, text: str) -> list[str]:
    """Return the figures of a page that name no source."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    for known in (GENERATED, MARKED, CODE, COMMENT, RELEASE):
        text = known.sub(blank, text)
    lines = text.split("\n")
    return [f"{page}:{at}: {found[0]}" for at, line in enumerate(lines, 1) for found in FIGURE.finditer(line)]


def named_without_figure(page: str, text: str) -> list[str]:
    """Return the result files that a page names, if neither a figure nor a generated part comes from them."""
    if WRITTEN.search(text):
        return []
    used = {figure.source.file for figure in figures_of(page, text)}
    return [f"{page} has no figure from {file}" for file in sorted(set(FILE.findall(COMMENT.sub("", text))) - used)]


def from_two_files(figures: Sequence[Figure]) -> list[str]:
    """Return the measures that pages take from different files."""
    files: dict[str, dict[str, str]] = {}
    for figure in figures:
        files.setdefault(figure.source.measure, {}).setdefault(figure.source.file, f"{figure.page}:{figure.line}")
    return [f"{measure}: {places}" for measure, places in files.items() if len(places) > 1]


# ---- The same words with other numbers --------------------------------------------------------------------

WORDS = 6  # a statement with fewer words besides its figures is about nothing in particular


def statements(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a page says with figures: a sentence or a row with its heading, and the figures, in order."""
    text = re.sub(r"^```.*?^```", "", COMMENT.sub("", text), flags=re.DOTALL | re.MULTILINE)
    head, before = "", ""
    prose: list[str] = []
    for line in text.splitlines():
        if line.startswith("|"):
            if re.fullmatch(r"[|:\- ]+", line):
                head = before
            elif head:
                yield from _statement(f"{head} {line}")
            before = line
        else:
            head = ""
            prose.append(line)
    joined = re.sub(r"\n(?![\n#*-])", " ", "\n".join(prose))
    for sentence in re.split(r"(?<=[.;:!?])\s+|\n+", joined):
        yield from _statement(sentence)


def _statement(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    text = RELEASE.sub("release", text)
    found = tuple(each[0].replace(" ", "") for each in FIGURE.finditer(text))
    words = " ".join(re.findall(r"[^\W\d_][\w/@+-]*|#", FIGURE.sub("#", text).lower()))
    if found and len(set(words.split()) - {"#"}) >= WORDS:
        yield words, found


def contradictions(texts: Mapping[str, str]) -> list[str]:
    """Return what is stated in the same words with different figures."""
    said: dict[str, dict[tuple[str, ...], str]] = {}
    for page, text in texts.items():
        for words, numbers in statements(text):
            said.setdefault(words, {}).setdefault(numbers, page)
    return [
        f"{words[:100]}: " + "; ".join(f"{page}: {', '.join(numbers)}" for numbers, page in found.items())
        for words, found in said.items()
        if len(set(found.values())) > 1
    ]


def check(root: Path = ROOT) -> list[str]:
    """Return everything that is wrong with the figures of all pages."""
    texts = {page: (root / page).read_text(encoding="utf-8") for page in pages(root)}
    figures = [figure for page, text in texts.items() for figure in figures_of(page, text)]
    return [
        *filter(None, (wrong(figure, root) for figure in figures)),
        *(said for page, text in texts.items() for said in comments_without_figure(page, text)),
        *(said for page, text in texts.items() for said in named_without_figure(page, text)),
        *(said for page in STRICT for said in without_source(page, texts[page])),
        *from_two_files(figures),
        *contradictions(texts),
    ]


if __name__ == "__main__":
    faults = check()
    print("\n".join(faults) or "every figure agrees with its file")
    sys.exit(bool(faults))
