"""Pages and public docstrings hold the rules of plain English of ``prose.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import prose
import pytest


@pytest.mark.parametrize("rule", prose.RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_what_breaks_it(rule: prose.Rule) -> None:
    assert [fault.partition(":")[0] for fault in prose.broken(rule.breaks)] == [rule.name]
    assert prose.broken(rule.holds) == []


def test_a_long_sentence_is_found_and_inline_code_counts_once() -> None:
    assert prose.broken("on and " * 20 + "on") == [f"41 words (at most 40): “{('on and ' * 9)[:60]}…”"]
    assert prose.broken("on and " * 20) == []
    (read,) = prose.sentences(prose.paragraphs("It takes `a b c`, `d` and `e`, and [a page](page.md#of-of-of)."))
    assert (read.text, prose.words(read.text)) == ("It takes CODE, CODE and CODE, and a page.", 6)


PAGE = """# A title

Words of one
sentence. A second.

```sh
the the code
```

- an item alone.
| a cell | is that of another |
"""


def test_a_page_is_read_without_its_code() -> None:
    read = list(prose.sentences(prose.paragraphs(PAGE)))
    assert read == [
        (1, "A title"),
        (3, "Words of one sentence."),
        (3, "A second."),
        (10, "an item alone."),
        (11, "a cell"),
        (11, "is that of another"),
    ]


DOCSTRING = """Add two numbers, e.g. of
two rows.

Parameters
----------
left : of a of b of c
    The first alone.

====  ============
very  of the table
====  ============

Examples
--------
>>> very = 1
very
"""


def test_a_docstring_is_read_without_names_tables_and_examples() -> None:
    read = list(prose.sentences(prose.docstring_blocks(DOCSTRING, 7)))
    assert read == [(7, "Add two numbers, e.g of two rows."), (13, "The first alone.")]


def test_only_public_docstrings_are_read() -> None:
    read = prose.sources()
    assert "python/hopfuse/ops/ppr.py" in read
    assert not any("/_" in path.replace("/__init__.py", "") for path in read)
    assert len(read) > 200


def test_pages_are_plain_english() -> None:
    pages = prose.pages()
    assert len(pages) > 50
    faults = [fault for name in pages for fault in prose.faults(name)]
    assert not faults, "\n".join(faults)


def test_no_page_keeps_the_marks_of_a_merge() -> None:
    mark = re.compile(r"^(<{7} .*|={7}|>{7} .*)$", re.MULTILINE)
    assert [name for name in prose.pages() if mark.search((prose.ROOT / name).read_text(encoding="utf-8"))] == []
    assert mark.findall("<<<<<<< HEAD\n=======\n>>>>>>> main\n=========") == ["<<<<<<< HEAD", "=======", ">>>>>>> main"]


def test_public_docstrings_are_plain_english() -> None:
    faults = [fault for name in prose.sources() for fault in prose.faults(name)]
    assert not faults, "\n".join(faults)


def test_messages_of_errors_are_plain_english() -> None:
    golden = sorted((prose.ROOT / "tests/golden/messages").glob("*.txt"))
    lines = [line.partition(" | ")[2] for path in golden for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 500
    faults = [fault for line in lines for text in line.split(". ") for fault in prose.broken(text)]
    assert not faults, "\n".join(faults)


def helps(command: Any) -> Iterator[str]:
    """Yield the help of a command, of its options and of its commands."""
    yield from ((command.help or "").partition("\b")[0], *(getattr(one, "help", None) or "" for one in command.params))
    for one in getattr(command, "commands", {}).values():
        yield from helps(one)


def test_help_of_the_command_line_is_plain_english() -> None:
    pytest.importorskip("click")
    from hopfuse.cli import app

    texts = [text for one in helps(app.app) for text in prose.sentences(prose.paragraphs(one))]
    assert len(texts) > 200
    faults = [fault for one in texts for fault in prose.broken(one.text)]
    assert not faults, "\n".join(faults)
