"""Merge the parts of a run into one file, in the order of the queries."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .._validation import check_suffix
from ..errors import InputError
from ..io.files import write_whole
from ..io.qrels import trec_name
from .folder import DRAFTS, Folder, same_disk
from .parts import JsonlParts, ParquetParts, Seal

#: Path that stands for standard output, as JSON lines.
STDOUT = Path("-")


class MergeCounts(NamedTuple):
    """Counts of a merge: rows, rows without a hit, parts, and rows with notes; the first note if the parts hold it."""

    rows: int
    empty: int
    parts: int
    noted: int = 0
    note: str | None = None


def merge(folder: Path, out: Path, *, tag: str = "hopfuse") -> MergeCounts:
    """Merge all parts of a plan into one file; the folder stays.

    Parameters
    ----------
    folder : Path
    out : Path
        ``.jsonl`` or ``.parquet``, like the parts; ``.trec``, ``.run`` or ``.txt`` for a TREC run; ``.json`` for
        ``{query: {hit: score}}``, which BEIR and ranx read; ``-`` for JSON lines on standard output. A file is written
        whole or not at all.
    tag : str
        Tag of a TREC run.

    Returns
    -------
    MergeCounts

    Raises
    ------
    InputError
        A part is missing or belongs to another plan, the parts cannot be merged into a file with this suffix, or a TREC
        file cannot hold a name.
    FormatError
        A part is damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse import offline
    >>> class LengthScorer:
    ...     def score(self, queries, first):
    ...         return [{"id": q.id, "hits": [{"id": "p", "score": float(len(q.text))}]} for q in queries]
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = pathlib.Path(name)
    ...     size = (place / "q.jsonl").write_text('{"text": "one"}\\n{"text": "three"}\\n')
    ...     generation = hf.Index.build(passages=[{"text": "A river."}]).save(place / "index")
    ...     plan = offline.make_plan(place / "q.jsonl", place / "index", scoring={}, part_rows=1)
    ...     offline.Folder(place / "run").create(plan)
    ...     made = offline.run(place / "run", lambda plan, threads: LengthScorer())
    ...     merged = offline.merge(place / "run", place / "out.jsonl")
    ...     print((place / "out.jsonl").read_text().splitlines()[1])
    {"id": "1", "hits": [{"id": "p", "score": 5.0}]}
    """
    place = Folder(folder)
    place.plan.check_versions()
    write = _writer(place, out, tag)
    with place.lock(alone=True):
        found = place.check_seals()
        if out == STDOUT:
            write(sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            drafts = folder / DRAFTS if same_disk(folder, out.parent) else None
            try:
                write_whole(out, write, drafts=drafts)
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"{out} cannot be written: {error.strerror or error}; make room or choose another place, and merge "
                    "again: the parts stay",
                ) from error
    return merged_counts(place, found)


def merged_counts(place: Folder, found: Sequence[Seal]) -> MergeCounts:
    """Return the counts of the parts of a folder, by their seals."""
    rows, empty, noted = (sum(getattr(one, name) for one in found) for name in ("rows", "empty", "noted"))
    return MergeCounts(rows, empty, len(found), noted, _first_note(place, [one.noted for one in found]))


def _first_note(place: Folder, noted: Sequence[int]) -> str | None:
    """Return the first note, with the id of its query; ``noted`` is the number of rows with notes in each part."""
    part = next((number for number, count in enumerate(noted) if count), None)
    rows = () if part is None else place.rows_of(part)
    return next((f"{row['id']}: {row['notes'][0]['message']}" for row in rows if "notes" in row), None)


def part_kind(out: Path) -> str:
    """Return the kind of parts that a file is merged from.

    Raises
    ------
    InputError
        The suffix is not one of :func:`merge`.

    Examples
    --------
    >>> part_kind(Path("run.trec")), part_kind(Path("hits.parquet"))
    ('jsonl', 'parquet')
    """
    if out == STDOUT:
        return "jsonl"
    check_suffix(out, "out", *_WRITERS)
    return "parquet" if out.suffix == ".parquet" else "jsonl"


def writes_names(out: Path) -> bool:
    """Return whether a file needs ids without white space."""
    return _WRITERS.get(out.suffix) is _trec


def _writer(place: Folder, out: Path, tag: str) -> Callable[[BinaryIO], None]:
    kind = part_kind(out)
    if out.suffix in (".jsonl", ".parquet") and kind != place.plan.output.kind:
        raise InputError(
            "conflict",
            "out",
            "{field} is {given!r}, and the parts are .{allowed}; plan again with --format {suffix}",
            given=str(out),
            allowed=place.plan.output.kind,
            suffix=out.suffix[1:],
        )
    write = _jsonl if out == STDOUT else _WRITERS[out.suffix]
    return lambda file: write(place, file, tag)


def _jsonl(place: Folder, file: BinaryIO, tag: str) -> None:
    if place.plan.output.kind == "jsonl":
        parts = JsonlParts()
        for number in range(place.plan.num_parts):
            file.writelines(parts.lines(place.part(number)))
    else:
        file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in place.rows())


def _parquet(place: Folder, file: BinaryIO, tag: str) -> None:
    """Write one row group for each part."""
    parts = ParquetParts(place.plan.output)
    with parts.writer(file, parts.schema) as whole:
        for number in range(place.plan.num_parts):
            table = parts.table(place.part(number))
            whole.write_table(table, row_group_size=max(1, len(table)))


def _trec(place: Folder, file: BinaryIO, tag: str) -> None:
    name = trec_name(tag)
    for row in place.rows():
        query = trec_name(row["id"])
        lines = (
            f"{query} Q0 {trec_name(str(hit['id']))} {rank} {hit['score']!r} {name}\n"
            for rank, hit in enumerate(row["hits"], 1)
        )
        file.write("".join(lines).encode())


def _object(place: Folder, file: BinaryIO, tag: str) -> None:
    file.write(b"{")
    for number, row in enumerate(place.rows()):
        scores = {str(hit["id"]): hit["score"] for hit in row["hits"]}
        entry = f"{json.dumps(row['id'], ensure_ascii=False)}: {json.dumps(scores, ensure_ascii=False)}"
        file.write(f"{',' if number else ''}\n{entry}".encode())
    file.write(b"\n}\n")


_WRITERS: dict[str, Callable[[Folder, BinaryIO, str], None]] = {
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".json": _object,
    **dict.fromkeys((".trec", ".run", ".txt"), _trec),
}
