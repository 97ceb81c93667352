"""Some rows of arrays on a device, by copies: few, where a batch leaves queries to be asked again."""

from __future__ import annotations

from collections.abc import Iterable

from .runtime import DeviceArray, Runtime


def take_rows(runtime: Runtime, array: DeviceArray, rows: Iterable[int]) -> DeviceArray:
    """A new array of these rows, in their order; a row may come more than once."""
    chosen = list(rows)
    taken = runtime.empty((len(chosen), *array.shape[1:]), array.dtype)
    for to, row in enumerate(chosen):
        _copy_row(runtime, taken, to, array, row)
    return taken


def put_rows(runtime: Runtime, target: DeviceArray, rows: Iterable[int], source: DeviceArray) -> None:
    """Row i of ``source`` goes to row ``rows[i]`` of ``target``."""
    for at, row in enumerate(rows):
        _copy_row(runtime, target, row, source, at)


def _copy_row(runtime: Runtime, target: DeviceArray, to: int, source: DeviceArray, at: int) -> None:
    row = source[at : at + 1]
    if row.nbytes:
        runtime.copy(target[to : to + 1], row)
