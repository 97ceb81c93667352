"""The self-test on the emulator: it passes, and it reaches every kernel."""

from __future__ import annotations

import hopfuse as hf
import pytest
from hopfuse import _native, backends
from hopfuse.backends import selftest, selftest_cases
from variants import CUDA, SIMT, missing, simt_runtime

without = missing(SIMT)


@pytest.mark.parametrize("quick", [True, False])
def test_the_cpu_agrees_with_itself(quick: bool) -> None:
    found = hf.selftest("cpu", quick)
    assert found.passed
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
def test_every_kernel_is_launched_and_has_the_cpus_bits() -> None:
    runtime = simt_runtime()
    runtime.launches.clear()
    checks = selftest.run(backends.untested(SIMT), rounds=1)
    assert [check for check in checks if not check.equal] == []
    assert {kernel for kernel, _, _ in runtime.launches} == set(runtime.module.kernels)


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
def test_the_quick_form_reaches_every_op() -> None:
    runtime = simt_runtime()
    runtime.launches.clear()
    assert selftest.difference(backends.untested(SIMT)) is None
    launched = {kernel for kernel, _, _ in runtime.launches}
    for part in (
        "ppr_pass_",
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


def test_every_method_and_calibration_has_a_case() -> None:
    assert set(selftest_cases._OPTION) == set(_native.fusion_methods())
    assert {*selftest_cases._CALIBRATIONS, "pit"} == set(_native.calibrations())


@pytest.mark.gpu
def test_a_gpu_has_the_cpus_bits() -> None:
    reason = missing(CUDA)
    if reason is not None:
        pytest.skip(reason)
    assert [check for check in hf.selftest(CUDA).checks if not check.equal] == []
