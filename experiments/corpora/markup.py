"""Read the headings and the text under them from POD, HTML and dictd's dictionaries."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """A heading and the text between it and the next one; paragraphs are separated by empty lines."""

    level: int
    heading: str
    text: str


#: The level of an entry of a list, below every heading.
ENTRY = 9


def one_line(text: str) -> str:
    """Return a text with its white space joined."""
    return " ".join(text.split())


# POD ------------------------------------------------------------------------------------------------------------------

_ENTITIES = {"lt": "<", "gt": ">", "verbar": "|", "sol": "/", "amp": "&", "quot": '"'}
_INNER = re.compile(r"([A-Z])(?:<<+\s+(.*?)\s+>>+|<([^<>]*)>)", re.S)


def pod_text(text: str) -> str:
    """Return a paragraph of POD without its formatting codes."""
    previous = ""
    while previous != text:
        previous, text = text, _INNER.sub(_plain, text)
    return text.replace("\0lt", "<").replace("\0gt", ">")


def _plain(found: re.Match[str]) -> str:
    code, inner = found[1], found[2] if found[2] is not None else found[3]
    if code in "XZ":
        return ""
    if code == "E":
        return {"lt": "\0lt", "gt": "\0gt"}.get(inner, _ENTITIES.get(inner, inner))
    if code == "L" and "|" in inner:
        inner = inner.partition("|")[0]
    return inner.replace("<", "\0lt").replace(">", "\0gt")


def pod_parts(text: str, *, entries: bool = False) -> list[Part]:
    """Return the parts of a POD document.

    A list item stays in the text of its part; with ``entries``, each item of an outer list is a part, without heading.
    """
    parts: list[tuple[int, str, list[str]]] = [(0, "", [])]
    skipped, depth = False, 0
    for block in re.split(r"\n[ \t]*\n", text):
        block = block.strip("\n")
        command = block.partition("\n")[0].partition(" ")[0]
        if command in ("=begin", "=for", "=cut", "=encoding"):
            skipped = command == "=begin" or (skipped and command == "=for")
        elif command == "=end":
            skipped = False
        elif skipped or not block:
            continue
        elif found := re.fullmatch(r"=head(\d)", command):
            heading = one_line(pod_text(block[len(command) :]))
            parts.append((int(found[1]), heading, []))
        elif command == "=item":
            item = one_line(pod_text(block[len(command) :])).removeprefix("*").strip()
            if entries and depth == 1 and len(parts[-1][2]) > 1:  # several names of one entry stand in a row
                parts.append((ENTRY, "", []))
            if item and not re.fullmatch(r"\d+\.?", item):
                parts[-1][2].append(item)
        elif command in ("=over", "=back"):
            depth += 1 if command == "=over" else -1
        elif not command.startswith("="):
            parts[-1][2].append(block if block[0] in " \t" else one_line(pod_text(block)))
    return [Part(level, heading, "\n\n".join(text)) for level, heading, text in parts if heading or text]


# HTML -----------------------------------------------------------------------------------------------------------------

_BLOCKS = {
    *("address", "article", "blockquote", "body", "center", "dd", "div", "dl", "dt", "figcaption", "figure", "form"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "main", "ol", "p", "pre", "section", "table", "td", "th", "tr"),
    "ul",
}
_LEFT_OUT = {"script", "style", "nav", "head", "footer", "button", "select", "template"}
_VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class _Html(HTMLParser):
    """Collects parts; elements of the left-out tags or classes are skipped with all they contain."""

    def __init__(self, left_out: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.left_out = left_out
        self.parts: list[tuple[int, str, list[str]]] = [(0, "", [])]
        self.words: list[str] = []
        self.level = 0  # of the heading that is open
        self.skipped: list[str] = []  # open elements inside the left-out one
        self.preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        if self.skipped:
            if tag not in _VOID:
                self.skipped.append(tag)
            return
        names = {*(dict(attrs).get("class") or "").split(), dict(attrs).get("id") or "", dict(attrs).get("role") or ""}
        if tag in _LEFT_OUT or names & self.left_out:
            if tag not in _VOID:
                self.skipped.append(tag)
            return
        if tag in _BLOCKS:
            self.close_paragraph()
        if re.fullmatch(r"h[1-6]", tag):
            self.level = int(tag[1])
        self.preformatted += tag == "pre"
        if tag == "br":
            self.words.append("\n" if self.preformatted else " ")

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if self.skipped:
            if tag in self.skipped:
                while self.skipped.pop() != tag:
                    pass
            return
        if re.fullmatch(r"h[1-6]", tag) and self.level:
            heading = one_line("".join(self.words)).rstrip("¶#").strip()
            self.words = []
            self.parts.append((self.level, heading, []))
            self.level = 0
        elif tag in _BLOCKS:
            self.close_paragraph()
        self.preformatted = max(0, self.preformatted - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self.skipped:
            self.words.append(data)

    def close_paragraph(self) -> None:
        """End a paragraph."""
        if self.level:
            return
        text = "".join(self.words)
        text = (
            "\n".join(line.rstrip() for line in text.strip("\n").split("\n")) if self.preformatted else one_line(text)
        )
        self.words = []
        if text.strip():
            self.parts[-1][2].append(text)


def html_parts(text: str, left_out: frozenset[str] = frozenset()) -> list[Part]:
    """Return the parts of an HTML page without elements of the given classes, ids or roles."""
    parser = _Html(left_out)
    parser.feed(text)
    parser.close_paragraph()
    return [Part(level, heading, "\n\n".join(text)) for level, heading, text in parser.parts if heading or text]


# dictd ----------------------------------------------------------------------------------------------------------------

_DIGITS = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}


def _number(text: str) -> int:
    value = 0
    for digit in text:
        value = value * 64 + _DIGITS[digit]
    return value


def dictionary(index: Path, data: Path) -> Iterator[tuple[list[str], str]]:
    """Yield the headwords and the text of each entry of a dictd dictionary, in the order of its file."""
    places: dict[tuple[int, int], list[str]] = {}
    for line in index.read_text(encoding="utf-8", errors="replace").splitlines():
        word, start, length = line.split("\t")[:3]
        if not word.startswith("00database") and not word.startswith("00-database"):
            places.setdefault((_number(start), _number(length)), []).append(word)
    with gzip.open(data) as file:
        content = file.read()
    for (at, size), words in sorted(places.items()):
        yield words, content[at : at + size].decode("utf-8", errors="replace")
