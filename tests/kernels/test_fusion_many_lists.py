"""Every fusion method on many drawn lists: the kernels against the float64 oracle, and each other with ``==``.

100,000 lists a method with HOPFUSE_TESTS=full, 1,600 otherwise: one, two, three and ten to a query, of 0 to 12
documents, some with ties, all tied, or beyond a pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from hopfuse import reference
from hopfuse.fusion import METHODS
from numpy.typing import NDArray
from tiers import FULL

LISTS = 100_000 if FULL else 1_600
#: Of these the emulator fuses the first: a thread at a time.
EMULATED = 20_000 if FULL else 160
COUNTS, WIDTH, DOCUMENTS = (1, 2, 3, 10), 12, 24
BATCH = 250 if FULL else 10
#: Relative errors: exponents multiply those of what they are made of.
RTOL = {"plackett_luce": 1e-4, "power_mean": 2e-5, "gumbel": 2e-5, "log_linear": 2e-5, "tsallis": 2e-5}

Call = tuple[list[hf.Hits], dict[str, Any]]


def calls(method: str, lists: int) -> Iterator[Call]:
    """Batches of queries until there are so many lists."""
    rng, made = np.random.default_rng(sorted(METHODS).index(method)), 0
    while made < lists:
        for count in COUNTS:
            made += BATCH * count
            options: dict[str, Any] = {
                "consensus": rng.choice([0.0, 0.5]),
                "pool": rng.choice([None, 5], p=[0.75, 0.25]),
            }
            if METHODS[method].weighted and rng.random() < 0.5:
                options["weights"] = rng.random((BATCH, count)).astype(np.float32)
            yield [draw(rng) for _ in range(count)], options


def draw(rng: np.random.Generator) -> hf.Hits:
    """A list for each query of a batch."""
    ids = np.argsort(rng.random((BATCH, DOCUMENTS)), axis=1)[:, :WIDTH]
    steps = rng.choice([1, 2, 5, 2**23], (BATCH, 1))
    scores = rng.integers(0, steps, (BATCH, WIDTH)) / steps
    counts = rng.integers(0, WIDTH + 1, BATCH) * (rng.random(BATCH) < 0.9)
    return hf.Hits(ids, scores, np.where(rng.random(BATCH) < 0.1, 1, counts))


def by_document(hits: Any) -> NDArray[np.float64]:
    """(B, DOCUMENTS); -inf where a document is not among the hits."""
    table = np.full((len(hits.counts), DOCUMENTS), -np.inf)
    held = np.arange(hits.ids.shape[1]) < hits.counts[:, None]
    table[np.nonzero(held)[0], hits.ids[held]] = hits.scores[held]
    return table


def check_order(hits: hf.Hits) -> None:
    """Higher scores first, then lower ids; padding behind."""
    held = np.arange(hits.ids.shape[1]) < hits.counts[:, None]
    assert ((hits.ids == -1) == ~held).all()
    assert (np.isneginf(hits.scores) == ~held).all()
    s, i = hits.scores, hits.ids
    assert ((s[:, :-1] > s[:, 1:]) | ((s[:, :-1] == s[:, 1:]) & (i[:, :-1] < i[:, 1:])) | ~held[:, 1:]).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_kernels_are_the_oracle_and_each_other(variant: str, method: str) -> None:
    rtol = RTOL.get(method, 5e-6)
    for lists, options in calls(method, EMULATED if variant == variants.SIMT else LISTS):
        found = hf.fuse(lists, method=method, k=DOCUMENTS, threads=2, **options)
        check_order(found)
        exact = by_document(reference.fuse(lists, method=method, k=DOCUMENTS, **options))
        np.testing.assert_allclose(by_document(found), exact, rtol=rtol, atol=1e-5)
