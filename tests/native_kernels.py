"""The kernels of the native module, by the signatures of its functions: their arguments, and what they write."""

from __future__ import annotations

import re
from typing import NamedTuple

from hopfuse import _native

#: Outputs about a call's cost, in which instruction sets may differ (kernels/include/hopfuse/dense_topk.h).
COSTS = {"rescored"}
#: An argument, with its type up to the next one.
_ARGUMENT = re.compile(r"(\w+): (.*?)(?=, \*, \w+: |, \w+: |$)")


class Signature(NamedTuple):
    """The arguments of a function in their order, and those that it writes: always, or if they are given."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    optional_outputs: tuple[str, ...]


def signature_of(text: str) -> Signature:
    """Return the signature in nanobind's text of a function, such as ``def f(x: int, *, out: ndarray[…]) -> None``."""
    inside = text.partition("(")[2].rpartition(") -> ")[0].removeprefix("*, ")
    types = dict(_ARGUMENT.findall(inside))
    written = [name for name, kind in types.items() if kind.startswith("ndarray[") and "writable=False" not in kind]
    optional = tuple(name for name in written if types[name].endswith("| None"))
    return Signature(tuple(types), tuple(name for name in written if name not in optional), optional)


def _kernels() -> dict[str, Signature]:
    """Return the functions that take a number of threads and write arrays: each instruction set has its own."""
    texts = {name: getattr(getattr(_native, name), "__nb_signature__", None) for name in dir(_native)}
    found = {name: signature_of(text[0][0]) for name, text in texts.items() if text is not None}
    return {name: one for name, one in found.items() if "threads" in one.arguments and one.outputs}


KERNELS = _kernels()
