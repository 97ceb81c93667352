"""The package's own way from kernel sources to machine code: which file, which compiler, what is kept on disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import hopfuse
import nvrtc
import pytest
from audit import entries
from cubin import read_resources
from hopfuse.backends.cuda.kernel_cache import KernelCache, cache_folder
from hopfuse.backends.cuda.kernel_code import KernelCode, kernel_names
from hopfuse.backends.cuda.kernel_sources import OPTIONS, KernelSources, find_sources
from hopfuse.errors import BackendError

KERNELS = nvrtc.ROOT / "kernels"


class Counting:
    """A compiler that answers at once; its code is PTX with the names of two kernels."""

    def __init__(self, version: str = "13.2", known: Sequence[int] = (75, 90, 120)) -> None:
        self._version, self._known = version, known
        self.calls: list[tuple[str, str]] = []

    def version(self) -> str:
        return self._version

    def architectures(self) -> Sequence[int]:
        return self._known

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        assert set(OPTIONS) <= set(options)
        self.calls.append((unit.name, target))
        return f".visible .entry {unit.stem}_one(\n.visible .entry {unit.stem}_two(".encode()


class FromWheel(Counting):
    """The tests' NVRTC behind the package's interface."""

    def __init__(self, found: nvrtc.Nvrtc) -> None:
        super().__init__(found.version, found.architectures())
        self.found = found

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        code, log = self.found.compile(unit, int(target.partition("_")[2]))
        assert not log
        return code.cubin


@pytest.fixture
def sources(tmp_path: Path) -> KernelSources:
    """A copy of the kernels that a test may change."""
    for folder in ("cuda", "include"):
        shutil.copytree(KERNELS / folder, tmp_path / "kernels" / folder)
    return again(tmp_path)


def again(tmp_path: Path) -> KernelSources:
    """The same files, read anew."""
    folder = tmp_path / "kernels"
    return KernelSources(folder / "cuda", folder / "include", folder / "fatbin")


def code(sources: KernelSources, cache: Path, compiler: Counting | None = None, capability: int = 90) -> KernelCode:
    return KernelCode(sources, compiler or Counting(), capability, KernelCache(cache))


# ---- Sources ---------------------------------------------------------------------------------------------------


def test_the_package_finds_the_checkouts_kernels_before_installed_ones() -> None:
    found = find_sources()
    assert found.cuda == KERNELS / "cuda"
    assert list(found.units) == nvrtc.SOURCES
    assert {path.name for path in found.headers} >= {"topk_keys.h", "ppr.h", "boltzmann.h"}


def test_an_installed_package_finds_its_own(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "hopfuse"
    shutil.copytree(KERNELS / "cuda", package / "kernels" / "cuda")
    (package / "kernels" / "fatbin").mkdir()
    found = find_sources(package)
    assert (found.cuda, found.fatbin) == (package / "kernels" / "cuda", package / "kernels" / "fatbin")


def test_a_package_without_kernels_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopfuse, "__path__", [])
    with pytest.raises(BackendError, match=f"searched {tmp_path}.*reinstall hopfuse"):
        find_sources(tmp_path / "hopfuse")


def test_the_build_computes_the_packages_hash(tmp_path: Path, sources: KernelSources) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    manifest = sources.fatbin / "manifest.json"
    script = KERNELS / "cuda" / "manifest.cmake"
    folder = sources.cuda.parent
    subprocess.run([cmake, f"-DKERNELS={folder}", f"-DMANIFEST={manifest}", "-P", script], check=True)
    assert json.loads(manifest.read_text()) == {"sources": sources.hash}
    assert again(tmp_path).has_fatbins
    (sources.include / "hopfuse" / "ppr.h").write_text("// other")
    assert not again(tmp_path).has_fatbins


def test_the_build_takes_the_packages_flags() -> None:
    text = (nvrtc.ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert all(option.removeprefix("--") in text for option in OPTIONS)
    assert tuple(nvrtc.OPTIONS) == OPTIONS
    assert f"foreach(arch {' '.join(map(str, nvrtc.ARCHITECTURES))})" in text


def test_the_likeliest_file_has_the_kernel(sources: KernelSources, compiler: nvrtc.Nvrtc) -> None:
    """So that a first launch compiles one file. NVRTC says what is in each."""
    compiler.build_all(nvrtc.SOURCES, [90])
    for unit in nvrtc.SOURCES:
        for kernel in entries(compiler.build(unit, 90).ptx):
            assert sources.likely_units(kernel)[0].name == unit.name, kernel


# ---- Code ------------------------------------------------------------------------------------------------------


def test_all_that_is_missing_is_compiled_by_threads_at_once(
    sources: KernelSources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two are under way at once: each waits for the other. One that does not compile is an error of its own."""
    monkeypatch.setenv("HOPFUSE_NUM_THREADS", "2")
    both, wrong = threading.Barrier(2), sources.units[3]

    class Waiting(Counting):
        def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
            both.wait()
            if unit == wrong:
                raise BackendError("failed", None, "{unit} is wrong", unit=unit.name)
            return super().compile(unit, target, options)

    for unit in sources.units[4:]:
        unit.unlink()
    compiler = Waiting()
    made = code(again(tmp_path), tmp_path / "cache", compiler)
    made.compile_missing()
    assert len(compiler.calls) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert made.compiled(sources.units[0]).origin == "compiled by NVRTC 13.2"
    both = threading.Barrier(1)
    with pytest.raises(BackendError, match="is wrong"):
        made.compiled(wrong)
    read = code(again(tmp_path), tmp_path / "cache", Counting())
    assert all(read.compiled(unit).origin.startswith("cache") for unit in sources.units[:3])


def test_code_that_cannot_be_cached_is_compiled_once_in_a_process(sources: KernelSources, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    compiler = Counting()
    made = code(sources, tmp_path / "file" / "cache", compiler)
    for _ in range(2):
        made.compile_missing()
        assert "not cached: " in made.compiled(sources.units[0]).origin
    assert len(compiler.calls) == len(sources.units)


def test_compiled_code_is_read_from_the_disk(sources: KernelSources, tmp_path: Path) -> None:
    unit, first, second = sources.units[0], Counting(), Counting()
    made = code(sources, tmp_path / "cache", first).compiled(unit)
    read = code(sources, tmp_path / "cache", second).compiled(unit)
    assert (len(first.calls), second.calls) == (1, [])
    assert (read.image, read.kernels) == (made.image, made.kernels)
    assert made.origin == "compiled by NVRTC 13.2"
    assert read.origin.startswith(f"cache {tmp_path / 'cache'}")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [Path(read.origin.split()[-1]).name]


@pytest.mark.parametrize("what", ["header", "source", "compiler", "architecture"])
def test_a_change_compiles_again(sources: KernelSources, tmp_path: Path, what: str) -> None:
    unit = sources.units[0]
    code(sources, tmp_path / "cache").compiled(unit)
    compiler, capability = Counting("13.3" if what == "compiler" else "13.2"), 75 if what == "architecture" else 90
    if what in ("header", "source"):
        changed = sources.include / "hopfuse" / "scalar.h" if what == "header" else unit
        changed.write_text(changed.read_text(encoding="utf-8") + "\n// changed", encoding="utf-8")
    made = code(again(tmp_path), tmp_path / "cache", compiler, capability).compiled(unit)
    assert len(compiler.calls) == 1
    assert made.origin.startswith("compiled")


@pytest.mark.parametrize("damage", [b"", b"hopfuse 1 ", b"\x7fELF", "truncated", "a bit"])
def test_a_damaged_entry_is_compiled_again(sources: KernelSources, tmp_path: Path, damage: bytes | str) -> None:
    unit, compiler = sources.units[0], Counting()
    made = code(sources, tmp_path / "cache").compiled(unit)
    (entry,) = (tmp_path / "cache").iterdir()
    whole = entry.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    entry.write_bytes({"truncated": whole[:-5], "a bit": flipped}.get(str(damage), b"") or bytes(damage, "ascii")
                      if isinstance(damage, str) else damage)  # fmt: skip
    again_made = code(sources, tmp_path / "cache", compiler).compiled(unit)
    assert len(compiler.calls) == 1
    assert again_made == made
    assert entry.read_bytes() == whole


def test_an_unwritable_folder_is_not_an_error(sources: KernelSources, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    found = code(sources, tmp_path / "file" / "cache")
    made = found.compiled(sources.units[0])
    assert made.kernels == {f"{sources.units[0].stem}_one", f"{sources.units[0].stem}_two"}
    assert "not cached" in made.origin
    assert "cannot be written" in made.origin
    assert found.cache.problem is not None


def test_an_entry_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    (tmp_path / "key" / "inside").mkdir(parents=True)
    assert not cache.put("key", b"content")
    assert cache.get("key") is None
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFUSE_CUDA_CACHE", str(tmp_path / "chosen"))
    assert cache_folder("1.2") == tmp_path / "chosen" / "1.2"
    monkeypatch.delenv("HOPFUSE_CUDA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder("1.2") == tmp_path / "xdg" / "hopfuse" / "kernels" / "1.2"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("1.2") == tmp_path / ".cache" / "hopfuse" / "kernels" / "1.2"


@pytest.mark.parametrize(
    ("capability", "target"),
    [(75, "sm_75"), (120, "sm_120"), (121, "compute_120"), (100, "compute_90"), (150, "compute_120")],
)
def test_a_device_that_the_compiler_does_not_know_gets_ptx(
    sources: KernelSources, tmp_path: Path, capability: int, target: str
) -> None:
    assert code(sources, tmp_path, capability=capability).target() == target


def test_a_device_that_is_older_than_the_compiler_is_an_error(sources: KernelSources, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"7\.5 and later; the device has 7\.0.*cuda12"):
        code(sources, tmp_path, capability=70).target()


def test_a_fatbin_of_these_very_sources_is_preferred(sources: KernelSources, tmp_path: Path) -> None:
    unit = sources.units[0]
    assert code(sources, tmp_path).prebuilt(unit) is None
    sources.fatbin.mkdir()
    (sources.fatbin / f"{unit.stem}.fatbin").write_bytes(b"\x50\xed\x55\xba .visible .entry some_kernel(")
    for text, is_taken in (('{"sources": "other"}', False), ("[", False), (f'{{"sources": "{sources.hash}"}}', True)):
        (sources.fatbin / "manifest.json").write_text(text)
        found = code(again(tmp_path), tmp_path).prebuilt(unit)
        assert (found is not None) == is_taken
    assert found is not None
    assert found.kernels == {"some_kernel"}
    assert found.origin == f"fatbin {sources.fatbin / unit.stem}.fatbin"
    assert code(again(tmp_path), tmp_path).prebuilt(sources.units[1]) is None


def test_the_names_in_a_cubin_are_the_kernels(compiler: nvrtc.Nvrtc, sources: KernelSources, tmp_path: Path) -> None:
    unit = nvrtc.SOURCES[-1]
    made = code(sources, tmp_path / "cache", FromWheel(compiler), 90).compiled(unit)
    assert made.kernels == set(read_resources(made.image)) == set(entries(compiler.build(unit, 90).ptx))


def test_the_names_in_a_fatbin_of_nvcc_are_the_kernels(nvcc: str, compiler: nvrtc.Nvrtc, tmp_path: Path) -> None:
    unit, fatbin = nvrtc.SOURCES[-1], tmp_path / "fatbin"
    flags = ["-std=c++17", "--fmad=false", "--no-compress", f"-I{nvrtc.INCLUDE}"]
    targets = ["-gencode", "arch=compute_90,code=[sm_90,compute_90]"]
    subprocess.run([nvcc, *flags, *targets, "-fatbin", "-o", fatbin, unit], check=True)
    assert kernel_names(fatbin.read_bytes()) == set(entries(compiler.build(unit, 90).ptx))
