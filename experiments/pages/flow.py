"""Lay out a page whose text was put together from parts: every paragraph in lines of at most 120 characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import TextWrapper

WIDTH = 120
ITEM = re.compile(r"- |\d+\. ")
#: Lines that stay as they are: headings, rows of tables, fences and comments.
FIXED = ("#", "|", "```", "<!--")


def flowed(text: str) -> str:
    """Return a page with its paragraphs and items wrapped anew.

    Examples
    --------
    >>> flowed("# A\\n\\none\\ntwo\\n- an\\n  item\\n| a | b |\\n")
    '# A\\n\\none two\\n- an item\\n| a | b |\\n'
    """
    return "\n".join(line for block in _blocks(text) for line in _wrapped(block)) + "\n"


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield fixed and empty lines alone, and the lines of each paragraph and item together."""
    block: list[str] = []
    fenced = False
    for line in text.rstrip("\n").split("\n"):
        fence = line.startswith("```")
        fixed = fenced or not line.strip() or line.startswith(FIXED)
        if block and (fixed or ITEM.match(line)):
            yield block
            block = []
        if fixed:
            yield [line]
        else:
            block.append(line)
        fenced ^= fence
    if block:
        yield block


def _wrapped(block: list[str]) -> list[str]:
    first = block[0]
    if not first.strip() or first.startswith(FIXED):
        return block
    item = ITEM.match(first)
    indent = " " * len(item[0]) if item else ""
    wrapper = TextWrapper(WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(" ".join(line.strip() for line in block))
