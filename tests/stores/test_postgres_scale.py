"""A large table of vectors becomes an index in little memory: a batch of it at a time is in the process."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hopfuse import Index

#: Rows of 384 components; HOPFUSE_ROWS gives another number.
ROWS = int(os.environ.get("HOPFUSE_ROWS", "100000"))
DIM, PART = 384, 10_000
TEXT = b"a passage of a few hundred characters, as chunks of documents are: " * 5
#: MiB beside the index's own files.
MEMORY = 512


@pytest.mark.full
def test_a_large_table_is_read_in_little_memory(database, tmp_path):
    url, connection = database
    connection.execute(f"CREATE TABLE large (id bigint, text text, v vector({DIM}))")
    fields = [("n", ">i2"), ("a", ">i4"), ("id", ">i8"), ("b", ">i4"), ("text", f"S{len(TEXT)}")]
    row = np.dtype([*fields, ("c", ">i4"), ("dim", ">u2"), ("zero", ">u2"), ("v", ">f4", (DIM,))])
    rng = np.random.default_rng(0)
    first = np.zeros(0)
    with connection.cursor() as cursor, cursor.copy("COPY large FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for start in range(0, ROWS, PART):
            rows = np.zeros(min(PART, ROWS - start), row)
            rows["n"], rows["a"], rows["b"], rows["c"] = 3, 8, len(TEXT), 4 + 4 * DIM
            rows["id"], rows["text"], rows["dim"] = np.arange(start, start + rows.size), TEXT, DIM
            rows["v"] = rng.standard_normal((rows.size, DIM), dtype=np.float32)
            copy.write(rows.tobytes())
            first = first if start else rows["v"].astype(np.float32)
        copy.write(b"\xff\xff")
    script = str(Path(__file__).with_name("build_large.py"))
    done = subprocess.run([sys.executable, script, url, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    took = json.loads(done.stdout)
    print(f"{ROWS} rows: {took['build']:.1f} s of CPU time to build, {took['save']:.1f} s to save;", end=" ")
    print(f"{took['most'] - took['before']:.0f} MiB of memory")
    assert took["most"] - took["before"] < MEMORY
    index = Index.open(tmp_path / "index")
    assert (index.num_passages, index.dim) == (ROWS, DIM)
    assert np.array_equal(index.vectors[: len(first)], first)
