"""dice_scores on every kernel variant: the exact rational number rounded to float32, and one answer everywhere."""

from __future__ import annotations

import os
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from compare import assert_bitwise
from hopfuse import reference
from hopfuse._native import DeviceLabels
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused

TEXTS = st.text(alphabet=st.sampled_from("aabbc  é€\U0001f600ß-"), max_size=30)


def check(texts: list[str], labels: list[str], candidates: Any, indptr: Any, **how: Any) -> NDArray[np.float32]:
    """Half a unit in the last place of float32, and what float64's rounding may move beyond the middle."""
    scores = hf.dice_scores(texts, hf.LabelSets.from_labels(labels, **how), candidates, indptr=indptr)
    rows = np.asarray(candidates)
    rows = rows[:, None] if rows.ndim == 1 else rows
    expected = reference.dice_scores(texts, labels, rows.tolist(), indptr, **how)
    assert scores.dtype == np.float32
    assert scores.shape == expected.shape
    spacing = np.spacing(expected.astype(np.float32)).astype(np.float64)
    assert (np.abs(scores.astype(np.float64) - expected) <= spacing * (0.5 + 1e-6)).all()
    return scores


@pytest.mark.parametrize("unit", ["bigrams", "words"])
@pytest.mark.parametrize("repeats", [False, True])
@given(
    texts=st.lists(TEXTS, max_size=4),
    labels=st.lists(TEXTS, min_size=1, max_size=6),
    parts=st.integers(1, 4),
    data=st.data(),
)
def test_scores_are_the_oracles(
    variant: str, unit: str, repeats: bool, texts: list[str], labels: list[str], parts: int, data: st.DataObject
) -> None:
    counts = [data.draw(st.integers(0, 5)) for _ in texts]
    indptr = np.cumsum([0, *counts]).tolist()
    numbers = st.lists(st.integers(0, len(labels) - 1), min_size=parts * indptr[-1], max_size=parts * indptr[-1])
    candidates = np.array(data.draw(numbers), np.int64).reshape(indptr[-1], parts)
    check(texts, labels, candidates, indptr, unit=unit, repeats=repeats)


def test_spellings_of_a_text_are_equal(variant: str) -> None:
    labels = ["société", "STRASSE", "Datenbank", "राजधानी", "艾瑞克"]
    texts = ["socie\u0301te\u0301", "straße", "daten\u00adbank", "राजधानी", "艾瑞克"]
    for unit in ("bigrams", "words"):
        assert check(texts, labels, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], unit=unit).tolist() == [1.0] * 5
    assert check(["राजधान"], labels, [3], [0, 1], unit="words").tolist() == [0.0]


def test_known_numbers(variant: str) -> None:
    """Dice's coefficient as it is taught, and as APOC's documentation has it."""
    labels = ["nacht", "jolly", "night", "", "x", "aa aa aa", "ferris"]
    scores = check(["night", "belly", "x", "feris"], labels, [0, 2, 1, 3, 4, 6], [0, 2, 3, 5, 6])
    assert scores.tolist() == [0.25, 1.0, 0.5, 0.0, 0.0, np.float32(8 / 9)]
    assert check(["aa"], labels, [5], [0, 1]).tolist() == [1.0]
    assert check(["aa"], labels, [5], [0, 1], repeats=True).tolist() == [0.5]
    assert check(["AA bb"], ["bb aa cc"], [0], [0, 1], unit="words").tolist() == [np.float32(0.8)]


def test_the_order_of_a_triples_labels_does_not_matter(variant: str) -> None:
    labels = ["the matrix", "directed by", "lana wachowski"]
    orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]]
    assert len(set(check(["who directed the matrix"], labels, orders, [0, 4]).tolist())) == 1


def many(seed: int, batch: int = 40) -> tuple[list[str], hf.LabelSets, NDArray[np.int64], NDArray[np.int64]]:
    """Queries with no candidate, with one and with hundreds; labels and texts of every length."""
    rng = np.random.default_rng(seed)
    drawn = ["".join(rng.choice(list("abcdefgh "), int(length))) for length in rng.integers(0, 60, batch + 90)]
    counts = rng.choice([0, 1, 2, 127, 128, 129, 400], batch)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    labels = hf.LabelSets.from_labels(drawn[batch:])
    return drawn[:batch], labels, rng.integers(0, 90, (int(indptr[-1]), 3)), indptr


def test_every_variant_thread_count_and_batch_has_the_same_bits(every_isa: list[str]) -> None:
    texts, labels, candidates, indptr = many(1)
    variants.use(every_isa[0])
    expected = hf.dice_scores(texts, labels, candidates, indptr=indptr)
    for name in every_isa:
        variants.use(name)
        for threads in (1, 3):
            found = hf.dice_scores(texts, labels, candidates, indptr=indptr, threads=threads)
            assert_bitwise(found, expected, f"{name}, {threads} threads")
    for b in (0, 7, 39):
        own = slice(indptr[b], indptr[b + 1])
        alone = hf.dice_scores(texts[b : b + 1], labels, candidates[own], indptr=[0, own.stop - own.start])
        assert_bitwise(alone, expected[own], f"text {b} alone")


@pytest.mark.every_order
def test_orders_of_threads(runtime: Any) -> None:
    texts, labels, candidates, indptr = many(2, 6)
    hf.dice_scores(texts, labels, candidates, indptr=indptr)
    assert {kernel for kernel, _, _ in runtime.launches} == {"dice_f32"}


def test_labels_stay_on_a_device_until_they_are_released(runtime: Any) -> None:
    texts, labels, candidates, indptr = many(3)
    once = hf.dice_scores(texts, labels, candidates, indptr=indptr)
    assert len(labels.derived) == 1
    (kept,) = labels.derived.values()
    assert isinstance(kept, DeviceLabels)
    again = hf.dice_scores(texts, labels, candidates, indptr=indptr)
    assert list(labels.derived.values()) == [kept]
    assert_bitwise(again, once)
    hf.free_device_memory(labels, backend=variants.SIMT)
    assert not labels.derived


def test_nothing_to_score(variant: str) -> None:
    empty = hf.LabelSets.from_labels([])
    assert hf.dice_scores([], empty, np.zeros((0, 3), int), indptr=[0]).shape == (0,)
    assert hf.dice_scores(["a text"], empty, np.zeros((0, 3), int), indptr=[0, 0]).shape == (0,)


def test_explain_says_what_ran() -> None:
    if os.environ.get("HOPFUSE_BACKEND", "cpu") != "cpu":
        pytest.skip("another backend was asked for")
    hf.dice_scores(["night"], hf.LabelSets.from_labels(["nacht"]), [0], indptr=[0, 1])
    call = hf.backend_info()["backends"]["cpu"]["last_calls"]["dice_f32"]
    assert call["candidates"] == 1
    assert call["kernel"].startswith("dice_f32_")


LABELS = hf.LabelSets.from_labels(["Ada", "wrote", "Notes"])


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("ada", LABELS, [0], [0, 1]), ("type", "texts")),
        (([b"ada"], LABELS, [0], [0, 1]), ("type", "texts[0]")),
        ((["ada"], ["Ada"], [0], [0, 1]), ("type", "labels")),
        ((["ada"], LABELS, [3], [0, 1]), ("unknown", "candidates")),
        ((["ada"], LABELS, [[0, -1]], [0, 1]), ("unknown", "candidates")),
        ((["ada"], LABELS, [0.0], [0, 1]), ("dtype", "candidates")),
        ((["ada"], LABELS, np.zeros((1, 0), int), [0, 1]), ("empty", "candidates")),
        ((["ada"], LABELS, [0], [0, 2]), ("order", "indptr")),
        ((["ada", "b"], LABELS, [0], [0, 2, 1]), ("order", "indptr")),
        ((["ada"], LABELS, [0], [0]), ("shape", "indptr")),
        ((["ada"], LABELS, [0], [0.0, 1.0]), ("dtype", "indptr")),
    ],
)
def test_bad_input_is_refused(arguments: Any, refusal: tuple[str, str | None]) -> None:
    *first, indptr = arguments
    with refused(InputError, *refusal):
        hf.dice_scores(*first, indptr=indptr)


def test_label_sets_are_checked() -> None:
    indptr, members = np.array([0, 2, 3]), np.array([0, 1, 1], np.int32)
    made = hf.LabelSets(["ab", "bc"], indptr, members)
    assert len(made) == 2
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"vocabulary": ["bc", "ab"]}, "order", "vocabulary[1]"),
        ({"vocabulary": ["ab"]}, "range", "members"),
        ({"indptr": np.array([0, 2])}, "order", "indptr"),
        ({"indptr": np.array([0, 3, 3])}, "order", "members"),
        ({"members": members.astype(np.int64)}, "dtype", "members"),
        ({"members": np.array([0, 9, 1, 9, 1], np.int32)[::2]}, "shape", "members"),
        (
            {"members": np.frombuffer(b"." + np.array([0, 1, 1], np.int32).tobytes(), np.int32, offset=1)},
            "shape",
            "members",
        ),
        ({"unit": "trigrams"}, "choice", "unit"),
        ({"repeats": 1}, "type", "repeats"),
    ]
    for change, code, field in wrong:
        with refused(InputError, code, field):
            hf.LabelSets(**({"vocabulary": ["ab", "bc"], "indptr": indptr, "members": members} | change))
    with refused(InputError, "type", "labels"):
        hf.LabelSets.from_labels("Ada")
