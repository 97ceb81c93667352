"""The comparison of instruction sets in every test on the CPU finds different bits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import variants
from hopfuse import _native
from hopfuse.backends import cpu


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
    kernels = {name for name in dir(_native) if "threads: int" in str(getattr(_native, name).__doc__)}
    assert kernels - {"first_unscorable", "ppr_are_shared"} == set(variants.KERNELS)


def test_the_fixture_compares_what_the_ops_call(variant: str) -> None:
    compares = isinstance(cpu._native, variants.EveryInstructionSet)
    assert compares == (variant == variants.CPU)
