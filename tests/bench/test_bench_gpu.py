"""Rows of hopfuse on a device, and peers on a GPU: correct on the emulator, else skipped with a reason."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import hopfuse as hf
import pytest
from hopfuse.errors import BackendError
from variants import CUDA, SIMT, missing, simt_runtime

from bench import worker
from bench.cases import CASES
from bench.errors import UnavailableError
from bench.peers import PEERS
from bench.report import render
from bench.runner import pairs
from bench.settings import Settings
from bench.table import show

QUICK = Settings(quick=True, repeats=1, threads=1)
ON_GPU = [(case, peer) for case, about in CASES.items() for peer in about.gpu_peers]
DEVICE = {
    "device": "NVIDIA H100", "compute_capability": "9.0", "driver": "CUDA 13.0", "runtime": "CUDA 13.2", "cupy": "14.2"
}  # fmt: skip


@pytest.fixture(scope="module")
def on_device() -> list[dict]:
    """Return a row of hopfuse on the emulator with a GPU's name; its times have no meaning."""
    reason = missing(SIMT)
    if reason is not None:
        pytest.skip(reason)
    simt_runtime()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOPFUSE_BACKEND", SIMT)
        return list(worker.rows("fusion", "numpy-fusion", QUICK))


def bench_on_gpu(root: Path, file: Path, *cases: str) -> tuple[list[dict], str]:
    """Return rows and standard output of ``python -m bench --backend cuda``."""
    arguments = ("--backend", "cuda", "--quick", "--repeats", "1", "--case", *cases, "--out", str(file))
    done = subprocess.run(
        (sys.executable, "-m", "bench", *arguments), cwd=root, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in file.read_text().splitlines()], done.stdout


def test_a_kernel_that_fails_is_an_error_of_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    error = BackendError(
        "memory", None, "the device has {free} bytes free and {needed} were asked for", free=1, needed=2
    )

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(hf, "fuse", fail)
    (row,) = worker.rows("fusion", "numpy-fusion", QUICK)
    assert (row["status"], row["reason"]) == ("error", error.sentence())


def why_absent(peer: str) -> str | None:
    """Return why a peer cannot be used here, or None."""
    try:
        PEERS[peer].require()
    except (ImportError, UnavailableError) as reason:
        return str(reason)
    return None


@pytest.mark.parametrize(("case", "peer"), ON_GPU)
def test_a_peer_without_its_library_or_a_device_is_skipped(case: str, peer: str) -> None:
    expected = why_absent(peer)
    if expected is None:
        pytest.skip(f"{peer} can be used here")
    assert list(worker.rows(case, peer, QUICK)) == [{"case": case, "peer": peer, "status": "skip", "reason": expected}]
    assert PEERS[peer].modules[0].split(".")[0] in expected


def test_peers_on_a_gpu_are_measured_with_every_backend_but_the_cpu() -> None:
    names = list(CASES)
    assert set(pairs(names, "cuda")) == set(pairs(names, "auto")) == set(pairs(names)) | set(ON_GPU)
    assert {peer for _, peer in ON_GPU} == {"faiss-gpu", "torch-cuda", "cuvs", "cugraph", "cupy-spmm"}
    assert pairs(["ppr-hotpotqa", "ppr-1e8"], alone=True) == [("ppr-hotpotqa", None), ("ppr-1e8", None)]


@pytest.mark.full
@pytest.mark.skipif(missing(CUDA) is None, reason="a GPU is here")
def test_a_backend_that_cannot_be_used_is_a_skip_with_its_reason(root: Path, tmp_path: Path) -> None:
    asked = "import hopfuse as hf; print(hf.backend_info()['backends']['cuda']['error'])"
    reason = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    rows, printed = bench_on_gpu(root, tmp_path / "rows.jsonl", "fusion", "phasegraph-hotpotqa")
    assert len(rows) == 3
    assert {(row["status"], row["reason"]) for row in rows} == {("skip", reason)}
    assert " ms" not in printed
    assert "µs" not in printed


@pytest.mark.gpu
@pytest.mark.skipif(missing(CUDA) is not None, reason=str(missing(CUDA)))
def test_every_case_is_measured_on_a_gpu(root: Path, tmp_path: Path) -> None:
    rows = bench_on_gpu(root, tmp_path / "rows.jsonl", *CASES)[0]
    for row in rows:
        if row["status"] == "skip":
            assert row["peer"] is not None, row
            assert row["reason"] == why_absent(row["peer"]), row
            continue
        assert row["status"] == "ok", row
        assert row["backend"] == "cuda"
        assert set(DEVICE) <= set(row["device"])


def test_a_row_of_a_device_names_it(on_device: list[dict]) -> None:
    (row,) = on_device
    assert row["status"] == "ok"
    assert row["backend"] == SIMT
    assert row["device"] == {"device": "SIMT emulator", "compute_capability": "9.0", "driver": "CUDA 13.0"}
    assert row["kernels"] == ["fuse_f32_simt"]


@pytest.mark.full
@pytest.mark.emulator
@pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT)))
@pytest.mark.parametrize("case", [case for case in CASES if case != "fusion"])
def test_every_case_passes_its_gate_on_a_device(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simt_runtime()
    monkeypatch.setenv("HOPFUSE_BACKEND", SIMT)
    for row in worker.rows(case, None, QUICK):
        assert row["status"] == "ok", row
        assert all(kernel.endswith("_simt") for kernel in row["kernels"])


def test_pages_and_tables_show_a_gpu_where_rows_have_one(
    on_device: list[dict], capsys: pytest.CaptureFixture[str]
) -> None:
    on_gpu = copy.deepcopy(on_device[0]) | {"backend": "cuda", "device": DEVICE}
    on_cpu = copy.deepcopy(on_device[0]) | {"backend": "cpu", "device": None}
    page = render([on_cpu, on_gpu], "a.jsonl", "b.jsonl")
    assert "`python -m bench --report bench/results/a.jsonl bench/results/b.jsonl`" in page
    assert "\n## On NVIDIA H100, beside " in page
    assert page.count("| NumPy | - |") == 2
    assert "GPU: NVIDIA H100, compute capability 9.0, driver for CUDA 13.0, runtime CUDA 13.2, CuPy 14.2." in page
    assert "measured on a GPU" not in page
    without = render([on_cpu], "a.jsonl")
    assert "Nothing on this page was measured on a GPU" in without
    assert "GPU:" not in without
    show([on_cpu, on_gpu])
    assert "NVIDIA H100" in capsys.readouterr().out


def test_rows_from_before_there_were_devices_are_the_cpus(on_device: list[dict]) -> None:
    old = {key: value for key, value in on_device[0].items() if key not in ("backend", "device")}
    assert render([old], "a.jsonl") == render([old | {"backend": "cpu", "device": None}], "a.jsonl")
