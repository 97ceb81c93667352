"""Run a search of one of the sizes once, for a profiler."""

from __future__ import annotations

import sys

from .parts.searches import INPUTS
from .search import Search

BATCH = 32


def main() -> None:
    """Run the search without a recording."""
    search = Search(INPUTS[sys.argv[1]])
    search.core()(*search.questions(BATCH))


if __name__ == "__main__":
    main()
