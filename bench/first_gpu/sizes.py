"""The size of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers of repetitions.

    Attributes
    ----------
    tests : tuple of str
        Arguments of pytest.
    is_quick : bool
        Use the quick self-test, and small inputs of the benchmarks.
    recordings : int
        Recordings to make and drop.
    shortages : int
        How often to fill the device's memory.
    rounds : int
        Searches per thread and per stream.
    repeats : int
        Repetitions of the benchmarks.
    """

    tests: tuple[str, ...]
    is_quick: bool
    recordings: int
    shortages: int
    rounds: int
    repeats: int


FULL = Sizes(("tests",), False, recordings=200, shortages=10, rounds=100, repeats=15)
QUICK = Sizes(("tests/kernels/test_dice.py",), True, recordings=3, shortages=1, rounds=2, repeats=1)
