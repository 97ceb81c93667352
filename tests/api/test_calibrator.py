"""Calibrator: the distribution function of a sample, against SciPy's, and its file, against damage."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused

stats = pytest.importorskip("scipy.stats")

SCORES = hnp.arrays(
    np.float32,
    st.integers(1, 60),
    elements=st.one_of(st.sampled_from([-1.0, 0.0, 0.5]), st.floats(-1e6, 1e6, width=32)),
)


@given(SCORES, SCORES)
def test_it_is_the_distribution_function_of_the_sample(
    sample: np.ndarray[Any, Any], scores: np.ndarray[Any, Any]
) -> None:
    found = hf.Calibrator().fit(sample).transform(scores)
    expected = stats.ecdf(sample.astype(np.float64)).cdf.evaluate(scores.astype(np.float64))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@given(SCORES, st.integers(2, 9))
def test_few_knots_are_off_by_no_more_than_stated(sample: np.ndarray[Any, Any], knots: int) -> None:
    scale = hf.Calibrator(max_knots=knots).fit(sample)
    at = np.sort(np.concatenate([sample, np.linspace(sample.min(), sample.max(), 50, dtype=np.float32)]))
    found = scale.transform(at)
    assert scale.knots.size <= knots
    assert (np.diff(found) >= 0).all()
    exact = stats.ecdf(sample.astype(np.float64)).cdf.evaluate(at.astype(np.float64))
    step = max(1.0 / (knots - 1), 0.0) if np.unique(sample).size > knots else 0.0
    assert np.abs(found - exact).max() <= step + 1e-6 + (1.0 / sample.size if step else 0.0)


def test_hits_keep_their_ids_and_padding() -> None:
    sample = [hf.Hits([[1, 2], [3, -1]], [[4.0, 2.0], [3.0, 0.0]]), hf.Hits([[5]], [[1.0]])]
    scale = hf.Calibrator().fit(sample)
    assert scale.sample_size == 4
    lists = hf.Hits([[7, 8, 9], [4, -1, -1]], [[5.0, 3.5, 0.0], [2.0, 0, 0]])
    made = scale.transform(lists)
    assert made.ids.tolist() == lists.ids.tolist()
    assert made.counts.tolist() == [3, 1]
    assert made.scores.tolist() == [[1.0, 0.75, 0.0], [0.5, -np.inf, -np.inf]]


def test_a_threshold_is_the_least_score_that_reaches_the_share() -> None:
    scale = hf.Calibrator().fit([1.0, 2.0, 2.0, 9.0])
    assert [scale.threshold(share) for share in (0.0, 0.25, 0.26, 0.75, 0.76, 1.0)] == [1.0, 1.0, 2.0, 2.0, 9.0, 9.0]


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: hf.Calibrator().fit([]), ("empty", "sample")),
        (lambda: hf.Calibrator().fit(hf.Hits([[-1]], [[0.0]])), ("empty", "sample")),
        (lambda: hf.Calibrator().fit([1.0, np.nan]), ("finite", "scores")),
        (lambda: hf.Calibrator().fit(["a"]), ("dtype", "scores")),
        (lambda: hf.Calibrator(max_knots=1), ("range", "max_knots")),
        (lambda: hf.Calibrator().fit([1.0]).transform([np.inf]), ("finite", "scores")),
        (lambda: hf.Calibrator().fit([1.0]).transform([1e39]), ("finite", "scores")),
        (lambda: hf.Calibrator().fit([1.0]).threshold(1.5), ("range", "share")),
    ],
)
def test_bad_input_is_refused(call: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        call()


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    scale = hf.Calibrator(max_knots=500).fit(np.random.default_rng(1).standard_normal(9_000))
    path = tmp_path / "scale.json"
    scale.save(path)
    scale.save(path)
    again = hf.Calibrator.load(path)
    assert list(tmp_path.iterdir()) == [path]
    for name in ("knots", "below", "at_most"):
        assert getattr(again, name).tobytes() == getattr(scale, name).tobytes()
    assert again.sample_size == 9_000


def damaged(change: Any) -> Any:
    def write(path: Path) -> None:
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return write


def resealed(change: Any) -> Any:
    """Damage with a checksum that fits it."""

    def write(path: Path) -> None:
        content = json.loads(path.read_text())
        change(content)
        names = ("sample_size", "knots", "below", "at_most")
        content["crc32"] = zlib.crc32(json.dumps({name: content.get(name) for name in names}, sort_keys=True).encode())
        path.write_text(json.dumps(content))

    return write


@pytest.mark.parametrize(
    ("damage", "refusal"),
    [
        (lambda path: path.write_text(""), ("damaged", None)),
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), ("damaged", None)),
        (lambda path: path.write_bytes(b"\xff" * 20), ("damaged", None)),
        (lambda path: path.write_text("[]"), ("damaged", None)),
        (damaged(lambda c: c.update(format="other")), ("damaged", None)),
        (damaged(lambda c: c.update(version=2)), ("version", None)),
        (damaged(lambda c: c["knots"].__setitem__(0, 0.5)), ("damaged", None)),
        (damaged(lambda c: c.pop("below")), ("damaged", None)),
        (resealed(lambda c: c.pop("below")), ("damaged", None)),
        (resealed(lambda c: c["knots"].pop()), ("damaged", None)),
        (resealed(lambda c: c["knots"].__setitem__(0, "x")), ("damaged", None)),
        (resealed(lambda c: c["knots"].reverse()), ("damaged", None)),
        (resealed(lambda c: c["at_most"].__setitem__(0, -1)), ("damaged", None)),
        (resealed(lambda c: c.update(sample_size=99)), ("damaged", None)),
        (resealed(lambda c: c["below"].__setitem__(0, 2**70)), ("damaged", None)),
        (resealed(lambda c: c["below"].__setitem__(0, 0.5)), ("damaged", None)),
        (resealed(lambda c: c["below"].__setitem__(0, True)), ("damaged", None)),
        (resealed(lambda c: c["knots"].__setitem__(-1, 10**40)), ("damaged", None)),
        (resealed(lambda c: c["knots"].__setitem__(-1, 10**400)), ("damaged", None)),
        (resealed(lambda c: c["knots"].__setitem__(-1, float("nan"))), ("damaged", None)),
        (lambda path: path.write_text("[" * 100_000), ("damaged", None)),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: Any, refusal: tuple[str, str | None]) -> None:
    path = tmp_path / "scale.json"
    hf.Calibrator().fit([1.0, 2.0, 4.0]).save(path)
    damage(path)
    with refused(FormatError, *refusal):
        hf.Calibrator.load(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "scale.json"
    with path.open("wb") as file:
        file.truncate(2**25)
    with refused(FormatError, "limit"):
        hf.Calibrator.load(path)


def test_fit_is_as_elsewhere_in_place_and_chained() -> None:
    scale = hf.Calibrator()
    assert scale.fit([1.0, 2.0]) is scale
    with refused(InputError, "finite", "scores"):
        scale.fit([np.nan])
    np.testing.assert_array_equal(scale.knots, [1.0, 2.0])
    np.testing.assert_array_equal(scale.fit([4.0]).knots, [4.0])
    assert scale.sample_size == 1


def test_a_calibrator_that_was_not_fitted_says_so(tmp_path: Path) -> None:
    scale = hf.Calibrator(max_knots=9)
    assert repr(scale) == "Calibrator(max_knots=9)"
    for call in (lambda: scale.transform([1.0]), lambda: scale.threshold(0.5), lambda: scale.save(tmp_path / "a")):
        with refused(InputError, "missing"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".scale.json.{os.getpid()}").symlink_to(victim)
    hf.Calibrator().fit([1.0, 2.0]).save(tmp_path / "scale.json")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "scale.json").is_symlink()
