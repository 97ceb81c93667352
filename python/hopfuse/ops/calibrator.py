"""Map scores to a scale that is comparable across queries: the distribution of a sample of scores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import check_dtype, check_number, check_whole
from ..errors import FormatError, InputError
from ..types import Hits

FORMAT, VERSION = "hopfuse calibrator", 1
MAX_KNOTS = 65_536
#: An upper bound of the size of a saved calibrator; larger files are refused.
MAX_BYTES = 16 * 2**20
#: Beyond float32, within float64.
_LARGE = 1e300


class Calibrator:
    """Map scores to [0, 1] by the empirical distribution function F of a sample of scores.

    :func:`calibrate` gives each list its own scale, so its scores cannot be compared across queries. A calibrator
    fitted to the lists of many queries gives one scale: F(s) is the share of all sample scores that are at most s, and
    one threshold works for every query.

    F is constant between consecutive scores of the sample. If sample scores were dropped between two knots, it is
    linear between them.

    Parameters
    ----------
    max_knots : int
        From 2 to 65,536. If the sample has more distinct scores, only this many of its quantiles are kept, evenly
        spaced by rank; the error of F is then at most 1 / (max_knots - 1).

    Attributes
    ----------
    knots : ndarray of float32, shape (m,)
        Scores of the sample, strictly ascending. Available after :meth:`fit`, like the following.
    below, at_most : ndarray of int64, shape (m,)
        The number of sample scores less than each knot, and the number at most equal to it.
    sample_size : int

    Raises
    ------
    InputError
        If max_knots is out of range, or a method is called before :meth:`fit`.

    References
    ----------
    van der Vaart, Asymptotic Statistics (1998), chapter 19: the empirical distribution function.

    Examples
    --------
    >>> import hopfuse as hf
    >>> sample = hf.Hits([[1, 2, 3], [1, 4, 5]], [[9.0, 7.0, 1.0], [7.0, 5.0, 3.0]])
    >>> scale = hf.Calibrator().fit(sample)
    >>> scale.transform([0.0, 5.0, 8.0, 9.0])
    array([0.       , 0.5      , 0.8333333, 1.       ], dtype=float32)
    >>> scale.transform(hf.Hits([[6, 8]], [[8.0, 2.0]])).scores.round(2)
    array([[0.83, 0.17]], dtype=float32)
    >>> scale.threshold(0.8)
    7.0
    """

    knots: NDArray[np.float32]
    below: NDArray[np.int64]
    at_most: NDArray[np.int64]
    sample_size: int

    def __init__(self, *, max_knots: int = 4096) -> None:
        self.max_knots = check_whole(max_knots, "max_knots", MAX_KNOTS, least=2)

    def fit(self, sample: Any) -> Self:
        """Fit to the distribution of a sample of scores, replacing any earlier fit.

        Parameters
        ----------
        sample : Hits, sequence of Hits, or array_like of float
            The lists of many queries (padding is ignored), or scores of any shape, finite in float32.

        Returns
        -------
        Calibrator
            The calibrator itself.

        Raises
        ------
        InputError
            No scores, or a score that is not finite; the calibrator is then unchanged.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Calibrator().fit([0.5, 0.25, 0.5, 1.0]).knots
        array([0.25, 0.5 , 1.  ], dtype=float32)
        """
        scores = _scores_of(sample)
        knots, counts = np.unique(scores, return_counts=True)
        at_most = np.cumsum(counts)
        if knots.size > self.max_knots:
            ranks = np.linspace(1, scores.size, self.max_knots)
            kept = np.unique(np.searchsorted(at_most, np.floor(ranks)))
        else:
            kept = np.arange(knots.size)
        return self._set(knots[kept], (at_most - counts)[kept], at_most[kept], int(scores.size))

    def _set(self, knots: Any, below: Any, at_most: Any, sample_size: int) -> Self:
        arrays = np.array(knots, np.float32), np.array(below, np.int64), np.array(at_most, np.int64)
        for array in arrays:
            array.setflags(write=False)
        (self.knots, self.below, self.at_most), self.sample_size = arrays, sample_size
        return self

    def transform(self, scores: Any) -> Any:
        """Return F(s) of each score s; the order of a list is unchanged.

        Parameters
        ----------
        scores : Hits, or array_like of float
            On the host; finite in float32.

        Returns
        -------
        Hits with the same ids and counts, or ndarray of float32 of the same shape
            F(s), in [0, 1].
        """
        self._check_fitted()
        if not isinstance(scores, Hits):
            return self._share(_finite(to_numpy(scores, "scores")))
        found = to_numpy(scores.scores, "scores")
        valid = np.arange(found.shape[1]) < np.asarray(to_numpy(scores.counts, "counts"))[:, None]
        shares = self._share(np.where(valid, found, np.float32(0.0)).astype(np.float32))
        return Hits.unchecked(scores.ids, np.where(valid, shares, np.float32(-np.inf)), scores.counts)

    def threshold(self, share: float) -> float:
        """Return the smallest knot s for which at least ``share`` of the sample is at most s.

        Parameters
        ----------
        share : float
            In [0, 1].

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Calibrator().fit([1.0, 2.0, 3.0, 4.0]).threshold(0.75)
        3.0
        """
        self._check_fitted()
        share = check_number(share, "share", low=0, high=1)
        return float(self.knots[np.searchsorted(self.at_most, share * self.sample_size * (1.0 - 1e-12))])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file that :meth:`load` reads; an existing file is replaced atomically."""
        import json  # imported here to keep `import hopfuse` fast
        import secrets

        self._check_fitted()
        content = {
            "sample_size": self.sample_size,
            "knots": self.knots.astype(np.float64).tolist(),
            "below": self.below.tolist(),
            "at_most": self.at_most.tolist(),
        }
        text = json.dumps({"format": FORMAT, "version": VERSION, "crc32": _checksum(content), **content})
        target = Path(path)
        partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            with open(partial, "x", encoding="utf-8") as file:  # "x" does not follow symbolic links
                file.write(text + "\n")
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrator:
        """Read a calibrator written by :meth:`save`.

        Raises
        ------
        FormatError
            The file is not a calibrator, is of another version, or is damaged.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Calibrator().fit([1.0, 2.0, 2.0]).save("dense.json")
        >>> hf.Calibrator.load("dense.json").transform([2.0])
        array([1.], dtype=float32)
        """
        import json

        size = os.path.getsize(path)
        if size > MAX_BYTES:
            raise FormatError(
                "limit",
                None,
                "{path} has {given:,} bytes; a calibrator has at most {allowed:,}",
                path=path,
                given=size,
                allowed=MAX_BYTES,
            )
        try:
            found = json.loads(Path(path).read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise FormatError("damaged", None, "{path} is not a JSON file: {error}", path=path, error=error) from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise FormatError(
                "damaged", None, "{path} is not a {format}; write one with Calibrator.save", path=path, format=FORMAT
            )
        if found.get("version") != VERSION:
            raise FormatError(
                "version",
                None,
                "{path} is of version {given!r}; this hopfuse reads version {allowed}",
                path=path,
                given=found.get("version"),
                allowed=VERSION,
            )
        content: dict[str, Any] = {name: found.get(name) for name in ("sample_size", "knots", "below", "at_most")}
        if found.get("crc32") != _checksum(content):
            raise FormatError("damaged", None, "{path}: the checksum does not match; the file is damaged", path=path)
        _verify(path, content)
        return cls()._set(**content)

    def _check_fitted(self) -> None:
        if not hasattr(self, "knots"):
            raise InputError(
                "missing", None, "the calibrator is not fitted; call fit(hits) with the lists of some queries first"
            )

    def _share(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        last = np.searchsorted(self.knots, scores, side="right") - 1  # the knot at or before each score
        at = np.maximum(last, 0)
        following = np.minimum(at + 1, self.knots.size - 1)
        low, high = self.knots[at].astype(np.float64), self.knots[following].astype(np.float64)
        fraction = np.divide(scores - low, high - low, out=np.zeros(scores.shape), where=high > low)
        start = self.at_most[at].astype(np.float64)
        # Interpolate from at_most of a knot up to below of the next, which counts scores strictly less than it.
        count = start + np.clip(fraction, 0.0, 1.0) * np.where(following > at, self.below[following] - start, 0.0)
        return np.asarray(np.where(last < 0, 0.0, count / self.sample_size), np.float32)

    def __repr__(self) -> str:
        if not hasattr(self, "knots"):
            return f"Calibrator(max_knots={self.max_knots})"
        low, high = float(self.knots[0]), float(self.knots[-1])
        return f"Calibrator(sample of {self.sample_size:,} scores in {low:g} .. {high:g}, {self.knots.size:,} knots)"


def _scores_of(sample: Any) -> NDArray[np.float32]:
    many = [sample] if isinstance(sample, Hits) else sample
    if isinstance(many, Sequence) and many and all(isinstance(hits, Hits) for hits in many):
        rows = []
        for hits in many:
            scores, counts = to_numpy(hits.scores, "scores"), to_numpy(hits.counts, "counts")
            rows.append(scores[np.arange(scores.shape[1]) < counts[:, None]])
        found = np.concatenate(rows)
    else:
        found = _finite(to_numpy(many, "sample")).ravel()
    if found.size == 0:
        raise InputError(
            "empty", "sample", "{field} has no scores; pass the lists of some queries: Calibrator().fit(hits)"
        )
    return np.asarray(found, np.float32)


def _finite(scores: NDArray[Any]) -> NDArray[np.float32]:
    check_dtype(scores, "scores", "fiu", "real numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = np.asarray(scores, np.float32)
    if not np.isfinite(narrow).all():
        raise InputError(
            "finite", "scores", "{field} hold NaN, infinity or numbers beyond float32; they must be finite in float32"
        )
    return narrow


def _checksum(content: dict[str, Any]) -> int:
    import json
    import zlib

    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _verify(path: Any, content: dict[str, Any]) -> None:
    """Raise if the fields do not describe a calibrator."""
    size, lists = content["sample_size"], [content[name] for name in ("knots", "below", "at_most")]
    whole = all(isinstance(one, list) and 1 <= len(one) <= MAX_KNOTS for one in lists)
    if not whole or len({len(one) for one in lists}) > 1 or type(size) is not int:
        raise FormatError(
            "damaged",
            None,
            "{path} must hold three lists of 1 to {allowed:,} numbers, of equal length, and sample_size",
            path=path,
            allowed=MAX_KNOTS,
        )
    wrong = [one for one in lists[0] if type(one) not in (int, float)]
    most = min(size, np.iinfo(np.int64).max)
    wrong += [one for one in (*lists[1], *lists[2]) if type(one) is not int or not 0 <= one <= most]
    if wrong:
        raise FormatError("damaged", None, "{path} holds {given!r} among its numbers", path=path, given=wrong[0])
    with np.errstate(over="ignore"):  # larger numbers become infinite
        knots = np.array([min(max(one, -_LARGE), _LARGE) for one in lists[0]], np.float64).astype(np.float32)
    below, at_most = np.array(lists[1], np.int64), np.array(lists[2], np.int64)
    ascends = np.isfinite(knots).all() and (np.diff(knots) > 0).all()
    counts = below[0] >= 0 and (below < at_most).all() and (at_most[:-1] <= below[1:]).all() and at_most[-1] == size
    if not ascends or not counts:
        raise FormatError(
            "damaged", None, "{path} is not the distribution of a sample: knots and their counts must ascend", path=path
        )
