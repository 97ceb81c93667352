"""The room keeps its walls: what it imports, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hopfuse.index
import hopfuse.index.build as build_module
from hopfuse.index import Index, format, log
from hopfuse.types import corpus

ROOM = Path(hopfuse.index.__file__).parent


def test_importing_the_room_loads_nothing_large() -> None:
    script = "import sys, hopfuse.index; print([m for m in ('pyarrow', 'scipy', 'pandas') if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOM.parents[1]
    )
    assert result.stdout.strip() == "[]"


def test_public_names_and_codes() -> None:
    assert hopfuse.index.__all__ == [
        *(
            "Change",
            "EncoderInfo",
            "Follower",
            "Index",
            "IndexPart",
            "LabelColumn",
            "LiveIndex",
            "Metadata",
            "MetadataColumn",
            "Where",
            "WordInfo",
        ),
        "where",
    ]
    assert hopfuse.index.Index is Index
    assert set(format.METRICS) == set(corpus.METRICS)
    assert set(format.STORAGES) == set(corpus.STORAGES)
    assert build_module.METRICS is format.METRICS


def test_the_specification_names_every_section_and_constant() -> None:
    text = (ROOM / "FORMAT.md").read_text(encoding="utf-8")
    from hopfuse.index.batch import RULES as BATCH
    from hopfuse.index.schema import RULES

    missing = [name for name in (*RULES, *BATCH) if f"`{name}`" not in text]
    assert missing == []
    assert f"format version, {format.VERSION} |" in text
    assert f"1 … {format.MAX_SECTIONS}" in text
    assert f"{format.ENTRY.size} bytes × sections" in text
    assert f"{format.HEADER_BYTES} bytes\n" in text
    assert f"`{log.MARK:#010x}`" in text.replace("0X", "0x")
    assert f"| 0 | u32 | CRC-32 of the {log.FRAME.size} bytes" in text
    for code, dtype in enumerate(format.DTYPES):
        assert f"{code} `{dtype}`" in text
