"""What a cubin says of its kernels' resources.

A cubin is an ELF file. Its sections ``.nv.info`` (by function) and ``.nv.info.<kernel>`` are lists of attributes: a
byte of format, a byte that names the attribute, and two bytes that are the value or, in format 4, the length of what
follows. The names are those that ``cuobjdump -elf`` prints. NVIDIA does not document the numbers: test_cuda_readers.py
holds what is read here against the assembler's own report.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

EM_CUDA = 190
STT_FUNC = 2
STO_CUDA_ENTRY = 0x10
EIFMT_SVAL = 4
EIATTR_MAX_THREADS, EIATTR_FRAME_SIZE, EIATTR_REGCOUNT = 0x05, 0x11, 0x2F
#: From sm_90 on a kernel's section of shared memory begins with the kilobyte that the driver keeps for itself.
RESERVED_SECTION, RESERVED_BYTES = ".nv.shared.reserved.0", 1024


@dataclass(frozen=True)
class Resources:
    """Of one kernel.

    ``local``: bytes of stack, spilled registers among them, with those of the functions that it calls; the stack of a
    recursive function is in no cubin.
    """

    registers: int
    local: int
    static_shared: int
    launch_bound: int | None


class Section(NamedTuple):
    name: str
    size: int
    content: bytes


class Symbol(NamedTuple):
    name: str
    is_function: bool
    is_kernel: bool


def text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def read_sections(elf: bytes) -> list[Section]:
    magic, machine = elf[:5], struct.unpack_from("<H", elf, 18)[0]
    if magic != b"\x7fELF\x02" or machine != EM_CUDA:
        raise ValueError("not a cubin")
    (begin,), (size, count, names) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, begin + size * i) for i in range(count)]
    table = elf[headers[names][4] :]
    return [Section(text(table, header[0]), header[5], elf[header[4] : header[4] + header[5]]) for header in headers]


def read_symbols(sections: dict[str, Section]) -> list[Symbol]:
    names = sections[".strtab"].content
    return [
        Symbol(text(names, name), kind & 15 == STT_FUNC, bool(other & STO_CUDA_ENTRY))
        for name, kind, other, _, _, _ in struct.iter_unpack("<IBBHQQ", sections[".symtab"].content)
    ]


def read_attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        form, attribute, value = struct.unpack_from("<BBH", content, at)
        at += 4
        length = value if form == EIFMT_SVAL else 0
        yield attribute, content[at : at + length]
        at += length


def by_symbol(content: bytes, wanted: int) -> dict[int, int]:
    """An attribute that is given for each function: symbol number and value."""
    return dict(struct.unpack("<II", value) for attribute, value in read_attributes(content) if attribute == wanted)


def launch_bound(content: bytes) -> int | None:
    for attribute, value in read_attributes(content):
        if attribute == EIATTR_MAX_THREADS:
            x, y, z = struct.unpack("<III", value)
            return int(x * y * z)
    return None


def read_resources(elf: bytes) -> dict[str, Resources]:
    """By kernel."""
    listed = read_sections(elf)
    sections = {section.name: section for section in listed}
    symbols = read_symbols(sections)
    registers = by_symbol(sections[".nv.info"].content, EIATTR_REGCOUNT)
    frames = by_symbol(sections[".nv.info"].content, EIATTR_FRAME_SIZE)
    reserved = RESERVED_BYTES if RESERVED_SECTION in sections else 0
    kernels = {}
    for number, symbol in enumerate(symbols):
        if not (symbol.is_function and symbol.is_kernel):
            continue
        shared = sections.get(f".nv.shared.{symbol.name}")
        kernels[symbol.name] = Resources(
            registers[number],
            frames[number],
            shared.size - reserved if shared is not None else 0,
            launch_bound(sections[f".nv.info.{symbol.name}"].content),
        )
    return kernels


def kernel_names(image: bytes) -> frozenset[str]:
    """Return the kernels (entry points) in a cubin or PTX."""
    if image.startswith(b"\x7fELF"):
        return frozenset(read_resources(image))
    return frozenset(name.decode() for name in re.findall(rb"\.entry\s+(\w+)", image))
