"""A corpus that continues another one: some of its vectors, and further ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.vectors import Precision
from ..errors import InputError
from .corpus import Corpus, Metric, widened

#: The most vectors in the last corpus, or this share of those before: each is in a new corpus a few times in all.
_LAST, _SHARE = 64, 8


class CorpusPart(NamedTuple):
    """A corpus some of whose vectors belong to another corpus."""

    corpus: Corpus
    rows: slice
    """The rows of the other corpus that are in the part."""
    place: NDArray[np.int64] | None
    """Their places in the part, ascending; None for all of it."""
    mask: NDArray[np.uint8] | None
    """1 at these places and 0 at others; None for all of it."""


class ContinuedCorpus(Corpus):
    """The vectors that remain of a corpus and of others behind it, without a copy. Immutable.

    It is equal to a corpus of only these vectors. On the CPU, all corpora that continue the same one share its vectors
    and its codes, and have codes of the vectors behind it.

    Parameters
    ----------
    base : Corpus
    whole : ndarray of the dtype of ``base.vectors``, shape (n + m, d)
        The n vectors of ``base``, and m vectors behind it. C-contiguous.
    rows : ndarray of int64, shape (N,), optional
        The rows of ``whole`` that remain, ascending. Default: all.
    before : ContinuedCorpus, optional
        One that continues ``base`` with fewer vectors behind it, the first of those behind it here. They are not
        checked again, and both share the codes of most of them.

    Raises
    ------
    InputError
        As :meth:`Corpus.from_stored`, for the vectors behind ``base``.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> from hopfuse.types.continued_corpus import ContinuedCorpus
    >>> whole = np.eye(3, dtype=np.float32)
    >>> some = ContinuedCorpus(hf.Corpus.from_array(whole[:2]), whole, np.array([1, 2]))
    >>> hf.dense_topk([[3.0, 1.0, 2.0]], some, 2).row(0)
    [(1, 2.0), (0, 1.0)]
    """

    def __init__(
        self,
        base: Corpus,
        whole: NDArray[Any],
        rows: NDArray[np.int64] | None = None,
        *,
        before: ContinuedCorpus | None = None,
    ) -> None:
        added = _added(base, whole, before)
        concatenated = CorpusPart(Corpus(whole, base.metric, base.storage), slice(0, len(whole)), None, None)
        if rows is not None:
            mask = np.zeros(len(whole), np.uint8)
            mask[rows] = 1
            concatenated = concatenated._replace(rows=slice(0, rows.size), place=rows, mask=mask)
        # the fields of a frozen class
        self.__dict__.update(metric=base.metric, storage=base.storage, derived={}, base=base)
        self.__dict__.update(concatenated=concatenated, added=added, segments=_segments(concatenated, base, *added))

    base: Corpus
    concatenated: CorpusPart
    """A corpus of ``whole``."""
    segments: tuple[CorpusPart, ...]
    """``base`` and the corpora of what is behind it, without those of which nothing remains."""
    added: tuple[Corpus, Corpus]
    """What is behind ``base``: most of it, which later corpora share, and the last vectors."""

    @property
    def vectors(self) -> NDArray[Any]:
        """The vectors; if some were removed, the array is made and not kept."""
        return self._of(slice(None))

    @property
    def precision(self) -> Precision:
        """Precision of the vectors."""
        return self.concatenated.corpus.precision

    def as_float32(self, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """Return rows start .. stop-1 as float32, without rounding."""
        return widened(self._of(slice(start, stop)))

    def release(self, rows: slice = slice(None)) -> None:
        """Do nothing: some of the memory is not that of a file."""

    @property
    def num_vectors(self) -> int:
        """N."""
        return int(self.concatenated.rows.stop)

    @property
    def dim(self) -> int:
        """d."""
        return self.concatenated.corpus.dim

    def _with_metric(self, metric: Metric) -> Corpus:
        try:
            base = self.base.with_metric(metric)
            return ContinuedCorpus(base, self.concatenated.corpus.vectors, self.concatenated.place)
        except InputError:  # of a vector that does not remain, or the message names its row here
            return super()._with_metric(metric)

    def checked(self) -> Corpus:
        """Return the corpus itself: all its vectors were checked."""
        return self

    def _of(self, rows: slice) -> NDArray[Any]:
        whole, place = self.concatenated.corpus.vectors, self.concatenated.place
        return whole[rows if place is None else place[rows]]


def _added(base: Corpus, whole: NDArray[Any], before: ContinuedCorpus | None) -> tuple[Corpus, Corpus]:
    """Return the vectors behind a corpus as two corpora; the last one is small, since it is new each time."""
    first, end = base.num_vectors, len(whole)
    known = first if before is None else before.concatenated.corpus.num_vectors
    Corpus.from_stored(whole[known:], metric=base.metric, storage=base.storage)  # raises for what is new
    count, derived = (0, {}) if before is None else (before.added[0].num_vectors, before.added[0].derived)
    if end - first - count > max(_LAST, count // _SHARE):
        count, derived = end - first, {}
    # in the new memory, so that the last one is released if it has grown
    shared = Corpus(whole[first : first + count], base.metric, base.storage, derived)
    return shared, Corpus(whole[first + count :], base.metric, base.storage)


def _segments(concatenated: CorpusPart, *corpora: Corpus) -> tuple[CorpusPart, ...]:
    """Return the parts of a corpus that are in each of the corpora which it consists of, without empty ones."""
    segments, begin, first = list[CorpusPart](), 0, 0
    place, mask = concatenated.place, concatenated.mask
    for corpus in corpora:
        last = first + corpus.num_vectors
        end = last if place is None else int(np.searchsorted(place, last))
        own = slice(begin, end)
        if place is None or mask is None or end - begin == last - first:
            segment = CorpusPart(corpus, own, None, None)
        else:
            segment = CorpusPart(corpus, own, place[own] - first, mask[first:last])
        segments += [segment] if end > begin else []
        begin, first = end, last
    return tuple(segments)
