"""What every test of a kernel compares, instruction sets on the CPU and a device with the CPU, finds different bits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from devices import on_device
from hopfuse import _native, backends
from hopfuse.backends.calls.fusion import CalibrateCall, FuseCall
from hopfuse.backends.calls.ppr import PprCall
from hopfuse.backends.calls.seeding import BoostCall
from native_kernels import KERNELS


def kernel_of(different: str | None) -> Any:
    def dense_topk(*, scores: Any, counters: Any) -> str:
        scores[:] = scores + counters  # what another instruction set left would be added to
        if _native.isa() == different:
            scores[-1] = np.nextafter(scores[-1], np.float32(np.inf))
        return _native.isa()

    return dense_topk


@pytest.mark.parametrize("different", _native.runnable_isas())
def test_an_instruction_set_with_other_bits_is_caught(every_isa: list[str], different: str) -> None:
    if len(every_isa) == 1:
        pytest.skip("one instruction set runs here: there is nothing to compare with")
    scores, counters = np.zeros(3, np.float32), np.arange(3)
    module = variants.EveryInstructionSet(SimpleNamespace(dense_topk=kernel_of(different)))
    with pytest.raises(AssertionError, match=r"dense_topk's scores on \w+, not as on"):
        module.dense_topk(scores=scores, counters=counters)


def test_every_call_starts_from_the_same_outputs_and_the_best_ones_stay(every_isa: list[str]) -> None:
    scores, counters = np.float32([1, 2, 3]), np.arange(3)
    counters.flags.writeable = False
    module = variants.EveryInstructionSet(SimpleNamespace(dense_topk=kernel_of(None), isa=_native.isa))
    assert module.dense_topk(scores=scores, counters=counters) == every_isa[0] == module.isa()
    assert scores.tolist() == [1, 3, 5]


def test_a_kernel_that_a_variant_has_from_another_is_called_once(every_isa: list[str]) -> None:
    ran = []
    module = variants.EveryInstructionSet(SimpleNamespace(dice=lambda: ran.append(_native.isa_of("dice"))))
    module.dice()
    assert sorted(ran) == sorted(set(ran))
    assert set(ran) == set(every_isa) - {"avxvnni", "amx"}


def test_every_kernel_of_the_native_module_is_compared() -> None:
    """Kernels take a number of threads; so do two functions that are compiled once."""
    functions = {name for name in dir(_native) if "threads: int" in str(getattr(_native, name).__doc__)}
    assert functions - set(KERNELS) == {"first_unscorable", "ppr_lanes"}
    assert KERNELS["dice"].outputs == ("scores",)
    assert KERNELS["dense_topk"].outputs == ("ids", "scores", "counts", "rescored")
    assert KERNELS["dense_topk"].optional_outputs == ("codes", "scale", "error", "norm_code", "norm")
    assert KERNELS["fuse"].arguments[:4] == ("ids", "scores", "counts", "pools")


def test_the_fixture_compares_what_the_ops_call(variant: str) -> None:
    compares = {isinstance(file._native, variants.EveryInstructionSet) for file in variants.CALLS}
    assert compares == {variant == variants.CPU}


# ---- A device --------------------------------------------------------------------------------------------------------


@pytest.mark.emulator
@pytest.mark.skipif(variants.missing(variants.SIMT) is not None, reason=str(variants.missing(variants.SIMT)))
@pytest.mark.parametrize("kind", [BoostCall, CalibrateCall, FuseCall, PprCall])
def test_a_device_with_other_bits_is_caught(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    """In what a call returns and in what it writes; on the host and on the device."""
    right = kind.run_on_host

    def other(call: Any) -> Any:
        found = right(call)
        scores = call.scores if kind is PprCall else found["scores"] if kind is FuseCall else found
        scores[0, 0] = np.nextafter(scores[0, 0], np.float32(np.inf))
        return found

    monkeypatch.setattr(kind, "run_on_host", other)
    hits = hf.Hits([[3, 1]], [[2.0, 1.0]])
    weights = np.ones((1, 4), np.float32)
    call = {
        BoostCall: lambda: hf.boost_weights(on_device(weights), on_device(hits), 2.0),
        CalibrateCall: lambda: hf.calibrate(hits, "max"),
        FuseCall: lambda: hf.fuse([hits], k=2),
        PprCall: lambda: hf.ppr(hf.Graph.from_edges([0, 1], [1, 2]), [{0: 1.0}]),
    }[kind]
    with variants.emulated("forward"), pytest.raises(AssertionError, match=f"{kind.__name__} on simt"):
        call()


@pytest.mark.emulator
@pytest.mark.skipif(variants.missing(variants.SIMT) is not None, reason=str(variants.missing(variants.SIMT)))
def test_the_emulator_is_left_as_it_was() -> None:
    runtime, chosen = variants.simt_runtime(), backends.automatic()
    with variants.emulated("shuffle") as emulator:
        assert (emulator, emulator.order, backends.automatic()) == (runtime, "shuffle", variants.SIMT)
    assert (runtime.order, runtime.seed, backends.automatic()) == ("forward", 0, chosen)


def test_orders_are_shared_out_among_tests() -> None:
    orders = [variants.order_of(f"tests/kernels/test_fuse.py::test_{number}") for number in range(90)]
    assert all(20 <= orders.count(order) <= 40 for order in variants.ORDERS)
