"""Run the quick self-test for compute-sanitizer, with a separate allocation for every array.

In a memory pool an array is part of a larger block that was written before, which would hide out-of-bounds accesses
and reads of uninitialised memory.
"""

from __future__ import annotations

import os
import sys

import hopfuse as hf

from .card import BACKEND, require_card


def main() -> int:
    """Run the self-test; return exit status 1 if an answer differs."""
    require_card()
    os.environ["HOPFUSE_CUDA_MEMORY"] = "separate"
    return int(not hf.selftest(BACKEND, quick=True).passed)


if __name__ == "__main__":
    sys.exit(main())
