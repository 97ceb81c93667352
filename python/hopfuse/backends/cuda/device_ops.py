"""The device backend: native operations, for arrays on the host or on the device."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...errors import BackendError, InputError
from ...types import Graph, Incidence, LabelSets
from ..calls import (
    Array,
    BoostCall,
    CalibrateCall,
    CoverCall,
    DiceCall,
    EntitySeedCall,
    FuseCall,
    HitArrays,
    IsingCall,
    SeedCall,
)
from .residents import resident
from .runtime import Runtime

_CALIBRATIONS, _TIES, _FUSION_METHODS = _native.calibrations(), _native.ties(), _native.fusion_methods()


class DeviceOps:
    """The ops of the CPU backend, with the same bits, on a device. ``threads`` of calls is ignored.

    Arrays of a call are uploaded and its results downloaded. If a call is ``on_device``, results are device arrays, and
    their work is only queued. A query that a kernel refuses raises InputError; in a recording, where nothing can be
    read back, its status (kernels/include/hopfuse/query_status.h) is one of the recording's results.
    """

    unusable: BackendError | None = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.last: dict[str, dict[str, Any]] = {}
        self._device = runtime.device

    @property
    def device(self) -> DeviceOps:
        """The backend itself, because it takes arrays on its device."""
        return self

    def explain(self) -> dict[str, Any]:
        """Return the device's entry in :func:`hopfuse.backend_info`."""
        calls = {op: dict(call) for op, call in list(self.last.items())}
        return {**self.runtime.explain(), "last_calls": calls, "error": None}

    def adopt(self, array: Any, name: str) -> _native.DeviceArray:
        """Return a caller's array without a copy; raise if it is not on this device."""
        if not self.runtime.is_device_array(array):
            raise InputError(
                "conflict",
                name,
                "{field} is on the host, but other arrays are on a device; move all of them to one place",
            )
        return self.runtime.adopt(array)

    def _record(self, op: str, **more: Any) -> None:
        """Keep a description of the last call for ``backend_info()``."""
        self.last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    # ---- What is resident --------------------------------------------------------------------------------------------

    def _labels(self, labels: LabelSets) -> _native.DeviceLabels:
        return resident(self.runtime, labels, lambda queue: _native.device_labels(queue, labels.indptr, labels.members))

    # ---- Seeds -------------------------------------------------------------------------------------------------------

    def add_passage_seeds(self, call: SeedCall) -> tuple[Array, Array]:
        made = _native.device_add_passage_seeds(self._device.queue(), **call._asdict())
        return made["nodes"], made["weights"]

    def add_entity_seeds(self, call: EntitySeedCall) -> tuple[Array, Array]:
        given = call._asdict()
        mentions, frequency = given.pop("mentions"), np.ascontiguousarray(given.pop("frequency"), np.int64)
        queue = self._device.queue()
        made = _native.device_add_entity_seeds(queue, self._incidence(mentions), frequency=frequency, **given)
        return made["nodes"], made["weights"]

    def cover_seeds(self, call: CoverCall) -> HitArrays:
        given = call._asdict()
        mentions = self._incidence(given.pop("mentions"))
        return _native.device_cover_seeds(self._device.queue(), mentions, **given)

    def boost_weights(self, call: BoostCall) -> Array:
        return _native.device_boost_weights(self._device.queue(), **call._asdict())["weights"]

    # ---- Calibration and fusion --------------------------------------------------------------------------------------

    def calibrate(self, call: CalibrateCall) -> Array:
        made = _native.device_calibrate(
            self._device.queue(),
            call.scores,
            call.counts,
            method=_CALIBRATIONS[call.method],
            ties=_TIES[call.ties],
            option=call.option,
            on_device=call.on_device,
        )
        self._record("calibrate_f32", queries=call.scores.shape[0], method=call.method)
        return made["scores"]

    def fuse(self, call: FuseCall) -> HitArrays:
        hits = _native.device_fuse(
            self._device.queue(),
            call.lists,
            pools=call.pools,
            method=_FUSION_METHODS[call.method],
            calibration=_CALIBRATIONS[call.calibration],
            ties=_TIES[call.ties],
            calibration_option=call.calibration_option,
            option=call.option,
            weights=call.weights,
            consensus=call.consensus,
            prior=call.prior,
            k=call.k,
            on_device=call.on_device,
        )
        self._record("fuse_f32", queries=call.lists[0][0].shape[0], method=call.method, lists=len(call.lists))
        return hits

    def ising(self, call: IsingCall) -> HitArrays:
        ids, scores, counts = call.hits
        best = _native.device_ising(
            self._device.queue(),
            self._rows(call.graph),
            ids=ids,
            scores=scores,
            counts=counts,
            **call.model._asdict(),
            k=call.k,
            on_device=call.on_device,
        )
        self._record("ising_f32", queries=ids.shape[0])
        return best

    # ---- Labels ------------------------------------------------------------------------------------------------------

    def dice(self, call: DiceCall) -> NDArray[np.float32]:
        scores = _native.device_dice(
            self._device.queue(),
            self._labels(call.labels),
            query_indptr=call.query_indptr,
            query_units=call.query_units,
            indptr=call.indptr,
            candidates=call.candidates,
        )
        self._record("dice_f32", queries=call.indptr.size - 1, candidates=call.candidates.shape[0])
        return scores
