"""A measurement: correctness check, warm-up, then hopfuse and the peer in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from . import machine
from .cases import CASES
from .cases.base import Workload
from .clocks import Clocks
from .peers import PEERS, Peer
from .settings import Settings
from .stats import ratios, summary

#: On a GPU: calls one right after another, and about how many seconds of them.
IN_A_ROW, LONGEST = 200, 5.0
#: One side of a measurement, called with the number of the turn.
Side = Callable[[int], Any]
#: Seconds of rest before each turn, because idle threads of the other side's pool spin before they sleep: OpenBLAS's
#: for 2^28 cycles after a product, about 0.1 s.
REST = 0.15
#: A call shorter than this many seconds is first run untimed in each turn, so that its data is in the caches.
SHORT = 0.05


def measure(case: str, peer: str | None, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield a row for each batch size of a case beside a peer (None for hopfuse alone).

    Raises
    ------
    GateError
        An answer is wrong; rows of earlier batch sizes have been yielded by then.
    UnavailableError, ImportError
        The data of the case, the peer or the backend is absent.
    """
    adapter = None if peer is None else PEERS[peer]
    if adapter is not None:
        adapter.require()
    machine.require_backend(settings.backend)
    machine.require_isa(settings.isa)
    workload = CASES[case].load(settings)
    other = None if adapter is None else adapter(workload, settings.threads)
    for batch in workload.batches:
        yield {"case": case, "peer": peer, "status": "ok", **_measure_batch(workload, other, batch, settings)}


def _measure_batch(workload: Workload, peer: Peer | None, batch: int, settings: Settings) -> dict[str, Any]:
    ours = workload.run(batch, 0)
    gate = _gate(workload, peer, batch, ours)
    moved = workload.moved(batch, ours)
    del ours
    sides = [_calls(lambda turn: workload.run(batch, turn), workload.calls)]
    scale = 1.0
    if peer is not None:
        sides.append(_calls(lambda turn: peer.run(batch), workload.calls))
        scale = batch / peer.timed_queries(batch)
    turns = workload.turns(batch, settings)
    average, load = machine.load_average(), machine.OtherLoad()
    with workload.beside(), Clocks() as clocks:
        times = [[seconds / workload.calls for seconds in side] for side in _interleave(sides, turns)]
    others = load.stop()
    in_a_row = (
        None if settings.backend == "cpu" else [_in_a_row(side, workload.calls, settings.quick) for side in sides]
    )
    row: dict[str, Any] = {
        "data": workload.data,
        "sizes": {**workload.sizes, "batch": batch},
        "threads": settings.threads,
        "isa": settings.isa or None,
        "quick": settings.quick,
        "gate": gate,
        "hopfuse": summary(times[0]),
        "peer_time": None,
        "ratio": None,
        "peer_timed_queries": None,
        "peer_note": None,
        "clocks": clocks.summary(),
        "in_a_row": None if in_a_row is None else dict(zip(("hopfuse", "peer"), in_a_row, strict=False)),
    }
    if peer is not None:
        scaled = [t * scale for t in times[1]]
        row |= {
            "peer_time": summary(scaled),
            "ratio": ratios(times[0], scaled),
            "peer_timed_queries": peer.timed_queries(batch),
            "peer_note": peer.note(batch),
        }
    return row | {
        "moved": None if moved is None else asdict(moved),
        "pass": workload.probe(batch, settings),
        "kernels": machine.kernels(workload.ops),
        "load": {"average_before": average, "other_cores": others},
        "machine": machine.machine(),
        **machine.backend(),
        **machine.commit(),
        "versions": machine.versions(*(() if peer is None else peer.packages)),
    }


def _gate(workload: Workload, peer: Peer | None, batch: int, ours: Any) -> dict[str, Any]:
    """Compare hopfuse with the oracle, then the peer with hopfuse. These calls are also a warm-up."""
    gate: dict[str, Any] = {"oracle": workload.check(batch, ours), "peer": None}
    if peer is not None:
        gate["peer"] = workload.compare(batch, ours, peer.answer(peer.run(batch)))
    return gate


def _calls(side: Side, calls: int) -> Side:
    """Return a function that makes ``calls`` calls."""
    if calls == 1:
        return side

    def repeated(turn: int) -> None:
        for _ in range(calls):
            side(turn)

    return repeated


def _interleave(sides: list[Side], turns: int) -> list[list[float]]:
    """Return the seconds of each side in each turn; the first side alternates."""
    last = [_timed(side, 0) for side in sides]
    times: list[list[float]] = [[] for _ in sides]
    order = list(range(len(sides)))
    gc.collect()
    gc.disable()
    try:
        for turn in range(turns):
            for at in order:
                time.sleep(REST)
                if last[at] < SHORT:
                    sides[at](turn)
                last[at] = _timed(sides[at], turn)
                times[at].append(last[at])
            order.reverse()
    finally:
        gc.enable()
    return times


def _in_a_row(side: Side, calls: int, is_quick: bool) -> dict[str, Any]:
    """Return the times of calls one right after another, with the GPU's clocks meanwhile."""
    once = _timed(side, 0)
    count = 3 if is_quick else max(3, min(IN_A_ROW, int(LONGEST / max(once, 1e-9))))
    with Clocks() as clocks:
        times = [_timed(side, turn) / calls for turn in range(count)]
    return {**summary(times), "clocks": clocks.summary()}


def _timed(side: Side, turn: int) -> float:
    start = time.perf_counter()
    side(turn)
    return time.perf_counter() - start
