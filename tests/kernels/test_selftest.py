"""The self-test on the emulator: it passes, and it reaches every kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import _native, backends
from hopfuse.backends import selftest, selftest_cases
from hopfuse.backends.cuda.found_device import SelfTestMark
from hopfuse.backends.cuda.kernel_cache import KernelCache
from hopfuse.backends.cuda.kernel_sources import find_sources
from hopfuse.errors import BackendError
from variants import CUDA, SIMT, missing, simt_runtime

without = missing(SIMT)


@pytest.mark.parametrize("quick", [True, False])
def test_the_cpu_agrees_with_itself(quick: bool) -> None:
    found = hf.selftest("cpu", quick)
    assert found.passed
    assert found.kernels == ()
    assert all(check.values > 0 and check.cpu_seconds > 0 for check in found.checks)
    names = [check.name for check in found.checks]
    assert len(set(names)) == len(names)
    for op in (
        "ppr ",
        "ppr_topk",
        "dense_topk",
        "fuse",
        "calibrate",
        "ising",
        "dice",
        "project",
        "project_topk",
        "similarity",
    ):
        assert any(name.startswith(op) for name in names)


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
def test_the_quick_form_reaches_every_op() -> None:
    runtime = simt_runtime()
    runtime.launches.clear()
    assert selftest.difference(backends.untested(SIMT)) is None
    launched = {kernel for kernel, _, _ in runtime.launches}
    for part in (
        "ppr_pass_",
        "ppr_walk_",
        "ppr_residual",
        "dense_select_f32",
        "dense_rescore_f16",
        "fuse_",
        "calibrate_f32",
        "ising_f32",
        "dice_f32",
        "project_f32",
        "project_keys_u64",
        "similarity_weights_f32",
    ):
        assert any(kernel.startswith(part) for kernel in launched), part


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize("bits", [24, 11, 8], ids=["float32", "TF32", "bfloat16"])
def test_a_product_of_fewer_bits_is_found(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """By the quick form, too. In float32 the bound proves the list, so that no exhaustive search hides the product."""
    runtime, device = simt_runtime(), backends.untested(SIMT)
    multiply = runtime._multiply

    def rounded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        pattern, dropped = np.ascontiguousarray(array).view(np.uint32).astype(np.uint64), 24 - bits
        half = (1 << dropped >> 1) - 1 + (pattern >> dropped & 1) if dropped else 0
        return ((pattern + half) >> dropped << dropped).astype(np.uint32).view(np.float32)

    monkeypatch.setattr(runtime, "_multiply", lambda a, b, out: multiply(rounded(a), rounded(b), out))
    (case,) = (case for case in selftest_cases.quick_cases() if "TF32" in case.name)
    check = selftest._check(case, device, backends.untested("cpu"), rounds=1)
    assert check.equal == (bits == 24)
    if bits == 24:
        assert device.last["dense_topk_f32"]["rescored_rows"] == 2 * 37


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize("mma", ["h100", "uneven", "narrow"])
@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_a_narrower_matrix_unit_is_found(monkeypatch: pytest.MonkeyPatch, mma: str, storage: str) -> None:
    """By the quick form, too. The bound proves the list, so that no exhaustive search hides the products."""
    runtime, device = simt_runtime(), backends.untested(SIMT)
    monkeypatch.setattr(runtime, "mma", mma)
    (case,) = (case for case in selftest_cases.quick_cases() if f"closer than {storage}" in case.name)
    check = selftest._check(case, device, backends.untested("cpu"), rounds=1)
    assert check.equal == (mma != "narrow")
    suffix = {"float16": "f16", "bfloat16": "bf16"}[storage]
    assert mma == "narrow" or device.last[f"dense_topk_{suffix}"]["rescored_rows"] == 5 * 37


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
def test_a_kernel_is_as_equal_as_the_checks_that_launch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel of the quick form has a time of its own."""
    runtime = simt_runtime()
    runtime.launches.clear()
    checks = [
        selftest.Check(case.name, not case.name.startswith("dice"), 5, 0, 0.1, 0.1)
        for case in selftest_cases.quick_cases()
    ]
    monkeypatch.setattr("hopfuse.ops.selftest.run", lambda backend, quick: checks)
    found = hf.selftest(SIMT, quick=True)
    assert not found.passed
    assert {kernel.name for kernel in found.kernels} == {kernel for kernel, _, _ in runtime.launches}
    assert [kernel.name for kernel in found.kernels if not kernel.equal] == ["dice_f32"]
    assert all(kernel.launches >= 1 and kernel.seconds > 0 and kernel.checks for kernel in found.kernels)


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize("how", ["differ", "fail"])
def test_walks_in_one_launch_are_given_up_where_they(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str) -> None:
    """They are tested anew by the next process, unless the device cannot launch them at all."""
    runtime, launch = simt_runtime(), simt_runtime().launch

    def one_launch_is_odd(kernel: str, *call: Any, **options: Any) -> None:
        if kernel.startswith("ppr_walk") and how == "fail":
            raise BackendError("failed", None, "too many blocks")
        launch(kernel, *call, **options)
        if kernel.startswith("ppr_walk"):
            arguments = call[2][0].values
            for state in (arguments["state"], arguments["passes"].values["step"].values["next"]):
                state[...] += 1

    monkeypatch.setattr(runtime, "launch", one_launch_is_odd)
    monkeypatch.setattr(runtime, "cooperative", True)
    monkeypatch.setattr(selftest, "quick_cases", lambda: iter([selftest_cases.ppr_case("ppr plain", 3)]))
    mark = SelfTestMark(find_sources(), KernelCache(tmp_path), how)
    monkeypatch.setattr(SelfTestMark, "of", lambda backend: mark)
    with pytest.warns(RuntimeWarning, match="walks in one launch are not used: (too many|.* values differ)"):
        assert backends._differs_on_cuda(backends.untested(SIMT)) is None
    assert not runtime.cooperative
    assert not mark.is_set()
    assert backends._differs_on_cuda(backends.untested(SIMT)) is None
    assert mark.is_set()


def test_every_method_and_calibration_has_a_case() -> None:
    assert set(selftest_cases._OPTION) == set(_native.fusion_methods())
    assert {*selftest_cases._CALIBRATIONS, "pit"} == set(_native.calibrations())


@pytest.mark.gpu
def test_a_gpu_has_the_cpus_bits() -> None:
    reason = missing(CUDA)
    if reason is not None:
        pytest.skip(reason)
    assert [check for check in hf.selftest(CUDA).checks if not check.equal] == []
