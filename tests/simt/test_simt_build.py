"""Compiling .cu files: what is found in them, what is refused, and what is kept."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hopfuse_simt import SimtBuildError, SimtModule
from hopfuse_simt.build import REFUSED, cache_folder, compiler
from tiers import FULL

FOLDER = Path(__file__).parent / "cuda"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def kernel(body: str, name: str = "one") -> str:
    return f'extern "C" __global__ void {name}(float* out) {{ {body} }}\n'


def test_kernels_made_by_macros_are_found() -> None:
    module = SimtModule(FOLDER / "launches.cu")
    assert {"scaled_by_2", "scaled_by_3", "bounded", "bounded_before"} <= set(module.kernels)
    out = np.zeros(4, dtype=np.int32)
    module.launch("scaled_by_3", 1, 4, 0, [out])
    assert out.tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("name", ["__activemask", "__threadfence", "expf", "log", "rsqrtf", "printf", "clock64"])
def test_code_that_differs_on_a_device_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, "refused.cu", "// one line\n" + kernel(f"out[0] = {name}(out[1]);"))
    with pytest.raises(SimtBuildError, match=rf"refused\.cu:2: {name} is refused: ") as error:
        SimtModule(path)
    assert REFUSED[name] in str(error.value)


def test_refused_names_in_comments_and_members_are_fine(tmp_path: Path) -> None:
    text = "// expf(x), __activemask()\nstruct Table { float* log; };\n" + kernel("Table t{out}; t.log[0] = 1.0f;")
    out = np.zeros(1, dtype=np.float32)
    SimtModule(write(tmp_path, "comments.cu", text)).launch("one", 1, 1, 0, [out])
    assert out[0] == 1.0


@pytest.mark.parametrize(
    "body",
    [
        "out[0] = __hadd(1, 2);",  # not in the subset
        "atomicAdd(reinterpret_cast<long long*>(out), 1ll);",  # no such atomic on the device
        "out[0] = __shfl_sync(~0u, static_cast<short>(1), 0);",
        "threadIdx.x = 0;",
    ],
)
def test_invalid_cuda_does_not_compile(tmp_path: Path, body: str) -> None:
    with pytest.raises(SimtBuildError, match=r"wrong\.cu does not compile"):
        SimtModule(write(tmp_path, "wrong.cu", kernel(body)))


def test_every_kernel_is_extern_c(tmp_path: Path) -> None:
    with pytest.raises(SimtBuildError, match="has no kernel"):
        SimtModule(write(tmp_path, "none.cu", "__device__ int f() { return 1; }\n"))
    mixed = kernel("out[0] = 1;") + "__global__ void other(float* out) { out[0] = 2; }\n"
    with pytest.raises(SimtBuildError, match="every __global__ function is written"):
        SimtModule(write(tmp_path, "mixed.cu", mixed))


def test_a_name_is_defined_in_one_file_only(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, kernel("out[0] = 1;")) for name in ("a.cu", "b.cu")]
    with pytest.raises(SimtBuildError, match=r"kernel one is in .*a\.cu and in .*b\.cu"):
        SimtModule(paths)


def test_files_do_not_share_their_functions(tmp_path: Path) -> None:
    """Two files may have a device function of the same name, as when each is compiled for a device."""
    paths = [
        write(tmp_path, f"{name}.cu", f"__device__ float f() {{ return {value}; }}\n" + kernel("out[0] = f();", name))
        for name, value in (("a", 1), ("b", 2))
    ]
    module = SimtModule(paths)
    out = np.zeros(2, dtype=np.float32)
    module.launch("a", 1, 1, 0, [out[:1]])
    module.launch("b", 1, 1, 0, [out[1:]])
    assert out.tolist() == [1, 2]


@pytest.mark.full
def test_a_compiled_file_is_kept_until_it_or_a_header_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFUSE_SIMT_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    header = write(tmp_path, "value.h", "#define VALUE 1.0f\n")
    source = write(tmp_path, "kept.cu", '#include "value.h"\n' + kernel("out[0] = VALUE;"))

    def answer() -> tuple[Path, float]:
        module, out = SimtModule(source), np.zeros(1, dtype=np.float32)
        module.launch("one", 1, 1, 0, [out])
        return module.units[0].artifact, float(out[0])

    first = answer()
    written = first[0].stat().st_mtime_ns
    assert answer() == first
    assert first[0].stat().st_mtime_ns == written
    header.write_text("#define VALUE 2.0f\n", encoding="utf-8")
    second = answer()
    assert (first[1], second[1]) == (1.0, 2.0)
    assert second[0] != first[0]
    assert {path.name.split("-")[0] for path in (tmp_path / "cache").iterdir()} == {"kept", "runtime"}


@pytest.mark.full
def test_what_several_need_at_once_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the workers of the tests do at their start."""
    log, logging = tmp_path / "log", tmp_path / "c++"
    logging.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {compiler()[0]} "$@"\n')
    logging.chmod(0o755)
    monkeypatch.setenv("HOPFUSE_SIMT_CXX", str(logging))
    monkeypatch.setenv("HOPFUSE_SIMT_CACHE", str(tmp_path / "cache"))
    with ThreadPoolExecutor(4) as pool:
        made = [*pool.map(lambda _: SimtModule(FOLDER / "saxpy.cu").units[0].artifact, range(4))]
    assert len({*made}) == 1
    compiled = [
        words[words.index("-c") + 1] for line in log.read_text().splitlines() if "-c" in (words := line.split())
    ]
    assert len(compiled) == len({Path(file).name for file in compiled}) > 4


def test_fibers_of_the_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What machines other than x86-64 run."""
    monkeypatch.setenv("HOPFUSE_SIMT_FIBERS", "ucontext")
    for build in ("plain", "asan") if FULL else ("plain",):
        with SimtModule(FOLDER / "block_reduce.cu", build) as module:
            x, sums = np.arange(1024, dtype=np.float32), np.zeros(4, dtype=np.float32)
            for order in ("forward", "reverse", "shuffle"):
                module.launch("block_reduce_f32", 4, 256, 0, [x, sums], order)
                np.testing.assert_array_equal(sums, x.reshape(4, 256).sum(axis=1))


def test_clang_compiles_the_same_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["clang++", *(f"clang++-{version}" for version in range(30, 13, -1))]
    clang = next((name for name in names if shutil.which(name)), None)
    if clang is None:
        pytest.skip("clang++ is not installed")
    monkeypatch.setenv("HOPFUSE_SIMT_CXX", clang)
    x, y = np.arange(64, dtype=np.float32), np.ones(64, dtype=np.float32)
    module = SimtModule(FOLDER / "saxpy.cu")
    module.launch("saxpy_f32", 1, 64, 0, [x, y, 2.0, 64])
    np.testing.assert_array_equal(y, 2 * x + 1)
    monkeypatch.delenv("HOPFUSE_SIMT_CXX")
    assert SimtModule(FOLDER / "saxpy.cu").units[0].artifact != module.units[0].artifact


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFUSE_SIMT_CXX", "no-such-compiler")
    with pytest.raises(SimtBuildError, match="HOPFUSE_SIMT_CXX names no-such-compiler"):
        SimtModule(FOLDER / "saxpy.cu")
