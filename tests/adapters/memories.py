"""A memory that starts empty and is asked right after each change, for the stores of all frameworks."""

from __future__ import annotations

import sys

import processes

#: Names that no other turn has.
NAMES = [f"{first}{last}" for first in ("kal", "mor", "tev", "bru", "zin") for last in ("dan", "ket", "lop", "vur")]
#: Commits a passage in another process.
ADD = """
import sys, hopfuse as hf
with hf.Index.open(sys.argv[1], writable=True) as live, live.change() as change:
    change.add_passages([{"id": sys.argv[2], "text": sys.argv[3]}])
"""


def turn(at):
    """The id, the text, the metadata and the question of a turn."""
    name = f"{NAMES[at % len(NAMES)]}{at // len(NAMES)}"
    text = f"The courier {name} took parcel {at} to the gate of the old harbour."
    return f"turn {at}", text, {"user": "ab"[at % 2], "number": at}, f"Where did {name} go?"


def check_reads_its_writes(add, ask, delete, *, count=200):
    """Add turns one by one, ask for each right after it, and delete every tenth.

    ``add(id, text, metadata)`` and ``delete(id)`` change the memory, ``ask(question)`` returns ids, best first.
    """
    for at in range(count):
        id, text, metadata, question = turn(at)
        add(id, text, metadata)
        assert ask(question)[0] == id
        if at % 10 == 9:
            gone, _, _, question = turn(at - 4)
            assert gone in ask(question)
            delete(gone)
            assert gone not in ask(question)


def add_elsewhere(folder, at):
    """Add a turn in another process, and return its id and question."""
    id, text, _, question = turn(at)
    processes.run([sys.executable, "-c", ADD, str(folder), id, text], check=True)
    return id, question
