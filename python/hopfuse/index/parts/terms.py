"""Terms: the matrix that BM25 searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.bm25 import BM25Weights, sum_columns, text_lengths
from ..._arrays.distinct import distinct
from ..._arrays.rows import indptr_of_counts
from ..._validation import check_type
from ...errors import InputError
from ...types import TermMatrix
from ...types.term_matrix import Entries
from ..file.columns import string_arrays, string_column
from ..file.sections import Arrays, ArraysOrSections, LazySection, MadeSection, Section, Sections, damage_of
from ..log.lineage import MergeResult
from ..log.records import LogRecords
from ..log.rows import CommonNumbers, DeltaRows, Places
from .words import check_stemmer, load_rule


def build(matrix: TermMatrix, num_passages: int, terms: Mapping[str, Any] | None = None) -> Arrays:
    """Return the sections ``lexical.*`` of a matrix over the passages.

    ``terms``: the sections of its terms, if they are made already.
    """
    check_type(matrix, "matrix", TermMatrix, "a TermMatrix: BM25.build(texts).matrix")
    if matrix.num_passages != num_passages:
        raise InputError(
            "length",
            "matrix",
            "{field} is over {given} passages, the index has {allowed}; build it from the index's own texts, in their "
            "order",
            given=matrix.num_passages,
            allowed=num_passages,
        )
    check_stemmer(matrix.stemmer)
    counts = {} if matrix.counts is None else {"lexical.count": matrix.counts}
    return build_terms(matrix, terms) | {"lexical.passage": matrix.passages, "lexical.score": matrix.scores} | counts


def build_terms(matrix: TermMatrix, terms: Mapping[str, Any] | None = None) -> Arrays:
    """Return the sections ``lexical.*`` without those of the entries; ``terms`` as of :func:`build`."""
    return {
        **string_arrays("lexical.setting", (matrix.method, matrix.stemmer or "")),
        "lexical.parameter": np.array([matrix.k1, matrix.b]),
        **string_arrays("lexical.stopword", matrix.stopwords),
        "lexical.rule": np.array([matrix.rule], np.int64),
        **(string_arrays("lexical.term", matrix.terms) if terms is None else terms),
        "lexical.indptr": matrix.indptr,
    }


def load(sections: Sections, num_passages: int) -> TermMatrix | None:
    """Return the matrix, verified, or None if there is none."""
    if "lexical.indptr" not in sections:
        return None
    options = _options(sections)
    with damage_of(sections["lexical.indptr"]):
        check_stemmer(options["stemmer"])
        return TermMatrix(
            terms=list(string_column(sections, "lexical.term")),
            indptr=sections["lexical.indptr"].whole(),
            passages=sections["lexical.passage"].whole(),
            scores=sections["lexical.score"].whole(),
            num_passages=num_passages,
            stopwords=list(string_column(sections, "lexical.stopword")),
            counts=sections["lexical.count"].whole() if "lexical.count" in sections else None,
            **options,
        )


def info(sections: Sections) -> dict[str, Any] | None:
    """Return the terms' part of ``Index.info``."""
    if "lexical.indptr" not in sections:
        return None
    return {
        **_options(sections),
        "stopwords": len(string_column(sections, "lexical.stopword")),
        "terms": len(string_column(sections, "lexical.term")),
        "entries": sections["lexical.score"].shape[0],
    }


def _options(sections: Sections) -> dict[str, Any]:
    """Return how scores are computed and how texts are read."""
    method, stemmer = string_column(sections, "lexical.setting")
    k1, b = sections["lexical.parameter"].whole().tolist()
    rule = load_rule(sections, "lexical.rule", "terms")
    return {"method": method, "k1": k1, "b": b, "stemmer": stemmer or None, "rule": rule}


# ---- Some passages ----


def subset(matrix: TermMatrix, sections: Sections, passages: NDArray[np.int64]) -> tuple[TermMatrix, Arrays]:
    """Return the matrix of some passages, with their own frequencies, and its sections."""
    found = matrix.part(passages)
    assert found.of_whole is not None
    strings = string_column(sections, "lexical.term").take("lexical.term", found.of_whole)
    return found, build(found, passages.size, strings)


# ---- Changes ----


def merge(
    base: TermMatrix, log: DeltaRows, at: Places, before: MergeResult | None = None
) -> tuple[MergedTerms, ArraysOrSections]:
    """Return the matrix after records, which makes its entries when they are read, and its sections.

    Given an earlier matrix of the same generation, only entries that were added or deleted since are read.
    """
    earlier = None if before is None else before.made.get("lexical")
    found = MergedTerms(base, log, at, earlier if isinstance(earlier, MergedTerms) else None)
    same = {name: section for name, section in log.sections.items() if name in _KEPT}
    return found, {"lexical.rule": np.array([base.rule], np.int64)} | same | found.sections()


def number_entries(known: CommonNumbers, records: LogRecords) -> Arrays:
    """Return each entry's number of its term, and the slot of its passage."""
    numbers = np.array([known.number(term)[0] for term in records.strings("lexical.term")], np.int32)
    new, rows = records.count("passage.length"), records.rows["lexical.passage"]
    first = records.before.passages + np.cumsum(new) - new
    return {
        "lexical.term": np.repeat(numbers, np.diff(records.arrays["lexical.indptr"])),
        "lexical.passage": (records.arrays["lexical.passage"] + np.repeat(first, rows)).astype(np.int32),
    }


def added_lengths(records: LogRecords) -> NDArray[np.float64]:
    """Return the number of terms of each passage that records add."""
    new = records.count("passage.length")
    if "lexical.passage" not in records.arrays:
        return np.zeros(int(new.sum()))
    first = np.repeat(np.cumsum(new) - new, records.rows["lexical.passage"])
    return text_lengths(records.arrays["lexical.passage"] + first, records.arrays["lexical.count"], int(new.sum()))


#: The sections of how scores are computed and texts are read, which no change changes.
_KEPT = {
    *(f"lexical.{name}.{part}" for name in ("setting", "stopword") for part in ("offsets", "bytes")),
    *("lexical.parameter", "lexical.rule"),
}
#: Which parts of the entries a section is made of: passages (0) and counts (1).
_READ = {"lexical.passage": (0,), "lexical.score": (0, 1), "lexical.count": (1,)}
_PART = 1 << 17  # entries
#: Added entries that are searched one by one; more of them, and an eighth as many as are sorted, are sorted.
_UNSORTED = 1 << 12
#: Deleted passages up to which each is compared with all entries; more are marked.
_FEW = 4


class _AddedEntries(NamedTuple):
    """The entries that batches add, in the order of the batches."""

    terms: NDArray[np.int32]
    slots: NDArray[np.int32]
    counts: NDArray[np.int32]

    def of(self, rows: Any) -> _AddedEntries:
        return _AddedEntries(*(part[rows] for part in self))


class _ByTerm:
    """Added entries by their terms: all but the last ones are sorted. Shared by the matrices of a generation."""

    def __init__(self) -> None:
        self._sorted = _AddedEntries(*(np.zeros(0, np.int32) for _ in range(3)))

    def entries(self, term: int, added: _AddedEntries) -> _AddedEntries:
        """Return the entries of a term, by slot; some of them may come after ``added``."""
        ordered = self._sorted
        held, count = ordered.terms.size, added.terms.size
        if count - held > max(_UNSORTED, held >> 3):
            rest = added.of(slice(held, count))
            both = _AddedEntries(*map(np.concatenate, zip(ordered, rest, strict=True)))
            self._sorted = ordered = both.of(np.argsort(both.terms, kind="stable"))
            held = count
        own = ordered.of(slice(*np.searchsorted(ordered.terms, np.array([term, term + 1], np.int32))))
        last = np.flatnonzero(added.terms[held:] == term) + held
        return _AddedEntries(*map(np.concatenate, zip(own, added.of(last), strict=True))) if last.size else own


class MergedTerms(TermMatrix):
    """The terms of the remaining passages of a generation, and of those that batches add.

    Each change of the number of passages changes all scores, and a new passage adds entries amid the others. Therefore
    neither is stored: a column is made from the generation's counts and the added ones when it is read, and so are the
    arrays of all columns. Rows are in the order of slots, so the added entries of a term follow the generation's.

    Parameters
    ----------
    base : TermMatrix
    log : DeltaRows
    at : Places
    before : MergedTerms, optional
        Of fewer batches of the same log.

    Raises
    ------
    InputError
        The generation has no counts, or a batch counts a term twice in a passage.
    """

    def __init__(self, base: TermMatrix, log: DeltaRows, at: Places, before: MergedTerms | None = None) -> None:
        self._base, self._base_counts, self._slot_rows = base, base.required_counts(), at.passage
        self._row_slots = at.passages
        self._known = CommonNumbers(base.terms) if log.terms is None else log.terms
        self._added = _AddedEntries(*(log[f"lexical.{part}"] for part in ("term", "passage", "count")))
        self._lengths_added = log["lexical_length"]
        self._by_term: _ByTerm = _ByTerm() if before is None else before._by_term
        self._order = self._known.ascending()  # also counts the numbers: another thread may read later batches
        self._gone = log["delete.passage"]
        if before is None:
            self._frequency, self._total = self._counted()
        else:
            self._frequency, self._total = self._counted_since(before)
        same = {name: getattr(base, name) for name in ("method", "k1", "b", "stopwords", "stemmer", "rule")}
        self.__dict__.update(same, num_passages=at.passages.size)  # the fields of a frozen class

    # ---- How often terms occur ----

    def _counted(self) -> tuple[NDArray[np.int64], float]:
        """Return the number of remaining passages with each term, by the term's number, and their length in all."""
        base = self._base
        frequency = np.zeros(self._order.size, np.int64)
        frequency[: len(base.terms)] = np.diff(base.indptr)
        total = float(base.lengths.sum()) + self._count_new(frequency, 0, 0)
        old = self._gone[self._gone < base.num_passages]
        return frequency, total - self._count_gone(frequency, old, 0)

    def _counted_since(self, before: MergedTerms) -> tuple[NDArray[np.int64], float]:
        """Return what :meth:`_counted` does, from that of fewer batches."""
        frequency = np.zeros(self._order.size, np.int64)
        frequency[: before._frequency.size] = before._frequency
        entries, slots = before._added.terms.size, before._slot_rows.size
        total = before._total + self._count_new(frequency, entries, slots)
        gone = self._gone[before._gone.size :]
        return frequency, total - self._count_gone(frequency, gone[gone < slots], entries)

    def _count_new(self, frequency: NDArray[np.int64], first: int, slot: int) -> float:
        """Count the entries from one on, of the passages from a slot on that remain; return the passages' length."""
        new = self._added.of(slice(first, None))
        lives = self._slot_rows[new.slots] >= 0
        if not lives.all():
            new = new.of(lives)
        if not _are_distinct(new):
            raise InputError("duplicate", None, "a batch counts a term twice in a passage")
        np.add.at(frequency, new.terms, 1)
        slot = max(slot, self._base.num_passages)
        alive = self._slot_rows[slot:] >= 0
        return float(self._lengths_added[slot - self._base.num_passages :][alive].sum())

    def _count_gone(self, frequency: NDArray[np.int64], slots: NDArray[np.int64], entries: int) -> float:
        """Subtract deleted passages, whose added entries are among the first; return their length."""
        if not slots.size:
            return 0.0
        own = distinct(slots)
        base, indptr = self._base, self._base.indptr
        at = _entries_of(base.passages, own[own < base.num_passages], base.num_passages)
        np.subtract.at(frequency, np.searchsorted(indptr, at, "right") - 1, 1)
        added = self._added.of(slice(0, entries))
        at = _entries_of(added.slots, own[own >= base.num_passages], self._slot_rows.size)
        np.subtract.at(frequency, added.terms[at], 1)
        return float(self._lengths_of(own).sum())

    def _lengths_of(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the lengths of passages by their slots."""
        count = self._base.num_passages
        if not self._lengths_added.size:
            return self._base.lengths[slots]
        found = np.empty(slots.size)
        old = slots < count
        found[old] = self._base.lengths[slots[old]]
        found[~old] = self._lengths_added[slots[~old] - count]
        return found

    # ---- Terms ----

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """The number of each term that a passage has, in the order of the terms."""
        held = self._frequency > 0
        return self._order if held.all() else self._order[held[self._order]]

    @cached_property
    def _rank(self) -> NDArray[np.int64]:
        """The place of each number's term among the terms, if a passage has it."""
        rank = np.full(self._order.size, -1)
        rank[self._numbers] = np.arange(self._numbers.size)
        return rank

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The terms that a passage has, ascending; made at the first use."""
        return tuple(self._known[number] for number in self._numbers.tolist())

    def places(self, terms: Sequence[str]) -> list[int]:
        """Return the places of those of some terms that the matrix has: see :meth:`hopfuse.types.TermMatrix.places`."""
        numbers = [number for number in map(self._known.find, terms) if 0 <= number < self._rank.size]
        return [rank for rank in self._rank[numbers].tolist() if rank >= 0] if numbers else []

    @property
    def num_terms(self) -> int:
        """V."""
        return self._numbers.size

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """Where the entries of each term begin; made at the first use."""
        return indptr_of_counts(self._frequency[self._numbers])

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """The number of terms of each passage, with repetitions."""
        return self._lengths_of(self._row_slots)

    # ---- Columns ----

    def column(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the passages that have a term, ascending, and its scores in them."""
        number = int(self._numbers[term])
        slots, counts = self._column(number)
        rows = self._slot_rows[slots]
        lives = rows >= 0
        if not lives.all():
            slots, rows, counts = slots[lives], rows[lives], counts[lives]
        weights = BM25Weights.of_mean(
            self._frequency[number : number + 1],
            self._lengths_of(slots),
            (self._total, self.num_passages),
            **self._how,
        )
        scores = weights.scores(np.array([0, rows.size]), np.arange(rows.size, dtype=np.int32), counts)
        return rows.astype(np.int32), scores

    @property
    def _how(self) -> dict[str, Any]:
        return {"method": self.method, "k1": self.k1, "b": self.b}

    def _column(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the slots of the passages that have a term, deleted ones too, and its counts in them."""
        added = self._by_term.entries(number, self._added)
        slots, counts = added.slots, added.counts
        if slots.size and slots[-1] >= self._slot_rows.size:  # of later batches
            kept = np.searchsorted(slots, self._slot_rows.size)
            slots, counts = slots[:kept], counts[:kept]
        if number < len(self._base.terms):
            own = slice(*self._base.indptr[number : number + 2])
            slots = np.concatenate([self._base.passages[own], slots])
            counts = np.concatenate([self._base_counts[own], counts])
        return slots.astype(np.int64), counts

    def sums(self, terms: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return passages and sums of scores: see :meth:`hopfuse.types.TermMatrix.sums`; no other columns are made."""
        columns = [self.column(term) for term in terms]
        passages = np.concatenate([np.zeros(0, np.int32), *(found for found, _ in columns)])
        scores = np.concatenate([np.zeros(0, np.float32), *(values for _, values in columns)])
        indptr = indptr_of_counts([found.size for found, _ in columns])
        return sum_columns(indptr, passages, scores, np.arange(len(columns)), self.num_passages)

    @property
    def passages(self) -> NDArray[np.int32]:
        """Make and return the passage of each entry; it is not kept."""
        return self.sections()["lexical.passage"].whole()

    @property
    def counts(self) -> NDArray[np.int32]:
        """Make and return the count of each entry's term in its passage; it is not kept."""
        return self.sections()["lexical.count"].whole()

    @property
    def scores(self) -> NDArray[np.float32]:
        """Compute and return the score of each entry; it is not kept."""
        return self.sections()["lexical.score"].whole()

    def entries_of(self, place: NDArray[np.int32]) -> Entries:
        """Return the entries of some passages: see :meth:`hopfuse.types.TermMatrix.entries_of`; no others are made."""
        own = place[: self._base.num_passages]
        if self._row is not None:
            own = np.full(self._row.size, -1, np.int32)
            own[self._row >= 0] = place[self._row[self._row >= 0]]
        of, passages, counts = self._base.entries_of(own)
        here, columns = self._rank.astype(np.int32), self._columns
        row, more = columns.rows, columns.counts
        added = place[row]
        kept = np.flatnonzero(added >= 0)
        new = np.repeat(np.arange(self.num_terms, dtype=np.int32), np.diff(columns.indptr))[kept]
        order = np.argsort(np.concatenate([here[of], new]), kind="stable")
        parts = (here[of], new), (passages, added[kept]), (counts, more[kept])
        terms, places, times = (np.concatenate(part)[order] for part in parts)
        return terms, places, times

    # ---- Sections ----

    def sections(self) -> dict[str, Section]:
        """Return the sections of the terms and entries, which are made when they are read."""
        strings = {"lexical.term.offsets": np.int64, "lexical.term.bytes": np.uint8}
        size = int(self._frequency.sum())
        return {
            **{name: LazySection(name, dtype, partial(self._strings_in, name)) for name, dtype in strings.items()},
            "lexical.indptr": LazySection("lexical.indptr", np.int64, lambda: self.indptr),
            **{
                name: MadeSection(name, (size,), dtype, partial(self._parts, name))
                for name, dtype in zip(_READ, (np.int32, np.float32, np.int32), strict=True)
            },
        }

    def _strings_in(self, name: str) -> NDArray[Any]:
        """Return the offsets or the bytes of the terms."""
        return string_arrays("lexical.term", self.terms)[name]

    @cached_property
    def _row(self) -> NDArray[np.int32] | None:
        """The row of each passage of the generation, None if all remain: then slots are rows."""
        row = self._slot_rows[: self._base.num_passages].astype(np.int32)
        return None if (row >= 0).all() else row

    @cached_property
    def _columns(self) -> _AddedColumns:
        """The added entries in the order of the terms."""
        row = self._slot_rows[self._added.slots]
        lives = row >= 0
        added, row = self._added.of(lives), row[lives]
        order = np.argsort(self._rank[added.terms] * max(self.num_passages, 1) + row)
        counts = np.bincount(self._rank[added.terms], minlength=self.num_terms)
        # before each term, the terms of the generation that precede it; those without passages belong to the next one
        own = np.where(self._numbers < len(self._base.terms), self._numbers + 1, 0)
        begin = np.maximum.accumulate(np.concatenate([[0], own]))
        return _AddedColumns(row[order].astype(np.int32), added.counts[order], indptr_of_counts(counts), begin)

    @cached_property
    def _weights(self) -> BM25Weights:
        return BM25Weights.of(np.diff(self.indptr), self.lengths, **self._how)

    def _parts(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield a section in parts of whole terms."""
        for first, last in _parts_of(self.indptr):
            found = self._entries(first, last, _READ[name])
            if name == "lexical.score":
                passages, counts = found
                yield self._weights.scores(self.indptr[first : last + 1], passages, counts, first)
            else:
                yield found[0]

    def _entries(self, first: int, last: int, read: tuple[int, ...] = (0, 1)) -> tuple[NDArray[np.int32], ...]:
        """Return the passages that have each of some consecutive terms (0), and its counts in them (1)."""
        columns = self._columns
        begin, end = self._base.indptr[columns.begin[[first, last]]]
        own, new = self._of_base(begin, end, read), slice(*columns.indptr[[first, last]])
        more = (columns.rows, columns.counts)
        parts = [(a, more[which][new]) for a, which in zip(own, read, strict=True)]
        added, size = np.diff(columns.indptr[first : last + 1]), np.diff(self.indptr[first : last + 1])
        is_new = np.zeros(int(size.sum()), np.bool_)
        is_new[_last_places(size, added)] = True
        return tuple(_joined(is_new, *part) for part in parts)

    def _of_base(self, first: int, last: int, read: tuple[int, ...]) -> list[NDArray[np.int32]]:
        """Return the rows of remaining passages (0), and the counts (1), of some of the generation's entries."""
        own = [self._base.passages[first:last], self._base_counts[first:last]]
        if self._row is None:
            return [own[which] for which in read]
        own[0] = self._row[own[0]]
        lives = own[0] >= 0
        return [own[which][lives] for which in read]


class _AddedColumns(NamedTuple):
    """The added entries of remaining passages, in the order of the terms."""

    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    indptr: NDArray[np.int64]
    begin: NDArray[np.int64]
    """For each term and after the last, the number of the generation's terms whose entries come before its own."""


def _are_distinct(entries: _AddedEntries) -> bool:
    """Return whether no passage has an entry of a term twice."""
    if entries.terms.size < 2:
        return True
    key = np.sort(entries.slots.astype(np.int64) << 32 | entries.terms)
    return bool((key[1:] != key[:-1]).all())


def _entries_of(passages: NDArray[np.int32], wanted: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the entries of some passages, which are below ``count``."""
    if wanted.size <= _FEW:
        return np.concatenate([np.zeros(0, np.int64), *(np.flatnonzero(passages == one) for one in wanted.tolist())])
    marks = np.zeros(count, np.bool_)
    marks[wanted] = True
    return np.flatnonzero(marks[passages])


def _parts_of(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield parts (first, last) of consecutive terms, whose entries and intermediate arrays fit a core's cache."""
    bounds = np.searchsorted(indptr, np.arange(0, indptr[-1], _PART))
    return pairwise(np.unique([*bounds.tolist(), len(indptr) - 1]).tolist())


def _last_places(size: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the last entries of consecutive rows of these sizes; ``count`` is their number in each."""
    ends = np.repeat(np.cumsum(size) - np.cumsum(count), count)
    return ends + np.arange(ends.size)


def _joined(is_new: NDArray[np.bool_], own: NDArray[np.int32], new: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return entries of the generation with new ones at some places."""
    joined = np.empty(is_new.size, np.int32)
    joined[~is_new] = own
    joined[is_new] = new
    return joined
