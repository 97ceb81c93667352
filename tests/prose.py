"""Rules of plain English for pages and public docstrings; ``python tests/prose.py PAGE`` lists what a page breaks.

A rule is a pattern over one sentence, with a sentence that breaks it and one that does not. Code, addresses of links
and borders of tables are taken out of a page first; inline code counts as one word.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: The most words of a sentence. Inline code and formulas count as one word each.
LONGEST = 40
#: What stands for inline code.
CODE = "CODE"


class Rule(NamedTuple):
    name: str
    pattern: str
    advice: str
    breaks: str
    holds: str
    #: Whether the rule is only for pages about using hopfuse, not for those about how it is made.
    users: bool = False


RULES = (
    Rule(
        "chain of of",
        r"\bof(?: [\w'’-]+){1,3} of(?: [\w'’-]+){1,3} of\b",
        "name things by compounds and verbs",
        "It counts the edges of the graph of entities of the index.",
        "It counts the edges between the index's entities, and the size of each.",
    ),
    Rule(
        "is that of",
        r"\b(?:is|are|was|were|be) (?:exactly |otherwise )?(?:that|those) of\b",
        "say what it is, or what it equals",
        "The order is that of the file.",
        "The order follows the file; it is shorter than that of the log.",
    ),
    Rule(
        "last word",
        r"\w,? (?:(?<!until )(?<!by )(?<!since )then|alone|too)[)\"*_]*[.;:!?]",
        "put “then”, “only” or “also” before the verb",
        "A worker reads the words alone.",
        "A worker reads only the words until then, and then stops, too late to matter.",
    ),
    Rule(
        "which for that",
        r"\b(?:a|an|the|each|every|those) (?:[\w'’-]+ ){0,2}(?!(?:of|in|by|to|for|on|at|from|with|over|under|into"
        r"|through|after|as|and|or|than|says?|shows?|decides?|decision|model|tells?) )[\w'’-]+ which"
        r" (?:is|are|was|were|has|have|can|does|do|holds|gives)\b",
        "“that” without a comma, or “, which”",
        "Read the file which holds the names.",
        "Read the file, which holds the names, and the rule by which it holds.",
    ),
    Rule(
        "doubled word",
        r"(?-i:\b(?!that |had )([a-z]+) \1\b)",
        "remove one",
        "It reads the the file.",
        "It reads that that file had had a mistake.",
    ),
    Rule(
        "filler",
        r"\b(?:very|simply|just|obviously|basically|of course|in order to|utili[sz]e[sd]?|needless to say)\b",
        "leave it out",
        "This is very fast.",
        "This is adjusted, and fast.",
    ),
    Rule(
        "so many",
        r"\b(?:at least|at most|after|than|take[sn]?|for|of|by|in|holds?|has) so (?:many|much|long|large|few)\b",
        "“that many”, or the number's name",
        "Answers of at least so many bytes are compressed.",
        "Answers of at least that many bytes are compressed.",
    ),
    Rule(
        "an own",
        r"\ban own\b",
        "“its own”, “your own”, or “a separate”",
        "Each worker has an own queue.",
        "Each worker has its own queue.",
    ),
    Rule(
        "says to be",
        r"\b(?:says?|said|states?|stated) to (?:be|have)\b",
        "“says that …”",
        "A text that the encoder says to have no vector is refused.",
        "If the encoder says that a text has no vector, it is refused.",
    ),
    Rule(
        "is no",
        r"\b(?:what|that|which|and|who) (?:is|are|was|were) no (?!longer|more|less|other|such|one|better|worse)\w+",
        "“is not a …”",
        "What is no row is skipped.",
        "What is not a row is skipped, and there is no other.",
    ),
    Rule(
        "word of the workshop",
        r"(?<!no )(?<!for )(?<!make )(?<!more )(?<!is )\brooms?\b(?! for| to)|\blanes?\b|\bbar: |^bar$"
        r"|\bbars? (?:is|are|was|were) (?:met|missed)|\b(?:meets?|met|miss|missed|misses) (?:the|its|a|each) bars?\b",
        "“package”, “query” or “target”; docs/glossary.md explains what must stay",
        "The room meets its bar in each lane.",
        "There is no room for a bar of each query.",
        users=True,
    ),
    Rule(
        "person or machine",
        r"/(?:work|root|Users)/|/home/(?!you\b|user\b|me\b)\w|\b[\w.+-]+@(?!example\.)[\w-]+\.(?:com|org|net|io)\b"
        r"|\b[A-Z][a-z]+['’]s (?:machine|laptop|computer|desk)\b",
        "leave out who did it and where",
        "The log is in /Users/anna/logs on Anna's laptop.",
        "The log is in /srv/logs on your laptop.",
    ),
)

#: Pages about how hopfuse is made, whose readers know its own words.
MAKERS = {
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/adding.md",
    "docs/checks.md",
    "docs/design.md",
    "docs/glossary.md",
    "docs/gpu.md",
    "docs/gpu-formulas.md",
    "docs/kernels.md",
    "docs/performance.md",
}


class Sentence(NamedTuple):
    line: int
    text: str


# ---- Pages ------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a line of Markdown as it is read aloud."""
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<https?:[^>]*>|https?:\S+", CODE, text)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)|\$[^$\n]+\$", CODE, text)
    return re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", text)


def paragraphs(page: str) -> Iterator[Sentence]:
    """Yield the paragraphs, items, headings and cells of a page of Markdown, each with the number of its first line."""
    page = re.sub(
        r"^(`{3,}|~{3,}).*?^\1", lambda block: "\n" * block[0].count("\n"), page, flags=re.DOTALL | re.MULTILINE
    )
    page = re.sub(r"<!--.*?-->", lambda note: "\n" * note[0].count("\n"), page, flags=re.DOTALL)
    begin, lines = 1, list[str]()
    for number, line in enumerate([*page.splitlines(), ""], 1):
        ends = not line.strip() or line.lstrip().startswith("|") or line.startswith("#")
        if lines and (ends or re.match(r"\s*(?:[-*+]|\d+\.) ", line)):
            yield Sentence(begin, plain(" ".join(lines)))
            lines = []
        if line.lstrip().startswith("|"):
            yield from (
                Sentence(number, plain(cell.strip())) for cell in re.split(r"(?<!\\)\|", line) if cell.strip(" -:")
            )
        elif line.startswith("#"):
            yield Sentence(number, plain(line.lstrip("# ")))
        elif line.strip():
            begin = begin if lines else number
            lines.append(re.sub(r"^\s*(?:[-*+]|\d+\.) |^\s*> ?", "", line).strip())


def sentences(blocks: Iterator[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences of paragraphs, with the paragraphs' lines."""
    for line, text in blocks:
        text = re.sub(r"\b(e\.g|i\.e|cf|vs|al|Fig|Eq|No|approx|resp)\. ", r"\1 ", text)
        for part in re.split(r"(?<=[.!?])[\"”')\]]*\s+(?=[\"“'(\[]*[A-Z0-9])", text):
            if part.strip():
                yield Sentence(line, part.strip())


# ---- Docstrings -------------------------------------------------------------------------------------------

#: Sections of a docstring whose lines without an indent are names and types.
NAMED = {"Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"}


def prose_of(text: str) -> Iterator[str]:
    """Yield the lines of a docstring, empty where there is no prose: titles, names, types, code, tables, diagrams."""
    rows = text.splitlines()
    figures = {at for start, end in _chunks(rows) for at in range(start, end) if _is_figure(rows[start:end])}
    titles = {at for at in range(len(rows) - 1) if rows[at + 1].strip() and set(rows[at + 1]) <= {"-"}}
    dropped = figures | titles | {at + 1 for at in titles}
    section, literal, code = "", False, False
    for at, row in enumerate(rows):
        section = row if at in titles else section
        literal = literal and (not row.strip() or row.startswith(" "))
        code = row.lstrip().startswith(">>>") or (code and bool(row.strip()))
        is_name = section in NAMED and not row.startswith(" ")
        yield "" if literal or code or is_name or at in dropped else row.strip()
        literal = literal or row.rstrip().endswith("::")


def _chunks(rows: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first row of each chunk between blank rows, and the row after its last."""
    blank = [-1, *(at for at, row in enumerate(rows) if not row.strip()), len(rows)]
    yield from ((before + 1, after) for before, after in pairwise(blank) if after > before + 1)


def _is_figure(chunk: list[str]) -> bool:
    first = chunk[0].strip()
    table = any(row.strip() and set(row) <= {"=", " "} for row in chunk)
    return table or first == "\b" or any(mark in row for row in chunk for mark in "─►")


def docstring_blocks(text: str, line: int) -> Iterator[Sentence]:
    """Yield the paragraphs of a docstring that begins at a line."""
    for block in paragraphs("\n".join(prose_of(text)).replace("``", "`")):
        yield Sentence(block.line + line - 1, block.text)


def documented(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[int, str]]:
    """Yield line and docstring of a module and of its public classes and functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text
            if isinstance(node, ast.ClassDef):
                yield from documented(node, inside=True)
    if not inside and isinstance(tree, ast.Module) and (text := ast.get_docstring(tree)) is not None:
        yield tree.body[0].lineno, text


def is_public(path: Path) -> bool:
    return not any(part.startswith("_") and part != "__init__.py" for part in path.parts)


# ---- What is read, and what it breaks ---------------------------------------------------------------------


def pages() -> list[str]:
    """Return the pages, by their paths in the checkout."""
    fixed = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "kernels/README.md"]
    fixed.append("python/hopfuse/index/FORMAT.md")
    docs = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return fixed + [page for page in docs if not page.startswith("docs/api/")]


def sources() -> list[str]:
    """Return the files of the package whose names are public."""
    package = ROOT / "python/hopfuse"
    found = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    return [f"python/hopfuse/{path.as_posix()}" for path in found if is_public(path)]


def read(name: str) -> list[Sentence]:
    """Return the sentences of a page or of the public docstrings of a source file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if not name.endswith(".py"):
        return list(sentences(paragraphs(text)))
    docs = documented(ast.parse(text))
    return [found for line, doc in docs for found in sentences(docstring_blocks(doc, line))]


def words(sentence: str) -> int:
    """Return how many words a sentence has; a list of inline code counts as one."""
    sentence = re.sub(rf"{CODE}(?:,? (?:and |or )?{CODE})+", CODE, sentence)
    return len(re.findall(r"[^\W_][\w'’.,/=×-]*", sentence))


def broken(sentence: str, *, users: bool = True) -> list[str]:
    """Return what a sentence breaks, with the place and the advice."""
    found = [
        f"{rule.name}: “{hit[0]}” ({rule.advice})"
        for rule in RULES
        if (users or not rule.users)
        and (hit := re.search(rule.pattern, sentence, re.IGNORECASE if rule.name != "person or machine" else 0))
    ]
    if words(sentence) > LONGEST:
        found.append(f"{words(sentence)} words (at most {LONGEST}): “{sentence[:60]}…”")
    return found


def faults(name: str) -> list[str]:
    """Return the faults of a page or source file, one line each."""
    users = name not in MAKERS and not name.endswith("kernels/README.md")
    return [f"{name}:{line}: {fault}" for line, text in read(name) for fault in broken(text, users=users)]


if __name__ == "__main__":
    for page in sys.argv[1:] or [*pages(), *sources()]:
        print(*faults(page), sep="\n", end="\n" if faults(page) else "")
