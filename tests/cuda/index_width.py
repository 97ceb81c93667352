"""Products of 32 bits in addresses, read from PTX: of a number that a kernel loads, they overflow at scale.

The index of a node times the lanes of a block passes 2^31 at 2^26 nodes, which no emulator and no test can hold.
"""

from __future__ import annotations

import re
from collections import defaultdict

from audit import entries

#: What an instruction does, and its operands; the first is what it writes, but for stores and atomics without a result.
INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+ )?([a-z][\w.]*)\s+(.*);", re.MULTILINE)
REGISTER = re.compile(r"%rd?\d+")
LOAD = re.compile(r"ld\.global(\.nc)?(\.v\d)?\.[bsu]32")
PRODUCT = ("mul.lo.s32", "mul.lo.u32", "shl.b32", "bfi.b32")
PRODUCT_AND_SUM = ("mad.lo.s32", "mad.lo.u32")
WIDENING = ("cvt.s64.s32", "cvt.u64.u32", "mul.wide", "mad.wide")
#: What keeps being what its operands are: a loaded number, also one of a packed word, a product of one, an address with
#: one in it.
KEEPING = re.compile(
    r"(add|sub|mov|selp|max|min|or|and|shr|bfe)\.[bsu]32|shfl\.sync\.\w+\.b32"
    r"|(add|sub|mov|selp|shl|bfi|mul\.lo|mad\.lo|cvta\.to\.global)\.[bsu]64"
)
NOTHING, LOADED, NARROW, ADDRESS = range(4)


def narrow_addresses(ptx: bytes) -> list[str]:
    """Return, of each kernel, the accesses whose address has such a product in it."""
    return [f"{kernel}: {access}" for kernel, text in entries(ptx).items() for access in _of_kernel(text)]


def _of_kernel(text: str) -> list[str]:
    instructions = INSTRUCTION.findall(text)
    kinds: dict[str, int] = defaultdict(int)
    changed = True
    while changed:  # registers that loops carry are written in several places
        changed = False
        for operation, operands in instructions:
            to, _, of = operands.partition(",") if operands[0] != "{" else operands.partition("}")
            kind = _kind(operation, [kinds[register] for register in REGISTER.findall(of)])
            for register in REGISTER.findall(to):
                if kind > kinds[register]:
                    kinds[register], changed = kind, True
    accesses = [(operation, re.findall(r"\[(%rd\d+)", operands)) for operation, operands in instructions]
    return [f"{operation} [{at}]" for operation, found in accesses for at in found if kinds[at] == ADDRESS]


def _kind(operation: str, of: list[int]) -> int:
    if LOAD.match(operation):
        return LOADED
    most = max(of, default=NOTHING)
    if operation.startswith(WIDENING):
        return ADDRESS if most == NARROW else NOTHING
    if operation in PRODUCT:
        return NARROW if most in (LOADED, NARROW) else NOTHING
    if operation in PRODUCT_AND_SUM:
        return NARROW if max(of[:2], default=NOTHING) in (LOADED, NARROW) else most
    return most if KEEPING.fullmatch(operation) else NOTHING
