"""Map a generation file into memory, and write one."""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, InputError
from ...io.files import create_exclusively, open_regular, sync_file
from .format import Entry, Head, Settings, dtype_of, file_bytes, head_bytes, name_of, pack_head, parse_head, place
from .sections import Section


def open_file(path: Path) -> tuple[Head, dict[str, Section]]:
    """Map a generation file and verify its head and padding; sections are verified at their first use.

    Raises
    ------
    FormatError
        The file violates FORMAT.md.
    FileNotFoundError
        There is no such file.
    """
    with open_part(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise FormatError("damaged", None, "the file is empty; it is torn").at(path)
        data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    try:
        head = parse_head(memoryview(data))
        _check_padding(data, head)
    except FormatError as error:
        raise error.at(path) from None
    return head, _sections(path, data, head)


def open_part(path: Path) -> BinaryIO:
    """Open a regular file of an index; anything else is a FormatError."""
    try:
        return open_regular(path)
    except InputError as error:
        raise error.about(kind=FormatError) from None


def write_file(
    path: Path, generation: int, settings: Settings, sections: Mapping[str, Section], *, seq: int = 0
) -> None:
    """Write sections to a new file, in file order, the head last, and sync it to the disk."""
    entries = place([Entry(name, name_of(section.dtype), section.shape) for name, section in sections.items()])
    checksums: list[int] = []
    with create_exclusively(path) as file:
        for entry in entries:
            file.seek(entry.offset)
            for block in sections[entry.name].blocks():
                checksums.append(zlib.crc32(block))
                file.write(block)
        file.truncate(file_bytes(entries))
        file.seek(0)
        file.write(pack_head(Head(generation, settings, entries, np.array(checksums, np.uint32), seq)))
        sync_file(file)


def _stored_dtype(entry: Entry) -> np.dtype[Any]:
    return dtype_of(entry.dtype).newbyteorder("<")


def _check_padding(data: mmap.mmap, head: Head) -> None:
    """Check that all bytes between and after the payloads are zero."""
    end = head_bytes(len(head.entries), head.checksums.size)
    for entry in (*head.entries, replace(head.entries[-1], offset=len(data))):
        if any(data[end : entry.offset]):
            raise FormatError(
                "damaged",
                None,
                "the padding before offset {offset} is not zero; the file is damaged",
                offset=entry.offset,
            )
        end = entry.offset + entry.length


def _sections(path: Path, data: mmap.mmap, head: Head) -> dict[str, Section]:
    sections = {}
    first = 0
    for e in head.entries:
        array: NDArray[Any] = np.ndarray(e.shape, _stored_dtype(e), buffer=data, offset=e.offset)
        checksums = head.checksums[first : first + e.num_blocks]
        sections[e.name] = Section(f"{path}, section {e.name!r}", array, checksums)
        first += e.num_blocks
    return sections
