"""Damage of an index's files: flips, cuts, swaps and overwritten runs of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import hopfuse as hf
import numpy as np
from golden.make import HERE
from hopfuse.errors import FormatError
from index.log_files import read_log, write_log

NAMES = ("generation-000000000001.hopfuse", "log-000000000001.hopfuse", "CURRENT")


def whole_files() -> dict[str, bytes]:
    """The files of a directory that has every section and, in its log, every array of a batch."""
    files = [(HERE / "log" / f"strings.{kind}").read_bytes() for kind in ("generation", "log")]
    return dict(zip(NAMES, [*files, b"generation-000000000001.hopfuse\n"], strict=True))


def digest(index: hf.Index) -> str:
    """What tells an index from another: the bytes of all its sections."""
    found = sha256()
    for name, array in index.arrays().items():
        found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes with a bit turned, an end cut off, two bytes or two runs of bytes swapped, or a run overwritten."""
    changed = bytearray(data)
    at, other = sorted(int(place) for place in rng.integers(0, len(data), 2))
    size = int(rng.integers(1, 65))
    match int(rng.integers(5)):
        case 0:
            changed[at] ^= 1 << int(rng.integers(8))
        case 1:
            del changed[at:]
        case 2:
            changed[at], changed[other] = changed[other], changed[at]
        case 3:
            here, there = changed[at : at + size], changed[other : other + size]
            changed[other : other + len(here)], changed[at : at + len(there)] = here, there
        case _:
            changed[at : at + size] = rng.integers(0, 256, size).astype(np.uint8).tobytes()
    return bytes(changed)


def damages(whole: dict[str, bytes], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Files by name with other bytes than they had; a log and a generation more often than the pointer."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name = NAMES[int(rng.choice(3, p=(0.45, 0.5, 0.05)))]
        while (data := damaged(whole[name], rng)) == whole[name]:
            pass  # two equal runs were swapped
        yield name, data


def snapshots(folder: Path, whole: dict[str, bytes]) -> set[str]:
    """The digest of each snapshot that was committed."""
    for name, data in whole.items():
        (folder / name).write_bytes(data)
    payloads, found = [batch.payload for batch in read_log(folder / NAMES[1])], set[str]()
    for count in range(len(payloads) + 1):
        write_log(folder, payloads[:count])
        found.add(digest(hf.Index.open(folder)))
    (folder / NAMES[1]).write_bytes(whole[NAMES[1]])
    return found


def damage_files(folder: Path, seed: int, count: int) -> int:
    """Damage a file so often: opening refuses it, or finds what was committed; return how often it was refused.

    One in four is opened with full verification. The others are verified as their arrays are read, as most indexes are.
    """
    whole = whole_files()
    known = snapshots(folder, whole)
    assert len(known) == 3
    assert digest(hf.Index.open(folder, verify="full")) in known
    refused = 0
    for at, (name, data) in enumerate(damages(whole, count, seed)):
        (folder / name).write_bytes(data)
        try:
            index = hf.Index.open(folder, verify="lazy" if at % 4 else "full")
            assert digest(index) in known, f"damage {at} of seed {seed}: {name} of {len(data)} bytes"
        except FormatError:
            refused += 1
        (folder / name).write_bytes(whole[name])
    assert count // 2 < refused < count
    return refused
