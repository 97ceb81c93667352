"""Compile .cu files with the host compiler, each to a library or program, cached under a hash of the inputs."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hopfuse_simt.errors import SimtBuildError

SIMT = Path(__file__).resolve().parents[1]
INCLUDE = SIMT.parent / "include"
DEVICE = SIMT.parent / "device"
BUILDS = ("plain", "count", "asan", "tsan")

# -ffp-contract=off: a fused multiply-add happens only where it is written. The runtime is never instrumented:
# it is the sanitizers' thread library here, and switches stacks under them.
COMMON = ["-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-omit-frame-pointer", "-U_FORTIFY_SOURCE"]
KERNEL = ["-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing"]
# -O1 compiles in half the time of -O2, and what it makes is as fast. It also leaves the sanitizers accesses that -O2
# would remove; line numbers are for their reports.
OPTIMISE = {"plain": ["-O1"], "count": ["-O1"], "asan": ["-O1", "-g1"], "tsan": ["-O1", "-g1"]}
DEFINE = {"plain": [], "count": ["-DSIMT_COUNT"], "asan": ["-DSIMT_ASAN"], "tsan": ["-DSIMT_TSAN"]}
LINK = {"plain": [], "count": [], "asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"]}
UNDEFINED = ["-fsanitize=address,undefined", "-fsanitize=float-cast-overflow", "-fno-sanitize-recover=all"]
RUNTIME = ["fiber.cpp", "mma.cpp", "scheduler.cpp"]

BITS = "other bits on the device than here: hopfuse/scalar.h has hf_exp and hf_log"
REFUSED = {
    "__activemask": "which lanes run together is chance: pass the mask, or make it with __ballot_sync",
    "__threadfence": "is_last_block of hopfuse/device.h, or the end of a kernel, orders blocks",
    "__threadfence_block": "use __syncthreads or __syncwarp",
    "__threadfence_system": "the end of a kernel is the only order between blocks",
    "__nanosleep": "nothing may depend on time",
    "clock64": "nothing may depend on time",
    "printf": "kernels do not print",
    "asm": "no inline PTX: hopfuse/device.h is the place for it",
    "rsqrt": "approximate on the device: 1 / sqrtf(x)",
    "rsqrtf": "approximate on the device: 1 / sqrtf(x)",
    **{f"{name}{suffix}": BITS for suffix in ("", "f") for name in (
        "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "sincos",
        "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "erf", "erfc", "lgamma", "tgamma", "cbrt", "hypot",
    )},
    **dict.fromkeys(("__expf", "__logf", "__powf", "__sinf", "__cosf", "__fdividef", "__frsqrt_rn"), BITS),
}  # fmt: skip

# __launch_bounds__(most threads, least blocks): the first is what counts here.
BOUNDS = r"__launch_bounds__\s*\(((?:[^(),]|\([^()]*\))*)(?:,(?:[^()]|\([^()]*\))*)?\)"


@dataclass(frozen=True)
class KernelSource:
    """A kernel's declaration: the bound of ``__launch_bounds__`` and static shared memory in bytes."""

    name: str
    launch_bounds: str
    static_shared: int


@dataclass(frozen=True)
class Unit:
    """One compiled .cu file."""

    source: Path
    build: str
    artifact: Path
    is_program: bool
    kernels: tuple[KernelSource, ...]
    capability: int = 90


def cache_folder() -> Path:
    """``HOPFUSE_SIMT_CACHE``, or build/simt in the checkout."""
    chosen = os.environ.get("HOPFUSE_SIMT_CACHE")
    return Path(chosen) if chosen else SIMT.parents[1] / "build" / "simt"


def compiler() -> tuple[str, str]:
    """Return ``HOPFUSE_SIMT_CXX``, or g++, or clang++, with the version it prints."""
    chosen = os.environ.get("HOPFUSE_SIMT_CXX")
    for name in [chosen] if chosen else ["g++", "clang++"]:
        path = shutil.which(name)
        if path is not None:
            return path, version(path)
    wanted = f"HOPFUSE_SIMT_CXX names {chosen}, which is not there" if chosen else "install g++"
    raise SimtBuildError(f"the SIMT emulator needs a C++20 compiler: {wanted}")


@functools.cache
def version(path: str) -> str:
    return subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout


def is_clang() -> bool:
    return "clang" in compiler()[1]


@functools.cache
def fma_flags() -> tuple[str, ...]:
    """Return -mfma if the processor has it: it is faster and gives the same bits as fmaf of the C library."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return ()
    return ("-mfma",) if flags is not None and "fma" in flags[1].split() else ()


def instrument(build: str) -> list[str]:
    """Return the flags that make the kernels, and only them, call the sanitizer."""
    if build == "asan":
        # Arrays in a named section get red zones only where GCC is asked for them; clang gives them anyway.
        return [*UNDEFINED, *([] if is_clang() else ["-fsanitize-sections=.simt_shared"])]
    # "count" has the calls and its own functions behind them: traffic.cpp.
    return ["-fsanitize=thread"] if build in ("tsan", "count") else []


def portable_fibers() -> list[str]:
    """With ``HOPFUSE_SIMT_FIBERS=ucontext`` use the C library's fibers, as machines other than x86-64 do."""
    return ["-DSIMT_UCONTEXT"] if os.environ.get("HOPFUSE_SIMT_FIBERS") == "ucontext" else []


def run(command: Sequence[str | Path], what: str) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SimtBuildError(f"{what}:\n{done.stderr.strip()}")
    return done.stdout


def compile_cpp(source: Path, output: Path, *flags: str | Path, what: str | None = None) -> None:
    run([compiler()[0], *COMMON, *flags, "-c", source, "-o", output], what or f"{source} does not compile")


def precompile(sources: Sequence[Path], folder: Path, flags: Sequence[str | Path]) -> list[str | Path]:
    """Compile the standard headers of several files once; return the flags by which each file has them."""
    header = folder / "standard.h"
    found = {
        name for path in sources for name in re.findall(r"^#include <\w+>$", path.read_text("utf-8"), re.MULTILINE)
    }
    header.write_text("".join(f"{name}\n" for name in sorted(found)), encoding="utf-8")
    command = [compiler()[0], *COMMON, *flags, "-x", "c++-header", header, "-o", f"{header}.gch"]
    run(command, "the standard headers do not compile")
    return ["-include", header]


def read_includes(source: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Return the file and, transitively, its includes in quotes that are in its folder or in ``folders``."""
    seen: set[Path] = set()
    pending = [source]
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            found = next((folder / name for folder in (path.parent, *folders) if (folder / name).is_file()), None)
            if found is not None:
                pending.append(found.resolve())


def digest(paths: Sequence[Path], *words: object) -> str:
    total = hashlib.sha256(repr((compiler(), platform.machine(), words)).encode())
    for name, text in sorted((path.name, path.read_bytes()) for path in paths):
        total.update(f"\0{name}\0".encode() + text)
    return total.hexdigest()[:24]


@contextlib.contextmanager
def made_once(folder: Path) -> Iterator[bool]:
    """Give whether a folder of the cache is to be made now; whoever else needs it waits meanwhile."""
    if folder.is_dir():
        yield False
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not folder.is_dir()


def runtime(build: str, cache: Path, options: tuple[str, ...]) -> Path:
    """Return the folder with the emulator's own objects, compiled for this build."""
    sources = [*RUNTIME, "runner.cpp", "shared_begin.cpp", "shared_end.cpp"]
    sources += ["traffic.cpp"] if build == "count" else []
    headers = [SIMT / name for name in ("api.h", "fiber.h", "mma.h", "runtime.h", "traffic.h")]
    flags = ["-O2", *DEFINE[build], *options]
    folder = cache / f"runtime-{build}-{digest([*(SIMT / name for name in sources), *headers], flags)}"
    with made_once(folder) as is_mine:
        if is_mine:
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                made = Path(scratch) / "runtime"
                made.mkdir()
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    for job in [
                        pool.submit(compile_cpp, SIMT / name, made / Path(name).with_suffix(".o"), *flags)
                        for name in sources
                    ]:
                        job.result()
                os.replace(made, folder)
    return folder


def build_driver() -> Path:
    """Compile the emulator as a CUDA driver's library, or use the cached one."""
    sources = sorted((SIMT / "libcuda").glob("*.cpp"))
    headers = [*(SIMT / "libcuda").glob("*.h"), SIMT / "api.h", DEVICE / "driver_types.h"]
    flags: list[str | Path] = ["-O1", "-I", SIMT, "-I", DEVICE]
    cache = cache_folder()
    folder = cache / f"libcuda-{digest([*sources, *headers], [str(flag) for flag in flags])}"
    with made_once(folder) as is_mine:
        if is_mine:
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                made = Path(scratch) / "libcuda"
                made.mkdir()
                objects = [made / source.with_suffix(".o").name for source in sources]
                flags += precompile([*sources, *headers], Path(scratch), flags)
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    for job in [
                        pool.submit(compile_cpp, source, target, *flags)
                        for source, target in zip(sources, objects, strict=True)
                    ]:
                        job.result()
                run([compiler()[0], "-shared", *objects, "-ldl", "-pthread", "-o", made / "libcuda.so.1"],
                    "the driver does not link")  # fmt: skip
                os.replace(made, folder)
    return folder / "libcuda.so.1"


def list_kernels(source: Path, flags: Sequence[str | Path]) -> list[tuple[str, str]]:
    """Return name and launch bound of each kernel of the preprocessed file; refuse names with another meaning."""
    command = [compiler()[0], *COMMON, *flags, "-DSIMT_LIST_KERNELS", "-x", "c++", "-E", source]
    own: list[str] = []
    place, line, mine = str(source), 0, True
    for text in run(command, f"{source} does not preprocess").splitlines():
        marker = re.match(r'# (\d+) "((?:[^"\\]|\\.)*)"(.*)', text)
        if marker is not None:
            line, place = int(marker[1]) - 1, marker[2]
            folder = Path(place).resolve().parent
            mine = "3" not in marker[3].split() and folder != SIMT and not place.startswith("<")
            continue
        line += 1
        if mine:
            own.append(text)
            for name in re.findall(r"(?<![\w.])(\w+)\s*\(", text):
                if name in REFUSED:
                    raise SimtBuildError(f"{place}:{line}: {name} is refused: {REFUSED[name]}")
    text = "\n".join(own)
    kernels = []
    for found in re.finditer(rf'extern\s*"C"\s+((?:{BOUNDS}|(?!__launch_bounds__)\w+|[\s*&])+)\(', text):
        head = found[1]
        if "__global__" not in head.split():
            continue
        bound = re.search(BOUNDS, head)
        kernels.append((re.sub(BOUNDS, "", head).split()[-1], bound[1].strip() if bound is not None else "1024"))
    if not kernels:
        raise SimtBuildError(f'{source} has no kernel: extern "C" __global__ void name(...)')
    if len(re.findall(r"\b__global__\b", text)) != len(kernels):
        raise SimtBuildError(f'{source}: every __global__ function is written extern "C" __global__ void name(...)')
    return kernels


def static_shared(unit: Path, names: Sequence[str]) -> dict[str, int]:
    """Return bytes of ``__shared__`` arrays by kernel; those of device functions count for every kernel of the file."""
    sizes = dict.fromkeys(names, 0)
    for line in run(["objdump", "-t", unit], f"no symbols of {unit}").splitlines():
        if ".simt_shared\t" not in line:
            continue
        size, *_, symbol = line.split("\t")[1].split()
        if re.match(r"^\.simt_shared|^\.L", symbol):
            continue
        owner = re.match(r"_ZZ(\d+)(\w+)", symbol)
        name = owner[2][: int(owner[1])] if owner is not None else ""
        for kernel in [name] if name in sizes else names:
            sizes[kernel] += int(size, 16)
    return sizes


def build_unit(source: Path, build: str, *, program: bool, include: Sequence[Path] = (), capability: int = 90) -> Unit:
    """Compile one .cu file, or use the cached result for the same source."""
    source = source.resolve()
    folders = [*map(Path, include), INCLUDE, SIMT]
    flags: list[str | Path] = [*KERNEL, *OPTIMISE[build], *fma_flags(), *DEFINE[build], "-DHOPFUSE_SIMT"]
    flags.append(f"-DHOPFUSE_CAPABILITY={capability}")
    cache, options = cache_folder(), tuple(portable_fibers())
    objects = runtime(build, cache, options)
    inputs = list(read_includes(source, folders))
    inputs += [SIMT / "cuda_host.h", SIMT / "registry.h", SIMT / "runtime.h", Path(__file__)]
    # By what the files contain: copies of the kernels, in which tests change one, share what is compiled of the others.
    key = digest(inputs, source.name, objects.name, program, [str(flag) for flag in flags], instrument(build))
    flags += [part for folder in folders for part in ("-I", folder)]
    flags += ["-include", SIMT / "cuda_host.h"]
    folder = cache / f"{source.stem}-{build}-{key}"
    artifact = folder / ("runner" if program else "kernels.so")
    with made_once(folder) as is_mine:
        if is_mine:
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                made = Path(scratch) / "unit"
                made.mkdir()
                compile_unit(source, build, made, made / artifact.name, flags, objects, program)
                os.replace(made, folder)
    kernels = json.loads((folder / "kernels.json").read_text(encoding="utf-8"))
    return Unit(source, build, artifact, program, tuple(KernelSource(**kernel) for kernel in kernels), capability)


def compile_unit(
    source: Path, build: str, folder: Path, artifact: Path, flags: Sequence[str | Path], objects: Path, program: bool
) -> None:
    kernels = list_kernels(source, flags)
    table = "".join(f'    simt::describe<&::{name}>("{name}", {bound}),\n' for name, bound in kernels)
    unit = folder / "unit.cpp"
    unit.write_text(
        f'#include "{source}"\n#include "registry.h"\n'
        f"namespace simt {{\nconst Kernel kernels[] = {{\n{table}}};\nconst int num_kernels = {len(kernels)};\n}}\n",
        encoding="utf-8",
    )
    compiled = folder / "unit.o"
    compile_cpp(unit, compiled, *flags, *instrument(build), what=f"{source} does not compile")
    parts: list[str | Path] = [
        "shared_begin.o",
        compiled,
        "shared_end.o",
        *(Path(name).with_suffix(".o") for name in RUNTIME),
    ]
    parts += ["runner.o"] if program else []
    parts += ["traffic.o"] if build == "count" else []
    kind = [] if program else ["-shared"]
    run([compiler()[0], *kind, *LINK[build], *(objects / part for part in parts), "-o", artifact],
        f"{source} does not link")  # fmt: skip
    shared = static_shared(compiled, [name for name, _ in kernels])
    listing = [{"name": name, "launch_bounds": bound, "static_shared": shared[name]} for name, bound in kernels]
    (folder / "kernels.json").write_text(json.dumps(listing), encoding="utf-8")


def build_all(
    sources: Sequence[Path], build: str, *, program: bool, include: Sequence[Path] = (), capability: int = 90
) -> tuple[Unit, ...]:
    """Compile several files, as many at a time as there are processors."""
    if build not in BUILDS:
        raise ValueError(f"build is {build!r}; allowed: {', '.join(BUILDS)}")
    runtime(build, cache_folder(), tuple(portable_fibers()))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        options = {"program": program, "include": include, "capability": capability}
        jobs = [pool.submit(build_unit, source, build, **options) for source in sources]
        return tuple(job.result() for job in jobs)
