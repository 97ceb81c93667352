"""FORMAT.md has the sections of the source."""

from __future__ import annotations

import pytest
from golden.columns import BEGIN, END, PAGE, page, table


def test_the_table_of_the_specification_is_that_of_the_source() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert page(text) == text, "run python tests/golden/columns.py, and read the difference"


@pytest.mark.parametrize("row", range(2, 8))
def test_a_row_that_is_changed_by_hand_is_found(row: int) -> None:
    text = PAGE.read_text(encoding="utf-8")
    line = table().splitlines()[row]
    assert page(text.replace(line, line + " ")) == text != text.replace(line, line + " ")
