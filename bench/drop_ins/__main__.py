"""``python -m bench.drop_ins [--data FOLDER] [NAME ...]``: measure the libraries that are installed."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from ..data_sets import data_root
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
    given = parser.parse_args()
    logging.disable(logging.ERROR)  # HippoRAG reports every question
    print(HEAD)
    for name in given.names or [name for name in CASES if find_spec(name) is not None]:
        for row in CASES[name](given.data):
            print(row, flush=True)


if __name__ == "__main__":
    main()
