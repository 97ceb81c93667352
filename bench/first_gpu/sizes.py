"""The size of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers of repetitions.

    Attributes
    ----------
    tests : tuple of str
        What pytest is given.
    is_quick : bool
        The self-test's quick form, and the bench's small inputs.
    recordings : int
        Recordings that are made and dropped.
    shortages : int
        Times that the device's memory is filled.
    rounds : int
        Searches of each thread, and on each stream.
    repeats : int
        The bench's interleaved repetitions.
    """

    tests: tuple[str, ...]
    is_quick: bool
    recordings: int
    shortages: int
    rounds: int
    repeats: int


FULL = Sizes(("tests",), False, recordings=200, shortages=10, rounds=100, repeats=15)
QUICK = Sizes(("tests/kernels/test_dice.py",), True, recordings=3, shortages=1, rounds=2, repeats=1)
