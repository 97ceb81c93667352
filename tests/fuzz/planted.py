"""Targets with planted faults, which the fuzzer must find: behind bytes, behind a checksum, and of memory."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import numpy as np
from fuzz.targets import Plain, Target
from hopfuse.errors import FormatError


def refuse() -> None:
    """Refuse the input."""
    raise FormatError("damaged", None, "it is damaged")


def branches(data: bytes, folder: Path) -> None:
    """Fail behind four bytes that are compared one by one, which chance alone does not find."""
    if data[:1] != b"h":
        refuse()
    if data[1:2] != b"o":
        refuse()
    if data[2:3] != b"p":
        refuse()
    if data[3:4] == b"!":
        raise KeyError("planted")


def behind_checksum(data: bytes, folder: Path) -> None:
    """Fail at a byte behind a checksum."""
    if len(data) < 5 or data[:4] != zlib.crc32(data[4:]).to_bytes(4, "little"):
        refuse()
    if data[4] == 0xFF:
        raise KeyError("planted")


def sealed(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Change what is behind the checksum, and make it fit."""
    body = plain(data[4:], most - 4)
    return zlib.crc32(body).to_bytes(4, "little") + body


def memory(data: bytes, folder: Path) -> None:
    """Ask for two gibibytes, which the machine has and the fuzzer does not give."""
    if data[:1] != b"m":
        refuse()
    np.zeros(2**31, np.uint8)


TARGETS = (
    Target("planted-branches", branches),
    Target("planted-checksum", behind_checksum, mutate=sealed),
    Target("planted-memory", memory),
)
