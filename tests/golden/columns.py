"""The table of sections in FORMAT.md, from the table of columns in the source.

    python tests/golden/columns.py

rewrites it. A section is changed in hopfuse/index/schema.py alone.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

schema: Any = import_module("hopfuse.index.schema")
PAGE = Path(schema.__file__).parent / "FORMAT.md"
BEGIN, END = "<!-- columns: python tests/golden/columns.py -->\n", "<!-- end of columns -->\n"


def shape(column: Any) -> str:
    """Return dtype and sizes as the page writes them."""
    sizes = [f"{size.symbol} + {size.more}" if size.more else size.symbol for size in column.sizes]
    if column.dtype == schema.STRINGS:
        return f"strings, {sizes[0]}"
    return f"{column.dtype} ({', '.join(sizes)})" if any(sizes) else str(column.dtype)


def names(column: Any) -> str:
    """Return the names of the sections of a column."""
    parts = (".offsets", ".bytes") if column.dtype == schema.STRINGS else ("",)
    return ", ".join(f"`{column.name}{part}`" for part in parts)


def table() -> str:
    """Return the lines of the table."""
    rows = [f"| {names(one)} | {shape(one)} | {one.contents} | {one.group.present} |\n" for one in schema.COLUMNS]
    return "".join(["| Name | dtype, shape | Contents | Present |\n", "|---|---|---|---|\n", *rows])


def page(text: str) -> str:
    """Return the page with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
