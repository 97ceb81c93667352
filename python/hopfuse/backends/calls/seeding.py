"""Seeds of walks from hits, hits that cover seeds, and weights of hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...types import Incidence
from ..call import Answer, Array, Backend, Case, HitArrays, ScoredList, empty_hits, hits_of, named

if TYPE_CHECKING:
    from ..cuda import DeviceOps


class PassageSeedCall(NamedTuple):
    """Add hits to seeds, with the total weight ``mass``: see :func:`hopfuse.add_passage_seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, k) int64
    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    mass: float
    on_device: bool = False

    def run_on_host(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return nodes and weights, (B, S + k)."""
        made = _empty_seeds(self.node, self.ids.shape[1])
        given = self._asdict()
        del given["on_device"]
        _native.add_passage_seeds(**given, **made)
        return made["out_node"], made["out_weight"]

    def run_on_device(self, device: DeviceOps) -> tuple[Array, Array]:
        made = _native.device_add_passage_seeds(device.queue(), **self._asdict())
        return made["nodes"], made["weights"]


class EntitySeedCall(NamedTuple):
    """Add the entities of hits to seeds, with the share ``mass``: see :func:`hopfuse.add_entity_seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, k) int64
    counts: Array  # (B,) int64
    mentions: Incidence
    frequency: NDArray[np.int64]  # (N,) or (B, N), on the host
    mass: float
    on_device: bool = False

    def run_on_host(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return nodes and weights, (B, S + W).

        W is the largest number of entries in the rows of a query's hits. Each entry has a column, ordered by rank and
        then by node. A node that is a seed or has an earlier column adds to that one and leaves its own empty. All sums
        are float64, in column order.
        """
        hits, rows = {"ids": self.ids, "counts": self.counts}, self.mentions
        made = _empty_seeds(self.node, _native.most_entries(**hits, indptr=rows.indptr))
        often = np.ascontiguousarray(np.atleast_2d(self.frequency), np.int64)
        given = {"node": self.node, "weight": self.weight, **hits, **_arrays(rows)}
        _native.add_entity_seeds(**given, frequency=often, mass=self.mass, **made)
        return made["out_node"], made["out_weight"]

    def run_on_device(self, device: DeviceOps) -> tuple[Array, Array]:
        """Return nodes and weights, which may have more empty columns than on the host."""
        given = self._asdict()
        mentions, frequency = given.pop("mentions"), np.ascontiguousarray(given.pop("frequency"), np.int64)
        there = device.incidence(mentions)
        made = _native.device_add_entity_seeds(device.queue(), there, frequency=frequency, **given)
        return made["nodes"], made["weights"]


class CoverCall(NamedTuple):
    """Choose k hits that cover the seeds: see :func:`hopfuse.cover_seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, W) int64
    scores: Array  # (B, W) float32
    counts: Array  # (B,) int64
    mentions: Incidence
    k: int  # from 1 to W, or 0 if W is 0
    least: float
    on_device: bool = False

    def run_on_host(self) -> HitArrays:
        chosen = empty_hits(len(self.node), self.k)
        hits = {"ids": self.ids, "scores": self.scores, "counts": self.counts}
        given = {"node": self.node, "weight": self.weight, **hits, **_arrays(self.mentions)}
        _native.cover_seeds(**given, least=self.least, **chosen)
        return named(chosen)

    def run_on_device(self, device: DeviceOps) -> HitArrays:
        given = self._asdict()
        mentions = device.incidence(given.pop("mentions"))
        return _native.device_cover_seeds(device.queue(), mentions, **given)


class BoostCall(NamedTuple):
    """Boost the weights of hits, (B, N): see :func:`hopfuse.boost_weights`."""

    weights: Array  # (B, N) float32
    ids: Array  # (B, k) int64
    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    strength: float
    on_device: bool = False

    def run_on_host(self) -> NDArray[np.float32]:
        boosted = np.array(self.weights, np.float32, order="C")
        given = {"ids": self.ids, "scores": self.scores, "counts": self.counts}
        _native.boost_weights(weights=boosted, **given, strength=self.strength)
        return boosted

    def run_on_device(self, device: DeviceOps) -> Array:
        return _native.device_boost_weights(device.queue(), **self._asdict())["weights"]


def _arrays(mentions: Incidence) -> dict[str, Any]:
    return {"indptr": mentions.indptr, "indices": mentions.indices, "weights": mentions.weights}


def _empty_seeds(node: NDArray[np.int64], more: int) -> dict[str, Any]:
    """Allocate seeds with more columns, under the names of the bindings' arguments."""
    shape = len(node), node.shape[1] + more
    return {"out_node": np.empty(shape, np.int64), "out_weight": np.empty(shape)}


# ---- The self-test ---------------------------------------------------------------------------------------------------

#: Draws the hits of a batch: their width, and the number of documents.
DrawHits = Callable[[np.random.Generator, int, int, int], ScoredList]


def cases() -> Iterator[Case]:
    from ..selftest_data import draw_hits

    seeds = {"add_passage_seeds": _passage_seeds, "add_entity_seeds": _entity_seeds, "cover_seeds": _cover}
    for name, run in {**seeds, "boost_weights": _boost}.items():
        yield Case(name, partial(run, draw_hits))


def _passage_seeds(draw_hits: DrawHits, backend: Backend) -> Answer:
    rng = np.random.default_rng(7)
    hits = draw_hits(rng, 9, 12, 40)
    node = np.stack([rng.permutation(40)[:4] for _ in range(9)]).astype(np.int64)
    node[3:, 3] = -1
    weight = np.where(node < 0, 0.0, rng.random(node.shape) + 0.1)
    return list(backend.run(PassageSeedCall(node, weight, *hits, mass=0.5)))


def _entity_seeds(draw_hits: DrawHits, backend: Backend) -> Answer:
    """Add entities of hits to seeds, with overlaps, weights of all sizes and a query without seeds."""
    rng = np.random.default_rng(8)
    pairs = np.unique(rng.integers(0, 30 * 20, 150))
    weights = 10.0 ** rng.integers(-9, 9, pairs.size)
    mentions = Incidence.from_pairs(pairs // 20, pairs % 20, weights, num_rows=30, num_columns=20)
    node = np.stack([rng.permutation(20)[:4] for _ in range(9)]).astype(np.int64)
    node[3:, 3], node[8] = -1, -1
    weight = np.where(node < 0, 0.0, rng.random(node.shape) + 0.1)
    ids, _, counts = draw_hits(rng, 9, 3, 30)
    often = rng.integers(0, 5, (9, 20))
    nodes, shares = backend.run(EntitySeedCall(node, weight, ids, counts, mentions, often, mass=0.5))
    kept = 4 + int(np.diff(mentions.indptr)[ids].sum(axis=1).max())  # a device returns more columns than the host
    return [_to_width(nodes, kept, -1), _to_width(shares, kept, 0.0)]


def _cover(draw_hits: DrawHits, backend: Backend) -> Answer:
    """Cover seeds with ties of weight, below the floor, without a mention, and a query without seeds."""
    rng = np.random.default_rng(12)
    pairs = np.unique(rng.integers(0, 30 * 20, 150))
    weights = rng.integers(0, 3, pairs.size)
    mentions = Incidence.from_pairs(pairs // 20, pairs % 20, weights, num_rows=30, num_columns=20)
    node = np.stack([rng.permutation(24)[:6] for _ in range(9)]).astype(np.int64)
    node[3:, 3], node[8] = -1, -1
    weight = np.where(node < 0, 0.0, rng.integers(0, 5, node.shape) / 4)
    hits = backend.run(CoverCall(node, weight, *draw_hits(rng, 9, 12, 30), mentions, k=3, least=0.3))
    return hits_of(hits)


def _boost(draw_hits: DrawHits, backend: Backend) -> Answer:
    """Boost weights by scores of both signs and all sizes, and by an empty list."""
    rng = np.random.default_rng(11)
    ids, scores, counts = draw_hits(rng, 9, 300, 700)
    size = 10.0 ** rng.integers(-40, 30, scores.shape)
    scores = (scores * np.where(rng.random(scores.shape) < 0.2, -size, size)).astype(np.float32)
    weights = rng.random((9, 700), np.float32)
    return [backend.run(BoostCall(weights, ids, scores, counts, 2.5))]


def _to_width(array: NDArray[Any], width: int, padding: float) -> NDArray[Any]:
    """Pad or cut an array to ``width`` columns."""
    short = ((0, 0), (0, max(0, width - array.shape[1])))
    return np.ascontiguousarray(np.pad(array, short, constant_values=padding)[:, :width])
