"""What the right passages are: relevance judgements for multi-hop questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError


class JudgedPairs(NamedTuple):
    """Judgements as flat arrays: ``query[i]`` has the relevant passage ``passage[i]``.

    ``query`` and ``passage`` are int64 of shape (P,), ``sizes`` is int64 of shape (B,): the number
    of relevant passages of each query.
    """

    query: NDArray[np.int64]
    passage: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, init=False, repr=False)
class Qrels:
    """Binary relevance judgements, an entry per query in every field. Immutable.

    Parameters
    ----------
    ids : sequence of str, B entries
        Distinct query ids; row b of the hits that are judged belongs to ``ids[b]``.
    gold : sequence of sequences of int, B entries
        Relevant passage ids. A query with none is left out of every metric.
    hops : sequence of sequences of sequences of int, B entries, optional
        Gold passages of hop 1, hop 2, ...; an empty entry where the hops are not known.
    last_hop : sequence of sequences of int, B entries, optional
        Gold passages of the last hop; an empty entry leaves the query out of last-hop metrics.
    types : sequence of str, B entries, optional
        Question type; ``""`` where not known.

    Raises
    ------
    InputError
        Fields of different lengths, repeated query ids, passage ids that are negative, not integers
        or repeated, a hop passage that is not gold; the message names the query.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels
    >>> q = Qrels(["a", "b"], gold=[[4, 7], [1]], hops=[[[4], [7]], []], last_hop=[[7], []])
    >>> len(q), q.num_hops.tolist(), q.num_without_last_hop
    (2, [2, 0], 1)
    """

    ids: tuple[str, ...]
    gold: tuple[tuple[int, ...], ...]
    hops: tuple[tuple[tuple[int, ...], ...], ...]
    last_hop: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]

    def __init__(
        self,
        ids: Sequence[str],
        gold: Sequence[Sequence[int]],
        hops: Sequence[Sequence[Sequence[int]]] | None = None,
        last_hop: Sequence[Sequence[int]] | None = None,
        types: Sequence[str] | None = None,
    ) -> None:
        count = len(ids)
        empty: tuple[tuple[()], ...] = ((),) * count
        fields: dict[str, Sequence[Any]] = {
            "gold": gold,
            "hops": empty if hops is None else hops,
            "last_hop": empty if last_hop is None else last_hop,
            "types": ("",) * count if types is None else types,
        }
        for name, values in fields.items():
            if len(values) != count:
                raise InputError(f"{name} has {len(values)} entries for {count} query ids; give one per query")
        names = tuple(str(i) for i in ids)
        _check_distinct(names)
        checked = [
            _check_query(*row) for row in zip(names, fields["gold"], fields["hops"], fields["last_hop"], strict=True)
        ]
        object.__setattr__(self, "ids", names)
        object.__setattr__(self, "gold", tuple(row[0] for row in checked))
        object.__setattr__(self, "hops", tuple(row[1] for row in checked))
        object.__setattr__(self, "last_hop", tuple(row[2] for row in checked))
        object.__setattr__(self, "types", tuple(str(t) for t in fields["types"]))

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Qrels:
        """Judgements from mappings with "id" and "gold", and optionally "hops", "last_hop" and "type".

        Raises
        ------
        InputError
            A record without "id" or "gold", and all that :class:`Qrels` refuses.

        Examples
        --------
        >>> from hopfuse.evaluate import Qrels
        >>> Qrels.from_records([{"id": "a", "gold": [2], "type": "bridge"}]).types
        ('bridge',)
        """
        rows = list(records)
        for at, row in enumerate(rows):
            if "id" not in row or "gold" not in row:
                raise InputError(f"record {at} has the keys {sorted(row)}; 'id' and 'gold' are needed")
        return cls(
            [row["id"] for row in rows],
            [row["gold"] for row in rows],
            [row.get("hops", ()) for row in rows],
            [row.get("last_hop", ()) for row in rows],
            [row.get("type", "") for row in rows],
        )

    @classmethod
    def read_jsonl(cls, path: str | PathLike[str]) -> Qrels:
        """Judgements from a file with one JSON object per line (see :meth:`from_records`).

        Other keys, such as "question" and "answer", are ignored; blank lines are skipped.

        Raises
        ------
        FormatError
            A line that is not a JSON object with the keys "id" and "gold", or contents that
            :class:`Qrels` refuses; the message names the file and the line or query.
        OSError
            The file cannot be read.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from hopfuse.evaluate import Qrels
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "queries.jsonl")
        ...     _ = path.write_text('{"id": "a", "gold": [0, 3], "hops": [[3], [0]], "last_hop": [0]}')
        ...     Qrels.read_jsonl(path).last_hop
        ((0,),)
        """
        with open(path, encoding="utf-8") as lines:
            records = [_parse_line(line, path, at) for at, line in enumerate(lines, 1) if line.strip()]
        try:
            return cls.from_records(records)
        except InputError as error:
            raise FormatError(f"{path}: {error}") from error

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Qrels(queries={len(self)}, gold={self.gold_pairs.passage.size}, no_last_hop={self.num_without_last_hop})"
        )

    @cached_property
    def num_hops(self) -> NDArray[np.int64]:
        """Number of hops of each query, int64 of shape (B,); 0 where the hops are not known."""
        return _frozen([len(h) for h in self.hops])

    @property
    def num_without_last_hop(self) -> int:
        """Queries whose last hop is not known; last-hop metrics leave them out."""
        return sum(not passages for passages in self.last_hop)

    @cached_property
    def gold_pairs(self) -> JudgedPairs:
        """Every (query, gold passage) as flat arrays."""
        return _flatten(self.gold)

    @cached_property
    def last_hop_pairs(self) -> JudgedPairs:
        """Every (query, last-hop passage) as flat arrays."""
        return _flatten(self.last_hop)


def _parse_line(line: str, path: str | PathLike[str], at: int) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise FormatError(f"{path}, line {at} is not JSON: {error}") from error
    if not isinstance(record, dict) or "id" not in record or "gold" not in record:
        raise FormatError(f"{path}, line {at} is not a JSON object with the keys 'id' and 'gold'")
    return record


def _check_distinct(names: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"query id {name!r} occurs more than once; ids are distinct")
        seen.add(name)


def _check_query(
    name: str, gold: Sequence[int], hops: Sequence[Sequence[int]], last_hop: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    right = _passages(name, "gold", gold)
    by_hop = tuple(_passages(name, f"hop {at}", hop) for at, hop in enumerate(_listed(name, "hops", hops), 1))
    last = _passages(name, "last_hop", last_hop)
    strangers = set(chain(last, *by_hop)) - set(right)
    if strangers:
        raise InputError(f"query {name!r}: hop passage {min(strangers)} is not among its gold passages {list(right)}")
    return right, by_hop, last


def _listed(name: str, field: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"query {name!r}: {field} is {values!r}; it must be a list")
    return list(values)


def _passages(name: str, field: str, values: Sequence[int]) -> tuple[int, ...]:
    listed = _listed(name, field, values)
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise InputError(f"query {name!r}: {field} has {value!r}; passage ids are integers, at least 0")
    passages = tuple(int(value) for value in listed)
    if len(set(passages)) != len(passages):
        raise InputError(f"query {name!r}: {field} {list(passages)} repeats a passage; each is listed once")
    return passages


def _flatten(rows: tuple[tuple[int, ...], ...]) -> JudgedPairs:
    sizes = _frozen([len(row) for row in rows])
    query = _frozen(np.repeat(np.arange(len(rows), dtype=np.int64), sizes))
    return JudgedPairs(query, _frozen(list(chain.from_iterable(rows))), sizes)


def _frozen(values: Any) -> NDArray[np.int64]:
    array = np.asarray(values, dtype=np.int64)
    array.flags.writeable = False
    return array
