"""Rows of UTF-8 text files: JSON Lines and tab-separated values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import InputError
from .tables import Spec, Table, from_rows, make_table, refuse_unknown


def read_jsonl(path: Path, spec: Spec) -> Table:
    """A table of JSON objects, one a line."""
    return from_rows(_json_rows(path), spec, lambda i: f"{path}, line {i + 1}")


def read_tsv(path: Path, spec: Spec) -> Table:
    """A table of lines of fields, with a header or in the positional order."""
    lines = _lines(path)
    first = next(lines, None)
    header = first is not None and _is_header(first[1].split("\t"), spec, first[0])
    names = first[1].split("\t") if first is not None and header else None
    columns: dict[str, list[Any]] = {name: [] for name in spec.known}
    count = 0
    for where, line in chain([] if header or first is None else [first], lines):
        fields = line.split("\t")
        if names is None:
            names = _positions(len(fields), spec, where)
        if len(fields) != len(names):
            raise InputError(f"{where} has {len(fields)} fields; {len(names)} are expected: {', '.join(names)}")
        row = dict(zip(names, fields, strict=True))
        for name in spec.known:
            columns[name].append(row.get(name))
        count += 1
    return make_table(spec, dict(columns), count, lambda i: f"{path}, line {i + 1 + header}", textual=True)


def _is_header(fields: Sequence[str], spec: Spec, where: str) -> bool:
    """The first line is a header if it holds the name of a known column."""
    if not {field.strip().casefold() for field in fields} & set(spec.known):
        return False
    missing = [name for name in spec.required if name not in fields]
    if missing or len(set(fields)) != len(fields):
        raise InputError(
            f"{where} is a header of {fields}; it must have each of {list(spec.required)} once, "
            f"and may have {list(spec.optional)}"
        )
    if not spec.others and not set(fields) <= set(spec.known):
        refuse_unknown(fields, spec, where)
    return True


def _positions(width: int, spec: Spec, where: str) -> list[str]:
    names = list(spec.positional[:width])
    if width > len(spec.positional) or not set(spec.required) <= set(names):
        raise InputError(
            f"{where} has {width} fields and is no header; without a header the columns are "
            f"{', '.join(spec.positional)}: add a header that names {', '.join(spec.required)}"
        )
    return names


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """(where, line) of a UTF-8 file, without line ends (LF or CR LF) and byte-order mark."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            where = f"{path}, line {number}"
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(f"{where} is not UTF-8: {error}") from None
            yield where, line.removesuffix("\n").removesuffix("\r")


def _json_rows(path: Path) -> Iterator[Any]:
    for where, line in _lines(path):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            found = "is blank" if not line.strip() else f"is not JSON: {error}"
            raise InputError(f"{where} {found}; a .jsonl file has one JSON object a line") from None
