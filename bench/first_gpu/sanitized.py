"""Run the quick self-test for compute-sanitizer, with every array an allocation of its own.

In CuPy's pool an array lies in the middle of a large block that was written before: a step beyond the array is still
inside the block, and what nobody wrote to the array looks written.
"""

from __future__ import annotations

import sys

import hopfuse as hf

from .card import BACKEND, require_card


def main() -> int:
    """Exit status 1 where an answer differs."""
    require_card().cuda.set_allocator(None)
    return int(not hf.selftest(BACKEND, quick=True).passed)


if __name__ == "__main__":
    sys.exit(main())
