"""The package's own way from kernel sources to machine code: which sources, which compiler, what is kept on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hopfuse
import nvrtc
import pytest
from audit import entries
from cubin import kernel_names
from hopfuse.backends.cuda.kernel_cache import KernelCache, cache_folder
from hopfuse.backends.cuda.kernel_code import KernelCode
from hopfuse.backends.cuda.kernel_compiler import FoundNvrtc
from hopfuse.backends.cuda.kernel_sources import OPTIONS, KernelSources, find_sources
from hopfuse.backends.cuda.nvrtc import library_paths
from hopfuse.errors import BackendError
from refusals import refused

KERNELS = nvrtc.ROOT / "kernels"
#: CUDA 13.2, as drivers state it.
DRIVER = 13020


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


@pytest.fixture
def sources(tmp_path: Path) -> KernelSources:
    """A copy of the kernels that a test may change."""
    for folder in ("cuda", "include"):
        shutil.copytree(KERNELS / folder, tmp_path / "kernels" / folder)
    return again(tmp_path)


def again(tmp_path: Path) -> KernelSources:
    """The same files, read anew."""
    folder = tmp_path / "kernels"
    return KernelSources(folder / "cuda", folder / "include", folder / "images")


def code(sources: KernelSources, cache: Path, compiler: Counting | None = None, capability: int = 90) -> KernelCode:
    return KernelCode(sources, compiler or Counting(), capability, KernelCache(cache), DRIVER)


# ---- Sources ---------------------------------------------------------------------------------------------------


def test_the_package_finds_the_checkouts_kernels_before_installed_ones() -> None:
    found = find_sources()
    assert (found.cuda, found.include) == (KERNELS / "cuda", KERNELS / "include")
    assert list(found.units) == nvrtc.SOURCES


def test_an_installed_package_finds_its_own(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "hopfuse"
    shutil.copytree(KERNELS / "cuda", package / "kernels" / "cuda")
    (package / "kernels" / "images").mkdir()
    found = find_sources(package)
    assert (found.cuda, found.images) == (package / "kernels" / "cuda", package / "kernels" / "images")


def test_a_package_without_kernels_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopfuse, "__path__", [])
    with refused(BackendError, "unavailable") as caught:
        find_sources(tmp_path / "hopfuse")
    assert str(tmp_path) in caught.value.values["names"]


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
    assert read.image == made.image
    assert made.origin == "compiled by NVRTC 13.2"
    assert read.origin.startswith(f"cache {tmp_path / 'cache'}")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [Path(read.origin.split()[-1]).name]


@pytest.mark.parametrize("what", ["header", "new header", "source", "compiler", "architecture"])
def test_a_change_compiles_again(sources: KernelSources, tmp_path: Path, what: str) -> None:
    unit = sources.units[0]
    code(sources, tmp_path / "cache").compiled(unit)
    compiler, capability = Counting("13.3" if what == "compiler" else "13.2"), 75 if what == "architecture" else 90
    changed = {"header": sources.include / "hopfuse" / "scalar.h", "source": unit}.get(what)
    if changed is not None:
        changed.write_text(changed.read_text(encoding="utf-8") + "\n// changed", encoding="utf-8")
    if what == "new header":
        (sources.cuda / "inner").mkdir()
        (sources.cuda / "inner" / "new.h").touch()
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
    assert kernel_names(made.image) == {f"{sources.units[0].stem}_one", f"{sources.units[0].stem}_two"}
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
    [(75, "sm_75"), (120, "sm_120"), (121, "sm_120"), (100, "compute_90"), (150, "compute_120")],
)
def test_a_device_that_the_compiler_does_not_know_gets_ptx(
    sources: KernelSources, tmp_path: Path, capability: int, target: str
) -> None:
    assert code(sources, tmp_path, capability=capability).target() == target


def test_a_device_that_is_older_than_the_compiler_is_an_error(sources: KernelSources, tmp_path: Path) -> None:
    with refused(BackendError, "unavailable", capability=7.0):
        code(sources, tmp_path, capability=70).target()
    made = code(sources, tmp_path, capability=70)
    made.compile_missing()  # leaves the error to the next
    with refused(BackendError, "unavailable", capability=7.0):
        made.compiled(sources.units[0])


# ---- The compiler ----------------------------------------------------------------------------------------------


@pytest.fixture
def found(compiler: nvrtc.Nvrtc, monkeypatch: pytest.MonkeyPatch) -> FoundNvrtc:
    """The package's own compiler, with the tests' NVRTC, for a device of compute capability 9.0."""
    monkeypatch.setenv("HOPFUSE_NVRTC", str(compiler.path))
    return FoundNvrtc(90, DRIVER)


def test_the_named_nvrtc_compiles(found: FoundNvrtc, sources: KernelSources, tmp_path: Path) -> None:
    unit = next(unit for unit in sources.units if unit.stem == "dice_f32")
    made = KernelCode(sources, found, 90, KernelCache(tmp_path / "cache"), DRIVER).compiled(unit)
    assert made.origin == f"compiled by NVRTC {found.version()}"
    assert kernel_names(made.image) == {"dice_f32"}
    future = found.compile(unit, "compute_120", sources.compiler_options(unit))
    assert b".target sm_120" in future
    assert set(entries(future)) == kernel_names(made.image)


def test_a_compilation_error_has_the_compilers_message(found: FoundNvrtc, tmp_path: Path) -> None:
    unit = tmp_path / "wrong.cu"
    unit.write_text("this is no CUDA")
    with refused(BackendError, "failed") as caught:
        found.compile(unit, "sm_90", OPTIONS)
    assert "wrong.cu(1): error" in str(caught.value.values["error"])


def test_a_driver_that_takes_no_code_of_the_compiler(found: FoundNvrtc) -> None:
    """As NVRTC 13 beside a driver of CUDA 12; here the driver is older than any that is supported."""
    with refused(BackendError, "unavailable", capability=9.0, driver="11.8") as caught:
        FoundNvrtc(90, 11080).version()
    assert found.version() in caught.value.values["tried"]
    with refused(BackendError, "unavailable", capability=5.0):
        KernelCode(find_sources(), FoundNvrtc(50, 11080), 50, KernelCache(Path()), 11080).target()


def test_the_driver_decides_between_two_releases(
    compiler: nvrtc.Nvrtc, cuda13_compiler: nvrtc.Nvrtc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both wheels are installed. Release 13 compiles neither for compute capability 7.0 nor for drivers of CUDA 12."""
    monkeypatch.delenv("HOPFUSE_NVRTC", raising=False)
    for capability, driver, expected in (
        (90, 13020, cuda13_compiler), (90, 12000, compiler), (75, 12080, compiler), (70, 13020, compiler)
    ):  # fmt: skip
        assert FoundNvrtc(capability, driver).version() == expected.version


def test_an_nvrtc_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (None, b"", b"text"):
        library = tmp_path / "libnvrtc.so.13"
        if content is not None:
            library.write_bytes(content)
        monkeypatch.setenv("HOPFUSE_NVRTC", str(library))
        with refused(BackendError, "unavailable") as caught:
            FoundNvrtc(90, DRIVER).architectures()
        assert caught.value.values["tried"].startswith(f"{library} (")


def test_a_library_that_is_not_nvrtc_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFUSE_NVRTC", "libc.so.6")
    with refused(BackendError, "unavailable"):
        FoundNvrtc(90, DRIVER).version()


def test_where_nvrtc_is_looked_for(tmp_path: Path) -> None:
    """NVIDIA's wheels, the newer release first; a toolkit, the newer release first; the loader."""
    wheels, home = tmp_path / "site-packages", tmp_path / "toolkit"
    places = ["nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib"]
    for folder in (*(wheels / place for place in places), home / "lib64", home / "targets" / "x86_64-linux" / "lib"):
        folder.mkdir(parents=True)
        for name in ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.12.9.86", "libnvrtc.alt.so.12", "libnvrtc.so"):
            (folder / name).touch()
        (folder / "libnvrtc-builtins.so.12.9").touch()
    found = list(library_paths({"CUDA_HOME": str(home)}, ["", str(tmp_path / "none"), str(wheels)]))
    groups = [wheels / place for place in reversed(places)], [home / "lib64", home / "targets/x86_64-linux/lib"]
    rows = [[str(folder / f"libnvrtc.so.{release}") for release in (13, 12) for folder in group] for group in groups]
    assert [path for path in found if path in (*rows[0], *rows[1])] == [*rows[0], *rows[1]]
    assert found[-2:] == ["libnvrtc.so.13", "libnvrtc.so.12"]
    assert list(library_paths({"HOPFUSE_NVRTC": "one", "CUDA_HOME": str(home)}, [str(wheels)])) == ["one"]


COMPILE = """
import hashlib
import sys
from pathlib import Path
from hopfuse.backends.cuda.kernel_cache import KernelCache
from hopfuse.backends.cuda.kernel_code import KernelCode
from hopfuse.backends.cuda.kernel_compiler import FoundNvrtc
from hopfuse.backends.cuda.kernel_sources import KernelSources

kernels, cache = Path(sys.argv[1]), KernelCache(Path(sys.argv[2]))
sources = KernelSources(kernels / "cuda", kernels / "include", kernels / "images")
code = KernelCode(sources, FoundNvrtc(90, 13020), 90, cache, 13020)
print("ready", flush=True)
sys.stdin.read(1)
for unit in sources.units:
    made = code.compiled(unit)
    print(made.origin.split()[0], len(made.image), hashlib.sha256(made.image).hexdigest())
"""


def test_processes_that_compile_at_once_leave_whole_entries(
    found: FoundNvrtc, sources: KernelSources, tmp_path: Path
) -> None:
    for unit in sources.units:
        if unit.stem not in ("dice_f32", "boost_weights_f32", "project_f32"):
            unit.unlink()
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", COMPILE, str(sources.cuda.parent), str(cache)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    said = [process.communicate("x")[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len({tuple(line.split(" ", 1)[1] for line in lines) for lines in said}) == 1
    read = KernelCode(again(tmp_path), Counting(found.version(), (90,)), 90, KernelCache(cache), DRIVER)
    assert all(read.compiled(unit).origin.startswith("cache ") for unit in again(tmp_path).units)
    assert len(list(cache.iterdir())) == 3


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may write everywhere, so the effective user is another one here."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_only_be_read(sources: KernelSources) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # TMPDIR may be closed to the other user
        folder = Path(name)
        made = code(sources, folder).compiled(sources.units[0])
        (entry,) = folder.iterdir()
        kept = entry.read_bytes()
        folder.chmod(0o555)
        entry.chmod(0o444)
        with without_rights():
            cache = KernelCache(folder)
            assert cache.get(entry.name) == made.image
            assert not cache.put(entry.name, b"other")
            assert not cache.put("more", b"other")
        assert str(folder) in str(cache.problem)
        folder.chmod(0o755)
        assert [path.name for path in folder.iterdir()] == [entry.name]
        assert entry.read_bytes() == kept
