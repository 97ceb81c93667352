"""``python -m bench.drop_ins [--data FOLDER] [NAME ...]``: measure the libraries that are installed."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..data_sets import data_root
from ..machine import commit, machine, versions
from .rows import Row

HEAD = "| calls | the library's own | by hopfuse | ratio | largest difference |\n|---|---|---|---|---|"


def _networkx(data: Path) -> Iterator[Row]:
    from . import networkx_rows

    return networkx_rows.rows()


def _hipporag(data: Path) -> Iterator[Row]:
    from . import hipporag_rows

    return hipporag_rows.rows(data)


def _fast_graphrag(data: Path) -> Iterator[Row]:
    from . import fast_graphrag_rows

    return fast_graphrag_rows.rows()


CASES: dict[str, Callable[[Path], Iterator[Row]]] = {
    "networkx": _networkx,
    "hipporag": _hipporag,
    "fast_graphrag": _fast_graphrag,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.drop_ins", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*CASES, []], help="by default all that are installed")
    parser.add_argument("--data", type=Path, default=data_root(), help="folder of data sets")
    parser.add_argument(
        "--out", type=Path, help="also append the rows to this file, such as bench/results/drop-ins.jsonl"
    )
    parser.add_argument("--busy", action="store_true", help="note in the file that other programs ran meanwhile")
    given = parser.parse_args()
    logging.disable(logging.ERROR)  # HippoRAG reports every question
    about = {"busy": given.busy, "machine": machine(), **commit()}  # of the code that is imported now
    print(HEAD)
    for name in given.names or [name for name in CASES if find_spec(name) is not None]:
        for row in CASES[name](given.data):
            print(row, flush=True)
            if given.out is not None:
                _append(given.out, row, {**about, "versions": versions(name)})


def _append(file: Path, row: Row, about: dict[str, Any]) -> None:
    """Append a row with its ratio and what is said about the run."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({**row._asdict(), "ratio": row.own_ms / row.ours_ms, **about}) + "\n")


if __name__ == "__main__":
    main()
