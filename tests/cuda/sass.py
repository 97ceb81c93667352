"""What the machine code of a cubin does, from NVIDIA's disassembler, which needs neither a driver nor a GPU."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SPILLS = re.compile(r"(STL|LDL)\b")
#: Loads of global memory, those of generic addresses and copies to shared memory among them.
LOAD = re.compile(r"LD(G|GSTS)?\.E(?:\.\w+)*")
WIDE_LOAD = re.compile(r"LD(G|GSTS)?\.E(?:\.\w+)*?\.128\b")
#: What computes with what was loaded; others make addresses of it, or compare.
ARITHMETIC = re.compile(r"(FFMA2?|FMUL2?|FADD2?|DFMA|DMUL|DADD|[HI]MMA|IDP)\b")
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", re.MULTILINE)
REGISTER = re.compile(r"\bR(\d+)\b")


class Instruction(NamedTuple):
    """An instruction: its address, its name with all suffixes, its operands, and the labels before it."""

    address: int
    name: str
    operands: str
    labels: tuple[str, ...]

    @property
    def written(self) -> set[int]:
        """The registers that a load writes."""
        found = REGISTER.match(self.operands)
        if found is None or self.name.startswith("LDGSTS"):
            return set()
        width = 4 if ".128" in self.name else 2 if ".64" in self.name else 1
        return set(range(int(found[1]), int(found[1]) + width))

    @property
    def read(self) -> set[int]:
        """The registers that arithmetic reads; each stands for the first of a pair or four."""
        return {int(number) for number in REGISTER.findall(self.operands.partition(",")[2])}


Code = Sequence[Instruction]


def program(package: str, name: str) -> Path | None:
    """A program of a wheel of NVIDIA's, or None."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == name and "bin" in file.parts), None)


def run(command: Path, cubin: bytes, *options: str) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([command, *options, file.name], check=True, capture_output=True, text=True)
    return done.stdout


@functools.lru_cache(maxsize=4)
def disassemble(nvdisasm: Path, cubin: bytes) -> dict[str, Code]:
    """The code of each kernel, and of each function that is not inlined."""
    parts = re.split(r"^\.text\.(\w+):$", run(nvdisasm, cubin, "-c"), flags=re.MULTILINE)
    return {name: list(read_code(text)) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def read_code(text: str) -> Iterator[Instruction]:
    labels: list[str] = []
    for line in text.splitlines():
        label = re.match(r"(\.\w+):$", line)
        found = LINE.match(line)
        if label is not None:
            labels.append(label[1])
        elif found is not None:
            yield Instruction(int(found[1], 16), found[3], found[4], tuple(labels))
            labels = []


def spills(code: Code) -> list[str]:
    """The instructions that use local memory."""
    return [f"{one.address:#x} {one.name}" for one in code if SPILLS.match(one.name)]


def loops(code: Code) -> Iterator[Code]:
    """The code between the target of each branch backwards and the branch, with the loops in it."""
    places = {label: at for at, one in enumerate(code) for label in one.labels}
    for at, one in enumerate(code):
        target = re.search(r"\((\.\w+)\)", one.operands)
        if one.name.startswith("BRA") and target is not None and places.get(target[1], at + 1) <= at:
            yield code[places[target[1]] : at + 1]


def loads_before_use(code: Code, load: re.Pattern[str] = LOAD) -> int:
    """How many loads are under way before arithmetic waits for one, in the loop where that is most.

    Arithmetic of a loop that reads ahead for its next turn, by itself or through shared memory, waits for none.
    """
    most = 0
    for loop in loops(code):
        pending, count = set[int](), 0
        for one in loop:
            if ARITHMETIC.match(one.name) and pending & one.read:
                break
            if load.match(one.name):
                pending |= one.written
                count += 1
        if any(ARITHMETIC.match(one.name) for one in loop):
            most = max(most, count)
    return most
