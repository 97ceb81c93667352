"""The room keeps its walls: what it imports, and what importing it costs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import hopfuse as hf
import hopfuse.index
import numpy as np
import pytest
from golden.test_golden import SPECIFICATION, codes, number
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index
from index.index_files import forged, full_index
from refusals import refused

ROOM = Path(hopfuse.index.__file__).parent


def test_public_names() -> None:
    assert hopfuse.index.__all__ == [
        *(
            "Change",
            "Deletions",
            "EncoderInfo",
            "Follower",
            "Index",
            "IndexPart",
            "LabelColumn",
            "LeftOut",
            "LeftOutRow",
            "LiveIndex",
            "Metadata",
            "MetadataColumn",
            "RowMaps",
            "Where",
            "WordInfo",
        ),
        "where",
    ]
    assert hopfuse.index.Index is Index


@pytest.mark.parametrize("option", ["metric", "storage"])
def test_an_index_and_a_corpus_have_the_metrics_and_storages_of_the_specification(option: str) -> None:
    allowed = ", ".join(codes(option, "Header"))
    with refused(InputError, "choice", option, allowed=allowed):
        Index.build(passages=[], **{option: "another"})
    with refused(InputError, "choice", option, allowed=allowed):
        hf.Corpus.from_array(np.eye(2), **{option: "another"})


def test_the_specification_names_every_section_in_the_code() -> None:
    """The texts in the room's code that look like names of sections, and those of the file of a full index."""
    specified = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", SPECIFICATION))
    beginnings = {".".join(name.split(".")[:end]) for name in specified for end in range(1, name.count(".") + 1)}
    found = set()
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", str(node.value)):
                found.add(str(node.value))
    named = {name for name in found if name.partition(".")[0] in beginnings}
    assert len(named & specified) > 60
    assert named <= specified | beginnings
    assert set(full_index().sections) <= specified


def test_the_number_of_sections_is_limited_as_the_specification_says(tmp_path: Path) -> None:
    most = number(r"sections, 1 … (\d+)")
    for count in (0, most, most + 1):
        full_index().save(tmp_path)
        forged(tmp_path, lambda forge, count=count: forge.header.__setitem__(5, count))  # type: ignore[misc]
        if count == most:
            with refused(FormatError, "damaged"):
                Index.open(tmp_path)
        else:
            with refused(FormatError, "limit", given=count, allowed=most):
                Index.open(tmp_path)
