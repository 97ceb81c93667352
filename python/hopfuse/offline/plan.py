"""The plan of a run: everything on which the bytes of its parts depend, and its digest."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._validation import check_whole
from ..errors import FormatError, InputError
from ..index import Index
from ..index.log.state import reopened
from ..io.queries import JsonlQueries, ParquetQueries, Query, opened, query_file
from .parts import Output

#: Version of the formats of plan and parts.
FORMAT = 1
#: Default number of queries scored at a time.
CHUNK = 256
#: Defaults: the most rows of a part, and the number of parts of a file with fewer rows than that many parts hold.
MOST_ROWS, PARTS = 4096, 64


@dataclass(frozen=True)
class Plan:
    """A plan: inputs, index, scoring and parts. The bytes of a part depend on nothing else.

    Attributes
    ----------
    queries : str
        Path of the .jsonl or .parquet file of queries.
    inputs : mapping of str to mapping
        ``path``, ``bytes`` and ``sha256`` of every input file, by the option or argument that names it.
    index : mapping
        ``directory`` and ``checksum`` of the index, and :meth:`hopfuse.Index.info` with its generation.
    scoring : mapping
        JSON from which the scorer is opened: the recipe and its options.
    output : Output
        File format and columns of the parts.
    rows, part_rows : int
        Number of queries, and of rows in each part but the last.
    offsets : sequence of int, or None
        Byte offsets of the parts' rows in a .jsonl file.
    versions : mapping of str to str
        Versions of hopfuse, and of pyarrow if it writes the parts.

    Examples
    --------
    >>> from hopfuse.offline import Output, Plan
    >>> plan = Plan("q.jsonl", {}, {}, {"recipe": "phase-graph"}, Output("jsonl"), rows=1000, part_rows=400)
    >>> plan.num_parts, plan.row_range(2)
    (3, (800, 1000))
    """

    queries: str
    inputs: Mapping[str, Mapping[str, Any]]
    index: Mapping[str, Any]
    scoring: Mapping[str, Any]
    output: Output
    rows: int = 0
    part_rows: int = MOST_ROWS
    offsets: Sequence[int] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_parts(self) -> int:
        """The number of parts."""
        return -(-self.rows // self.part_rows)

    def row_range(self, part: int) -> tuple[int, int]:
        """Return the first row of a part, and the row after the last."""
        first = part * self.part_rows
        return first, min(first + self.part_rows, self.rows)

    def offset(self, part: int) -> int:
        """Return the byte offset of a part's rows in a .jsonl file, else 0."""
        return 0 if self.offsets is None else self.offsets[part]

    @property
    def digest(self) -> str:
        """The SHA-256 of the plan as JSON."""
        return hashlib.sha256(_canonical(self._record())).hexdigest()

    def to_json(self) -> bytes:
        """Return the contents of the plan file."""
        return json.dumps({"digest": self.digest, **self._record()}, indent=1, sort_keys=True).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes, where: str) -> Plan:
        """Read the contents of a plan file; ``where`` is its name in messages.

        Raises
        ------
        FormatError
            The file is damaged or edited, or from a later version of hopfuse.
        """
        try:
            record = json.loads(text)
            digest, number = record.pop("digest"), record.pop("format")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FormatError(
                "damaged", None, "{where} is not a plan of hopfuse score, or is damaged; plan again", where=where
            ) from None
        if number != FORMAT:
            raise FormatError(
                "version",
                None,
                "{where} has the format {given}; this hopfuse reads format {allowed}: plan again",
                where=where,
                given=number,
                allowed=FORMAT,
            )
        if hashlib.sha256(_canonical({"format": number, **record})).hexdigest() != digest:
            raise FormatError(
                "damaged",
                None,
                "{where} does not match its digest: it is damaged or was edited; plan again",
                where=where,
            )
        return cls(**{**record, "output": Output(**record["output"])})

    def differs(self, other: Plan) -> list[str]:
        """Return the names of what differs between two plans, without rows, which follow from the inputs."""
        mine, theirs = self._named(), other._named()
        return sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))

    def check_versions(self) -> None:
        """Refuse a plan made with other versions, whose parts could have other bytes.

        Raises
        ------
        InputError
        """
        for package, now in versions(self.output).items():
            planned = self.versions.get(package)
            if planned != now:
                raise InputError(
                    "version",
                    None,
                    "the plan was made with {package} {allowed}, and {given} is installed: their parts may differ; "
                    "install {package} {allowed}, or plan again",
                    package=package,
                    allowed=planned,
                    given=now,
                )

    def _named(self) -> dict[str, Any]:
        inputs = {name.split()[-1]: found["sha256"] for name, found in self.inputs.items()}
        output = {"output": self.output.record(), "part rows": self.part_rows}
        return {**_plain(self.scoring), **self.versions, **inputs, "index": _plain(self.index), **output}

    def _record(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("queries", "inputs", "index", "scoring", "rows", "part_rows")}
        more = {"offsets": self.offsets, "versions": self.versions, "output": self.output.record()}
        return {"format": FORMAT, **plain, **more}


def make_plan(
    queries: Path,
    directory: Path,
    *,
    scoring: Mapping[str, Any],
    output: Output | None = None,
    part_rows: int | None = None,
    check: Callable[[Query, str], object] = lambda query, where: None,
) -> Plan:
    """Check all queries, and plan their parts.

    Parameters
    ----------
    queries : Path
        A .jsonl or .parquet file; see :func:`hopfuse.offline.check_rows`.
    directory : Path
        The index.
    scoring : mapping
        JSON from which the scorer is opened; it becomes ``plan.scoring``.
    output : Output, optional
        By default JSON lines of ids and scores.
    part_rows : int, optional
        Rows of a part; by default 256 to 4096.
    check : function
        Called with each query and its place in the file; refuses it by raising.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        A row is malformed or refused, or an id is repeated; the message names the row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse import offline
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = pathlib.Path(name)
    ...     generation = hf.Index.build(passages=[{"text": "A river."}], vectors=[[1.0, 0.0]]).save(place / "index")
    ...     size = (place / "queries.jsonl").write_text('{"id": "q", "vector": [1.0, 0.0]}')
    ...     plan = offline.make_plan(place / "queries.jsonl", place / "index", scoring={"k": 10})
    >>> plan.rows, plan.index["generation"], plan.scoring
    (1, 1, {'k': 10})
    """
    made = Output("jsonl") if output is None else output
    inputs, index = fingerprints({"queries": queries}), index_record(Index.open(directory), directory)
    plan = Plan(str(queries.resolve()), inputs, index, _plain(scoring), made, versions=versions(made))
    return with_rows(plan, queries, check_rows(queries, check), part_rows)


def with_rows(plan: Plan, queries: Path, rows: int, part_rows: int | None) -> Plan:
    """Return a plan with the parts for that many checked rows."""
    size = rows_a_part(rows) if part_rows is None else check_whole(part_rows, "part_rows")
    return replace(plan, rows=rows, part_rows=size, offsets=query_file(queries).offsets(size))


def rows_a_part(rows: int) -> int:
    """Return the default number of rows of a part: hundreds of parts for a million rows.

    It is a multiple of the queries scored at a time, since a smaller batch at the end of a part costs more per query.

    Parameters
    ----------
    rows : int
        Number of queries.

    Examples
    --------
    >>> from hopfuse.offline import rows_a_part
    >>> [(rows, rows_a_part(rows)) for rows in (10, 100_000, 1_000_000)]
    [(10, 256), (100000, 1792), (1000000, 4096)]
    """
    return min(max(-(-rows // (PARTS * CHUNK)), 1) * CHUNK, MOST_ROWS)


def versions(output: Output) -> dict[str, str]:
    """Return the versions of the packages on which a part's bytes depend."""
    found = {"hopfuse": __version__}
    if output.kind == "parquet":
        try:
            found["pyarrow"] = version("pyarrow")
        except PackageNotFoundError:
            found["pyarrow"] = "not installed"
    return found


def index_record(index: Index, directory: Path) -> dict[str, Any]:
    """Return the identity of an index."""
    record: dict[str, Any] = _plain({"directory": str(directory.resolve()), "checksum": index.checksum, **index.info()})
    return record


def open_index(plan: Plan) -> Index:
    """Open the plan's index at the plan's generation and seq, whatever has changed since.

    Raises
    ------
    InputError
        The directory has another index, or only later generations.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse import offline
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = pathlib.Path(name)
    ...     generation = hf.Index.build(passages=[{"text": "A river."}]).save(place / "index")
    ...     size = (place / "queries.jsonl").write_text('{"id": "q"}')
    ...     plan = offline.make_plan(place / "queries.jsonl", place / "index", scoring={})
    ...     offline.open_index(plan).texts[0]
    'A river.'
    """
    directory = Path(plan.index["directory"])
    try:
        index = reopened(Index, str(directory), plan.index["generation"], plan.index["seq"])
    except FormatError:
        index = Index.open(directory)
    found = index_record(index, directory)
    if found == plan.index:
        return index
    was, now = (
        f"generation {one['generation']}, seq {one['seq']}, checksum {str(one['checksum'])[:12]}"
        for one in (plan.index, found)
    )
    raise InputError(
        "changed",
        "index",
        "the plan is for another {field}: {path} was at {was} and is at {now}; restore that index, or plan again",
        path=plan.index["directory"],
        was=was,
        now=now,
    )


def _plain(value: Any) -> Any:
    """Return a value after a round trip through JSON."""
    return json.loads(json.dumps(value))


def _canonical(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


# ---- Check the rows of a file ----------------------------------------------------------------------------------------


def check_rows(path: Path, check: Callable[[Query, str], object]) -> int:
    """Read all rows; refuse malformed rows, repeated ids, and what ``check`` refuses.

    Parameters
    ----------
    path : Path
        A .jsonl or .parquet file.
    check : function
        Called with each query and its place in the file, for messages.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    InputError
        A row is refused; the message names row, column and fix.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place, "queries.jsonl")
    ...     size = path.write_text('{"id": "a", "text": "one"}\\n{"id": "b", "text": "two"}\\n')
    ...     check_rows(path, lambda query, where: None)
    2
    """
    file = query_file(path)
    hashes = array("q")  # 8 bytes an id; ids with equal hashes are compared later
    for where, query in file.rows():
        check(query, where)
        hashes.append(hash(query.id))
    ordered = np.sort(np.frombuffer(hashes, np.int64)) if hashes else np.zeros(0, np.int64)
    twice = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    if twice:
        _refuse_repeated(file, twice)
    return len(hashes)


def _refuse_repeated(file: JsonlQueries | ParquetQueries, hashes: set[int]) -> None:
    places: dict[str, str] = {}
    for where, query in file.rows():
        if hash(query.id) in hashes and places.setdefault(query.id, where) != where:
            raise InputError(
                "duplicate",
                "id",
                "{field} {given!r} is also that of {other}; give each query its own (a query without one has its row "
                "number)",
                given=query.id,
                other=places[query.id],
            ).at(where)


# ---- Input files -----------------------------------------------------------------------------------------------------


def fingerprints(files: Mapping[str, Path], known: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return path, size and SHA-256 of each file.

    Parameters
    ----------
    files : mapping of str to path
        Paths, by the option or argument that names the file.
    known : mapping, optional
        Digests and stamps from :func:`stamps`; a file with the same stamp is not read.
    """
    found = {}
    for name, path in files.items():
        stamp = _stamp(path)
        before = (known or {}).get(name)
        if before is not None and before["stamp"] == stamp:
            digest = before["sha256"]
        else:
            with opened(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        found[name] = {"path": str(path.resolve()), "bytes": stamp[1], "sha256": digest}
    return found


def stamps(inputs: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the sizes and modification times of files, with their known digests, as JSON."""
    found = {name: {"stamp": _stamp(Path(one["path"])), "sha256": one["sha256"]} for name, one in inputs.items()}
    return json.dumps(found, indent=1, sort_keys=True).encode()


def check_inputs(inputs: Mapping[str, Mapping[str, Any]], known: Mapping[str, Any]) -> None:
    """Refuse files that have changed since the plan was made.

    Raises
    ------
    InputError
        A file has changed; the message names it.
    """
    now = fingerprints({name: Path(one["path"]) for name, one in inputs.items()}, known)
    for name, one in inputs.items():
        if now[name]["sha256"] != one["sha256"]:
            raise InputError(
                "changed",
                name,
                "{field}: {path} has changed since the plan was made; restore it, or plan again",
                path=one["path"],
            )


def _stamp(path: Path) -> list[Any]:
    with opened(path):
        found = path.stat()
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]
