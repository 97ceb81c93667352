"""The self-test on the emulator: it passes, and it reaches every kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from emulated_device import SimtRuntime
from hopfuse import _native, backends
from hopfuse.backends import calls, selftest, selftest_cases, selftest_process
from hopfuse.backends.calls.fusion import CalibrateCall, FuseCall
from hopfuse.backends.calls.seeding import BoostCall, CoverCall, EntitySeedCall, PassageSeedCall
from hopfuse.backends.cuda import DeviceOps, found_device
from hopfuse.errors import DeviceMemoryError
from kernels.moved_products import copy_kernels
from refusals import refused
from variants import CUDA, SIMT, missing, registered, simt_runtime

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


def planted(folder: Path, file: str, old: str, new: str) -> Path:
    """Copy the kernels to a folder, with a change in one file; return the folder."""
    copy_kernels(folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    return folder


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize(
    "bits",
    [
        pytest.param(24, id="float32"),
        pytest.param(11, id="TF32"),
        pytest.param(8, id="bfloat16", marks=pytest.mark.full),
    ],
)
def test_a_product_of_fewer_bits_is_found(tmp_path: Path, bits: int) -> None:
    """By the quick form, too. In float32 the bound proves the list, so that no exhaustive search hides the product."""
    product = "sums[i][j] = fmaf(q[i], x[j], sums[i][j]);"
    rounded = (
        "{ const auto cut = [](float number) { unsigned pattern = __float_as_uint(number); "
        f"pattern += (1u << {24 - bits} >> 1) - ({24 - bits} > 0) + ((pattern >> {24 - bits}) & ({24 - bits} > 0)); "
        f"return __uint_as_float(pattern >> {24 - bits} << {24 - bits}); }}; "
        "sums[i][j] = fmaf(cut(q[i]), cut(x[j]), sums[i][j]); }"
    )
    (case,) = (case for case in selftest_cases.quick_cases() if "TF32" in case.name)
    folder = planted(tmp_path, "dense_product.h", product, rounded)
    with registered("rounding", ordinal=5, folder=folder, capability=86):  # which multiplies float32 rows in float32
        device = backends.untested("rounding")
        check = selftest._check(case, device, backends.untested("cpu"), rounds=1)
        assert check.equal == (bits == 24)
        if bits == 24:
            assert device.explain()["last_calls"]["dense_topk_f32"]["rescored_rows"] == 6 * 37


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
    calls = device.explain()["last_calls"]
    assert mma == "narrow" or calls[f"dense_topk_{suffix}"]["rescored_rows"] == 5 * 37


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
    monkeypatch.setattr("hopfuse.ops.device.run", lambda backend, quick: checks)
    found = hf.selftest(SIMT, quick=True)
    assert not found.passed
    assert {kernel.name for kernel in found.kernels} == {kernel for kernel, _, _ in runtime.launches}
    assert [kernel.name for kernel in found.kernels if not kernel.equal] == ["dice_f32"]
    assert all(kernel.launches >= 1 and kernel.seconds > 0 and kernel.checks for kernel in found.kernels)


@pytest.mark.full
@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize(
    "how",
    ["differ", "differ in slices", "fail"],
)
def test_walks_in_one_launch_are_given_up_where_they(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str) -> None:
    """They differ if a kernel takes the factors of the first pass for all, and fail if there are too many blocks."""
    plants = {
        "differ": ("ppr_f32.cu", "            if (step.omega != nullptr) step.omega += done * L;\n", ""),
        "differ in slices": ("ppr_sliced_f32.cu", "t.step.omega[done * L + lane]", "t.step.omega[lane]"),
        "fail": ("ppr_f32.cu", "step.omega += done * L;", "step.omega += done * L;"),
    }
    folder = planted(tmp_path, *plants[how])
    monkeypatch.setattr(selftest, "quick_cases", lambda: iter([selftest_cases.ppr_case("ppr plain", 3)]))
    with registered("together", ordinal=5, folder=folder) as runtime:
        if how == "fail":
            runtime.driver.fail_next("cuLaunchCooperativeKernel", 720, count=0)
        with pytest.warns(RuntimeWarning, match="walks in one launch are not used: (the device refuses|.* differ)"):
            assert selftest.difference(backends.untested("together")) is None
        assert not runtime.cooperative
        runtime.driver.clear()


# ---- In a process of its own -----------------------------------------------------------------------------------------

#: What the process does before its test, and what comes of it. ``ops`` makes a backend of a device's number.
PROCESSES = {
    "passes": ("", selftest_process.Verdict(None, True, [])),
    "noise": ("print('a library says hello')", selftest_process.Verdict(None, True, [])),
    "differs": ("simt.mma = 'narrow'", None),
    "crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", "was ended by the signal SIGSEGV"),
    "exits": ("sys.exit(3)", "ended with the exit status 3; its standard error says more"),
    "hangs": ("time.sleep(1e6)", "did not end within 20 seconds"),
    "is full": ("simt.memory = 1 << 12", None),
    "fails": ("simt.driver.fail_next('cuMemcpyDtoHAsync', 700, count=0)", None),
}


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Let the process of the self-test run a case on the emulator, after a setting."""
    tests = Path(__file__).parents[1]
    lines = [
        "import json, os, signal, sys, time",
        "given = json.load(sys.stdin)",
        "sys.path[:] = given['path']",
        f"sys.path.insert(0, {str(tests)!r})",
        "from emulated_device import SimtRuntime",
        "from hopfuse.backends import selftest, selftest_cases, selftest_process",
        "from hopfuse.backends.cuda import DeviceOps, found_device",
        "runtime = SimtRuntime(ordinal=given['ordinal'])",
        "simt = runtime.simt",
        "found_device.make_backend = lambda ordinal: DeviceOps(runtime)",
        "cases = [case for case in selftest_cases.quick_cases() if 'closer than float16' in case.name]",
        "selftest.quick_cases = lambda: iter(cases)",
        "selftest.walk_cases = lambda: cases[:1]",
        PROCESSES[request.param][0],
        "selftest_process.main(given['ordinal'])",
    ]
    monkeypatch.setattr(selftest_process, "_PROGRAM", "\n".join(lines))
    monkeypatch.setattr(selftest_process, "DEADLINE", 20.0 if request.param == "hangs" else 600.0)
    return str(request.param)


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize("process", PROCESSES, indirect=True)
def test_the_first_test_in_a_process(process: str) -> None:
    verdict, expected = selftest_process._verdict(2), PROCESSES[process][1]
    if isinstance(expected, str):
        assert verdict == selftest_process.Verdict(f"its self-test {expected}", True, [])
    elif expected is not None:
        assert verdict == expected
    else:
        assert verdict.difference is not None
        assert verdict.out_of_memory == (process == "is full")
        assert ("differ from the CPU's" in verdict.difference) == (process == "differs")


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize("cooperative", [True, False])
def test_what_comes_of_the_test_in_a_process(monkeypatch: pytest.MonkeyPatch, cooperative: bool) -> None:
    class Code:
        def compile_missing(self) -> None:
            """Everything is compiled."""

    backend: Any = backends.untested(SIMT) if simt_runtime() else None
    monkeypatch.setattr(backend, "code", Code(), raising=False)
    verdict = selftest_process.Verdict("it is another device", cooperative, [] if cooperative else ["walks differ"])
    monkeypatch.setattr(selftest_process, "_verdict", lambda ordinal: verdict)
    monkeypatch.setattr(backend.runtime, "cooperative", True)
    if cooperative:
        assert selftest_process.difference_in_process(backend) == "it is another device"
    else:
        with pytest.warns(RuntimeWarning, match="walks differ"):
            assert selftest_process.difference_in_process(backend) == "it is another device"
    assert backend.runtime.cooperative == cooperative
    monkeypatch.setattr(selftest_process, "_verdict", lambda ordinal: verdict._replace(out_of_memory=True))
    with refused(DeviceMemoryError, "memory"):
        selftest_process.difference_in_process(backend)


@pytest.mark.emulator
@pytest.mark.skipif(without is not None, reason=str(without))
@pytest.mark.parametrize("why", ["exclusive", "frozen", "embedded"])
def test_the_first_test_in_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str) -> None:
    class Code:
        def compile_missing(self) -> None:
            """Everything is compiled."""

    runtime = SimtRuntime(ordinal=3, compute_mode=3 if why == "exclusive" else 0)
    backend: Any = DeviceOps(runtime)
    runtime.simt.compute_mode = 0
    monkeypatch.setattr(backend, "code", Code(), raising=False)
    monkeypatch.setattr(found_device, "make_backend", lambda ordinal: backend)
    cases = [case for case in selftest_cases.quick_cases() if "closer than float16" in case.name]
    monkeypatch.setattr(selftest, "quick_cases", lambda: iter(cases))
    monkeypatch.setattr(selftest, "walk_cases", lambda: cases[:1])
    monkeypatch.setattr(selftest_process, "_PROGRAM", f"open({str(tmp_path / 'started')!r}, 'w')")
    if why == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    if why == "embedded":
        monkeypatch.setattr(sys, "executable", "")
    assert selftest_process.difference_in_process(backend) is None
    assert not (tmp_path / "started").exists()


def test_every_call_method_calibration_and_rule_has_a_case() -> None:
    """Those of the quick form run every operation but the seeds'."""
    for quick in (False, True):
        cases = selftest_cases.quick_cases() if quick else selftest_cases.every_case()
        ran = Ran()
        for case in cases:
            case.run(ran)
        assert CALLS - {type(call) for call in ran.calls} == (SEED_CALLS if quick else set())
        if not quick:
            assert {call.method for call in ran.calls if type(call) is FuseCall} == set(_native.fusion_methods())
            calibrated = [call for call in ran.calls if type(call) is CalibrateCall]
            assert {call.method for call in calibrated} == set(_native.calibrations())
            assert {call.ties for call in calibrated if call.method == "pit"} == set(_native.ties())


#: The classes of all calls.
CALLS = {kind for file in calls.modules() for kind in vars(file).values() if hasattr(kind, "run_on_device")}
SEED_CALLS = {PassageSeedCall, EntitySeedCall, CoverCall, BoostCall}


class Ran:
    """A backend of the host that keeps its calls."""

    unusable = device = None

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def explain(self) -> dict[str, Any]:
        return {}

    def run(self, call: Any, /) -> Any:
        self.calls.append(call)
        return call.run_on_host()


@pytest.mark.gpu
def test_a_gpu_has_the_cpus_bits() -> None:
    reason = missing(CUDA)
    if reason is not None:
        pytest.skip(reason)
    assert [check for check in hf.selftest(CUDA).checks if not check.equal] == []
