"""Calibration and fusion of lists."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...fusion import METHODS, Boltzmann, FusionMethod, Max, Quantum, Tsallis
from ..call import Answer, Array, Backend, Case, HitArrays, ScoredList, empty_hits, hits_of, named
from ..cpu import record

if TYPE_CHECKING:
    from ..cuda import DeviceOps

_CALIBRATIONS, _TIES, _METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()

#: Numbers and float32 arrays on the host, by the names of the fields of a kernel's struct.
KernelOptions = dict[str, float | NDArray[np.float32]]


class CalibrateCall(NamedTuple):
    """Calibrate one list; the answer has its scores, (B, k)."""

    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    method: str
    ties: str
    option: KernelOptions  # fields of CalibrationRule in kernels/include/hopfuse/calibrate.h
    threads: int
    on_device: bool = False

    def run_on_host(self) -> NDArray[np.float32]:
        out = np.empty(self.scores.shape, np.float32)
        kind = {"method": _CALIBRATIONS[self.method], "ties": _TIES[self.ties]}
        _native.calibrate(self.scores, self.counts, **kind, option=self.option, threads=self.threads, out=out)
        record("calibrate_f32", self.threads, queries=self.scores.shape[0], method=self.method)
        return out

    def run_on_device(self, device: DeviceOps) -> Array:
        made = _native.device_calibrate(
            device.queue(),
            self.scores,
            self.counts,
            method=_CALIBRATIONS[self.method],
            ties=_TIES[self.ties],
            option=self.option,
            on_device=self.on_device,
        )
        device.record("calibrate_f32", queries=self.scores.shape[0], method=self.method)
        return made["scores"]


class FuseCall(NamedTuple):
    """Fuse L lists into the k best documents of each query; everything but the lists is on the host."""

    lists: list[ScoredList]
    method: str
    calibration: str
    ties: str
    calibration_option: KernelOptions
    pools: NDArray[np.int64]  # (L,) the most hits to use of each list
    option: KernelOptions  # fields of FusionOptions in kernels/include/hopfuse/fusion/entry.h
    weights: NDArray[np.float32]  # (L,) or (B, L)
    consensus: float
    prior: NDArray[np.float32]  # factors by id; empty: all are 1
    k: int
    threads: int
    on_device: bool = False

    def run_on_host(self) -> HitArrays:
        ids, scores, counts = map(list, zip(*self.lists, strict=True))
        batch = ids[0].shape[0]
        hits = empty_hits(batch, self.k)
        _native.fuse(
            ids,
            scores,
            counts,
            method=_METHODS[self.method],
            calibration=_CALIBRATIONS[self.calibration],
            ties=_TIES[self.ties],
            calibration_option=self.calibration_option,
            pools=self.pools,
            option=self.option,
            weights=self.weights,
            consensus=self.consensus,
            prior=self.prior,
            weights_shared=self.weights.ndim == 1,
            threads=self.threads,
            **hits,
        )
        record("fuse_f32", self.threads, queries=batch, method=self.method, lists=len(ids))
        return named(hits)

    def run_on_device(self, device: DeviceOps) -> HitArrays:
        hits = _native.device_fuse(
            device.queue(),
            self.lists,
            method=_METHODS[self.method],
            calibration=_CALIBRATIONS[self.calibration],
            ties=_TIES[self.ties],
            calibration_option=self.calibration_option,
            pools=self.pools,
            option=self.option,
            weights=self.weights,
            consensus=self.consensus,
            prior=self.prior,
            k=self.k,
            on_device=self.on_device,
        )
        batch = self.lists[0][0].shape[0]
        device.record("fuse_f32", queries=batch, method=self.method, lists=len(self.lists))
        return hits


# ---- The self-test ---------------------------------------------------------------------------------------------------

_LISTS = ((30, 30), (12, 40), (5, 20))  # hits of each list, and the number of ids to draw from


def cases() -> Iterator[Case]:
    """Yield two cases of each method, and one of each calibration and each rule for ties."""
    for name, method in _methods().items():
        yield _fuse_case(name, method, is_quick=name == "boltzmann")
        yield _fuse_case(name, method, long_lists=True)
    for name in sorted(_CALIBRATIONS.keys() - {"pit"}, key=_CALIBRATIONS.__getitem__):
        yield _calibrate_case(name, "strict")
    for ties in sorted(_TIES, key=_TIES.__getitem__):
        yield _calibrate_case("pit", ties, is_quick=ties == "mean")


def _methods() -> dict[str, FusionMethod]:
    """Return a method for each kernel: by default options, or by those that reach more of it."""
    return {
        **{str(method.kernel): method() for method in METHODS.values()},
        "boltzmann": Boltzmann(temperature=0.5, wasserstein=2.0),
        "max": Max(bias=(0.25, 0.25, 0.25)),
        "tsallis": Tsallis(q=(0.5, 1.0, 1.5)),
        "quantum": Quantum(form="sqrt", temperature=0.5),
    }


def calibration_option(lists: int) -> KernelOptions:
    """Return the options of a calibration of this many lists, for cases."""
    return {
        "single": math.nan,  # not given, as equal and upper
        "equal": math.nan,
        "temperature": 0.5,
        "lower": np.full(lists, -1.0, np.float32),
        "upper": np.full(lists, np.nan, np.float32),
    }


def _fuse_case(name: str, method: FusionMethod, *, long_lists: bool = False, is_quick: bool = False) -> Case:
    """Return a case; long lists exceed what a block sorts in shared memory."""
    from ..selftest_data import draw_hits

    def run(backend: Backend) -> Answer:
        rng = np.random.default_rng(5)
        sizes = tuple((60 * width, 60 * documents) for width, documents in _LISTS) if long_lists else _LISTS
        lists = [draw_hits(rng, 2 if long_lists else 9, *size) for size in sizes]
        call = FuseCall(
            lists,
            method=name,
            calibration="none" if method.calibrations == () else "pit",
            ties="strict",
            calibration_option=calibration_option(len(lists)),
            pools=np.array([ids.shape[1] - 1 for ids, _, _ in lists], np.int64),
            option=method.kernel_options(len(lists)),
            weights=np.array([0.5, 0.25, 0.25], np.float32),
            consensus=0.5,
            prior=np.linspace(0.5, 1.0, 40, dtype=np.float32),
            k=20,
            threads=1,
        )
        return hits_of(backend.run(call))

    return Case(f"fuse {name}{', long lists' if long_lists else ''}", run, is_quick)


def _calibrate_case(method: str, ties: str, *, is_quick: bool = False) -> Case:
    from ..selftest_data import draw_hits

    def run(backend: Backend) -> Answer:
        _, scores, counts = draw_hits(np.random.default_rng(6), 9, 70, 80)
        call = CalibrateCall(scores, counts, method, ties, calibration_option(1), threads=1)
        return [backend.run(call)]

    return Case(f"calibrate {method}{f', {ties} ties' if method == 'pit' else ''}", run, is_quick)
