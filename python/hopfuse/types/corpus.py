"""A dense corpus, validated once when it is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._arrays.bfloat16 import bfloat16_bits, bfloat16_to_float32, round_to_bfloat16
from .._arrays.convert import to_numpy
from .._arrays.mapped import release_pages
from .._arrays.vectors import (
    Codes,
    Precision,
    Unscorable,
    empty_codes,
    encode,
    first_unscorable,
    rows_coded_together,
    unsure_norms,
)
from .._threads import thread_count
from .._validation import check_choice, check_type, wrong_array
from ..errors import InputError
from .derived import KeepsDerived

Metric = Literal["ip", "cosine"]
Storage = Literal["float32", "float16", "bfloat16", "int8"]
METRICS: tuple[Metric, ...] = ("ip", "cosine")
STORAGES: tuple[Storage, ...] = ("float32", "float16", "bfloat16", "int8")
_PART_BYTES = 1 << 24
_CODED_BYTES = 1 << 28  # for vectors in memory, whose pages are not released; larger parts need fewer thread barriers
_ONE_THREAD = 1 << 16  # numbers that a thread checks before others have started
_PRECISIONS: dict[np.dtype[Any], Precision] = {
    np.dtype("float32"): "float32",
    np.dtype("float16"): "float16",
    np.dtype("uint16"): "bfloat16",
}
_BYTES = {precision: dtype.itemsize for dtype, precision in _PRECISIONS.items()}


@dataclass(frozen=True, eq=False)
class Corpus(KeepsDerived):
    """Vectors for exact search. Immutable; build it with :meth:`from_array`.

    Attributes
    ----------
    vectors : ndarray of float32, float16 or uint16, shape (N, d)
        The original vectors, which define every score. C-contiguous; bfloat16 values are stored as their bits, in
        uint16. An array that already has the right dtype and layout is referenced, not copied (it may be
        memory-mapped): do not change it.
    metric : {"ip", "cosine"}
    storage : {"float32", "float16", "bfloat16", "int8"}
    """

    vectors: NDArray[Any]
    metric: Metric
    storage: Storage
    derived: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def _maker(cls, *given: Any) -> str:
        return "Corpus.from_array(X, metric=...)"

    @classmethod
    def from_array(cls, X: Any, *, metric: Metric = "ip", storage: Storage = "float32") -> Corpus:
        """Validate an array of vectors and wrap it.

        Parameters
        ----------
        X : array_like of float, shape (N, d), d >= 1
            Finite vectors: a NumPy array or any CPU array that supports DLPack; bfloat16 from ml_dtypes or torch.
        metric : {"ip", "cosine"}
            Inner product or cosine similarity. Vectors need not be normalised.
        storage : {"float32", "float16", "bfloat16", "int8"}
            Precision of the original vectors. Values are rounded to it once, to nearest even, and scores are defined
            on the rounded values. ``"int8"`` is for a corpus larger than memory: float32, float16 and bfloat16
            arrays, usually memory-mapped, are referenced in their own precision (others become float32), and only
            their 8-bit codes are kept in memory; see Notes.

        Raises
        ------
        InputError
            NaN or infinite entries, values outside the storage's range, a zero vector if ``metric="cosine"``; the
            message names the row. If ``storage="int8"``, an array that is not C-contiguous.

        Notes
        -----
        With every storage, the CPU searches 8-bit codes (N d bytes) and reads the originals of the rows that the
        codes cannot rule out. So answers with ``"int8"`` are the same bits as those of the originals' own precision.
        The codes are computed here, in the pass that checks the values, on the default number of threads. ``"int8"``
        in addition copies and widens nothing, and releases the pages of a mapped file while it encodes them and after
        each search. Encoding reads the whole file, and so does a search that scores every row (k of N / 8 or more);
        a filter of fewer than N / 8 ids reads only the rows that it names. A GPU holds the originals, in their own
        precision, with every storage, and 8-bit codes of those that take 64 MiB or more if it has room for them.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> hf.Corpus.from_array(np.eye(3), metric="cosine")
        Corpus(vectors=3, dim=3, metric='cosine', storage='float32')
        >>> hf.Corpus.from_array(np.eye(3, dtype=np.float16), storage="int8").precision
        'float16'
        """
        corpus = cls.unchecked(X, metric=metric, storage=storage)
        corpus.codes(thread_count(None))
        return corpus

    @classmethod
    def unchecked(cls, X: Any, *, metric: Metric = "ip", storage: Storage = "float32") -> Corpus:
        """Wrap an array like :meth:`from_array`, but without checking its values; call :meth:`checked` before a search.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Corpus.unchecked([[1.0, float("nan")]])
        Corpus(vectors=1, dim=2, metric='ip', storage='float32')
        """
        _check_options(metric, storage)
        bits = bfloat16_bits(X, "X")
        array = to_numpy(X, "X") if bits is None else bits
        if array.ndim != 2 or array.dtype.kind not in "fiu" or array.shape[1] < 1:
            raise wrong_array(array, "X", "real numbers of shape (N, d), d >= 1")
        vectors = _referenced(array, bits is not None) if storage == "int8" else _rounded(array, bits, storage)
        return cls(vectors, metric, storage)

    @classmethod
    def from_stored(cls, vectors: NDArray[Any], *, metric: Metric = "ip", storage: Storage = "float32") -> Corpus:
        """Validate vectors that already have a storage's dtype and layout, and wrap them without a copy.

        Parameters
        ----------
        vectors : ndarray of float32, float16 or uint16, shape (N, d), d >= 1
            C-contiguous; uint16 holds the bits of bfloat16 values.
        metric, storage
            As in :meth:`from_array`; a storage other than ``"int8"`` must match the vectors' precision.

        Raises
        ------
        InputError
            As :meth:`from_array`, or if the vectors' dtype or layout does not match the storage.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> hf.Corpus.from_stored(np.array([[0x3F80, 0xC000]], np.uint16), storage="bfloat16").as_float32()
        array([[ 1., -2.]], dtype=float32)
        """
        _check_options(metric, storage)
        check_type(vectors, "vectors", np.ndarray, "a NumPy array (use from_array for others)")
        precision = _PRECISIONS.get(vectors.dtype)
        is_right = precision is not None and storage in ("int8", precision)
        is_right = is_right and vectors.flags.c_contiguous
        if not is_right or vectors.ndim != 2 or vectors.shape[1] < 1:
            dtypes = "float32, float16 or uint16 (bfloat16)" if storage == "int8" else storage
            raise wrong_array(
                vectors, "vectors", f"C-contiguous {dtypes} of shape (N, d), d >= 1, for storage={storage!r}"
            )
        return cls(vectors, metric, storage).checked()

    def with_metric(self, metric: Metric) -> Corpus:
        """Return a corpus of the same vectors with another metric, made once; nothing is copied.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> hf.Corpus.from_array(np.eye(3)).with_metric("cosine")
        Corpus(vectors=3, dim=3, metric='cosine', storage='float32')
        """
        if metric == self.metric:
            return self
        key = f"with the metric {metric}"
        made: Corpus | None = self.derived.get(key)
        if made is None:  # of several threads' copies, all keep the first, since it has its own caches
            made = self.derived.setdefault(key, self._with_metric(metric))
        return made

    def _with_metric(self, metric: Metric) -> Corpus:
        return Corpus.from_stored(self.vectors, metric=metric, storage=self.storage)

    @property
    def precision(self) -> Precision:
        """Precision of the original vectors; differs from ``storage`` only if that is ``"int8"``."""
        return _PRECISIONS[self.vectors.dtype]

    def as_float32(self, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """Return rows start .. stop-1 as float32, without rounding; a view if they are float32 already."""
        return widened(self.vectors[start:stop])

    def parts(self, step: int = 1, part_bytes: int = _PART_BYTES) -> Iterator[slice]:
        """Yield slices of about ``part_bytes`` that cover the rows in order.

        All but the last have a multiple of ``step`` rows. Each is released after use; see :meth:`release`.
        """
        size = max(1, part_bytes // (_BYTES[self.precision] * self.dim * step)) * step
        for start in range(0, self.num_vectors, size):
            rows = slice(start, min(start + size, self.num_vectors))
            yield rows
            self.release(rows)

    def release(self, rows: slice = slice(None)) -> None:
        """Release the memory pages of a mapped file if ``storage="int8"``; they are read again when needed."""
        if self.storage == "int8":
            release_pages(self.vectors[rows])

    @property
    def num_vectors(self) -> int:
        """N."""
        return int(self.vectors.shape[0])

    @property
    def dim(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return self.num_vectors

    def __repr__(self) -> str:
        return f"Corpus(vectors={self.num_vectors}, dim={self.dim}, metric={self.metric!r}, storage={self.storage!r})"

    def checked(self) -> Corpus:
        """Return the corpus itself after checking that every row can be scored.

        Raises
        ------
        InputError
            As :meth:`from_array`, for values.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Corpus.unchecked([[1.0, 2.0]]).checked()
        Corpus(vectors=1, dim=2, metric='ip', storage='float32')
        """
        wrong = self.unscorable()
        if wrong is not None:
            raise refusal(wrong, f"X[{wrong.row}]")
        return self

    def unscorable(self) -> Unscorable | None:
        """Return the first row that cannot be scored; None if all can."""
        threads = thread_count(None) if self.num_vectors * self.dim > _ONE_THREAD else 1
        for rows in self.parts():
            wrong = first_unscorable(self.as_float32(rows.start, rows.stop), self.metric == "cosine", threads)
            if wrong is not None:
                return wrong._replace(row=rows.start + wrong.row)
        return None

    def codes(self, threads: int) -> Codes:
        """Return the 8-bit codes that the CPU searches; the first call computes them and checks the values.

        Raises
        ------
        InputError
            As :meth:`from_array`, for values.

        Examples
        --------
        >>> import hopfuse as hf
        >>> corpus = hf.Corpus.unchecked([[1.0, -2.0]])
        >>> corpus.codes(threads=1)["codes"][0]
        array([192,   1, 128, 128], dtype=uint8)
        """
        if "cpu" not in self.derived:
            codes, cosine = empty_codes(self.num_vectors, self.dim), self.metric == "cosine"
            part_bytes = _PART_BYTES if self.storage == "int8" else _CODED_BYTES
            for rows in self.parts(rows_coded_together(), part_bytes):
                encode(self.vectors[rows], rows.start, codes, precision=self.precision, cosine=cosine, threads=threads)
                self._check_norms(rows, codes["norm"][rows])
            self.derived.setdefault("cpu", codes)
        made: Codes = self.derived["cpu"]
        return made

    def _check_norms(self, rows: slice, norms: NDArray[np.float32]) -> None:
        """Raise for the first row that cannot be scored, judged by the norms computed with the codes."""
        cosine = self.metric == "cosine"
        unsure = unsure_norms(norms, cosine)
        if not unsure.size:
            return
        some = Corpus(self.vectors[rows][unsure], self.metric, self.storage)
        wrong = first_unscorable(some.as_float32(), cosine)
        if wrong is not None:
            raise refusal(wrong, f"X[{rows.start + int(unsure[wrong.row])}]")


def widened(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return stored vectors as float32, themselves if they are."""
    if vectors.dtype == np.float32:
        return vectors
    with np.errstate(invalid="ignore"):  # for a signalling NaN, which is refused elsewhere
        return bfloat16_to_float32(vectors) if vectors.dtype == np.uint16 else vectors.astype(np.float32)


def refusal(wrong: Unscorable, field: str) -> InputError:
    """Return the error for a vector that cannot be scored."""
    if wrong.is_zero:
        return InputError(
            "zero",
            field,
            "{field} is the zero vector (or vanishes in float32), which has no cosine; drop it, or use metric='ip'",
        )
    return InputError("finite", field, "{field} has a NaN, an infinite entry, or values too large to score in float32")


def _check_options(metric: str, storage: str) -> None:
    check_choice(metric, "metric", METRICS)
    check_choice(storage, "storage", STORAGES)


def _rounded(array: NDArray[Any], bits: NDArray[np.uint16] | None, storage: str) -> NDArray[Any]:
    if storage == "bfloat16":
        return np.ascontiguousarray(round_to_bfloat16(array) if bits is None else bits)
    numbers = array if bits is None else bfloat16_to_float32(bits)
    if numbers.dtype == np.dtype(storage):
        return np.ascontiguousarray(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(numbers, dtype=np.dtype(storage))


def _referenced(array: NDArray[Any], is_bfloat16: bool) -> NDArray[Any]:
    """Return the vectors of an int8 corpus: float32, float16 and bfloat16 by reference, others as float32."""
    if not is_bfloat16 and array.dtype not in (np.float32, np.float16):
        return _rounded(array, None, "float32")
    if not array.flags.c_contiguous:
        dtype = "bfloat16" if is_bfloat16 else array.dtype
        raise InputError(
            "shape",
            "X",
            "{field} is {given} and not C-contiguous, and storage='int8' does not copy its vectors; pass "
            "np.ascontiguousarray({field}), or use another storage, which copies",
            given=f"{dtype}{array.shape}",
        )
    return array.view(np.ndarray)
