"""The nodes of a graph from a file that names them: passages first, then entities."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..errors import InputError

KINDS = ("passage", "entity")


class Nodes(NamedTuple):
    """How many nodes are passages, and the names of the others in their order."""

    passages: int
    entities: list[str]


def read_nodes(path: Path) -> Nodes:
    """Read lines of node, kind and name, separated by tabs, without a header.

    Raises
    ------
    InputError
        A line that is not so, a node that is not its line's number from 0, a passage behind an entity.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--nodes: {path} cannot be read as UTF-8 text: {error}") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    passages = 0
    entities: list[str] = []
    for node, line in enumerate(lines):
        fields = line.removesuffix("\r").split("\t")
        if len(fields) != 3 or fields[0] != str(node) or fields[1] not in KINDS:
            raise InputError(
                f"{path}, line {node + 1} is {line[:80]!r}; it must be {node}, {' or '.join(KINDS)} and a name, "
                "separated by tabs"
            )
        if fields[1] == "entity":
            entities.append(fields[2])
        elif entities:
            raise InputError(f"{path}, line {node + 1} is a passage behind an entity; passages are nodes 0 .. P-1")
        else:
            passages += 1
    return Nodes(passages, entities)
