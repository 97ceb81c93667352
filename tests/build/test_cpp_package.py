"""C++ programs find the installed kernels, without Python, and get the bits of the Python package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
cmake_minimum_required(VERSION 3.24)
project(csr_graph LANGUAGES CXX)
find_package(hopfuse {version} REQUIRED)
add_executable(csr_graph {source})
target_link_libraries(csr_graph PRIVATE hopfuse::kernels)
"""

pytestmark = pytest.mark.full


def cmake(*arguments: str | Path) -> str:
    tool = shutil.which("cmake")
    if tool is None:
        pytest.skip("CMake is not installed")
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build and install the kernels; ccache, if there is one, keeps their objects between runs."""
    folder = tmp_path_factory.mktemp("cpp")
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    cmake("-S", ROOT, "-B", folder / "build", *launcher)
    cmake("--build", folder / "build", "--target", "hopfuse_kernels", "-j2")
    cmake("--install", folder / "build", "--prefix", folder / "prefix")
    return folder / "prefix"


def compiled(source: Path, prefix: Path, folder: Path, name: str) -> Path:
    """Return a program that was built against the installed package."""
    cmake("-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    cmake("--build", folder)
    return folder / name


def test_what_is_installed(prefix: Path) -> None:
    headers = {path.relative_to(prefix / "include").as_posix() for path in prefix.glob("include/**/*.h")}
    contracts = {
        path.relative_to(ROOT / "kernels" / "include").as_posix() for path in ROOT.glob("kernels/include/**/*.h")
    }
    assert headers == contracts | {"hopfuse/cpu/csr_graph.h", "hopfuse/cpu/kernels.h"}
    assert [path.name for path in prefix.glob("lib*/*.a")] == ["libhopfuse_kernels.a"]
    config = {path.name for path in prefix.glob("lib*/cmake/hopfuse/*.cmake")}
    assert {"hopfuseConfig.cmake", "hopfuseConfigVersion.cmake", "hopfuseTargets.cmake"} <= config


def test_the_example_prints_what_python_finds(prefix: Path, tmp_path: Path) -> None:
    example = compiled(ROOT / "examples" / "cpp", prefix, tmp_path, "example")
    lines = subprocess.run([example], check=True, capture_output=True, text=True).stdout.splitlines()
    graph = hf.Graph.from_edges([0, 0, 1, 1, 2, 2], [3, 4, 4, 5, 5, 3])
    walked = hf.ppr(graph, [{3: 1.0}, {4: 0.5, 5: 0.5}], damping=0.5, tol=1e-6)
    questions = np.array([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], np.float32)
    dense = hf.dense_topk(questions, hf.Corpus.from_array(np.eye(3, dtype=np.float32), metric="ip"), k=3)
    for b in range(2):
        name, _, rest = lines[b].partition(":")
        found, _, bound = rest.partition("  error at most ")
        assert (name, bound) == (f"ppr {b}", f"{walked.bound[b]:.2g}")
        assert np.array(found.split(), np.float32).tobytes() == walked.scores[b].tobytes()
        hits = [one.split(":") for one in lines[2 + b].removeprefix(f"dense_topk {b}: ").split()]
        assert [int(row) for row, _ in hits] == dense.ids[b].tolist()
        assert np.array([score for _, score in hits], np.float32).tobytes() == dense.scores[b].tobytes()
    assert len(lines) == 4


@pytest.fixture(scope="module")
def program(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    version = ".".join(hf.__version__.split(".")[:2])
    text = PROGRAM.format(version=version, source=ROOT / "tests" / "build" / "csr_graph.cpp")
    (folder / "CMakeLists.txt").write_text(text)
    return compiled(folder, prefix, folder / "build", "csr_graph")


@pytest.mark.parametrize("masks", [0, 1, 9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_walks_have_the_bits_of_python(
    program: Path, tmp_path: Path, directed: bool, weighted: bool, masks: int
) -> None:
    rng = np.random.default_rng([directed, weighted, masks])
    nodes, batch = 900, 9
    src, dst = rng.integers(0, nodes - 50, (2, 4000))
    weight = rng.random(src.size) + 0.01 if weighted else None
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=nodes, directed=directed)
    if not weighted:  # without parallel edges, whose weights are summed
        graph = hf.Graph.from_edges(*graph.edges()[:2], num_nodes=nodes, directed=directed)
    assert (graph.weight is None) == (not weighted)
    allow = rng.random((masks, nodes)) < 0.7 if masks else None
    common = np.arange(nodes) if allow is None else np.flatnonzero(allow.all(axis=0))
    restarts = [{int(v): float(rng.random() + 0.1) for v in rng.choice(common, 5, replace=False)} for _ in range(batch)]
    damping = rng.choice([0.0, 0.3, 0.85], batch)
    candidates = np.flatnonzero(rng.random(nodes) < 0.5)
    given: list[np.ndarray[Any, Any]] = [
        np.array([directed]).astype(np.int64),
        graph.indptr,
        graph.indices,
        np.zeros(0, np.float32) if graph.weight is None else graph.weight,
        np.arange(0, 5 * batch + 1, 5),
        np.array([node for row in restarts for node in row], np.int32),
        np.array([value for row in restarts for value in row.values()]),
        damping,
        np.zeros(0, np.uint8) if allow is None else allow.astype(np.uint8),
        candidates.astype(np.int32),
        np.array([12]),
    ]
    (tmp_path / "in").write_bytes(b"".join(np.int64(one.size).tobytes() + one.tobytes() for one in given))
    subprocess.run([program, tmp_path / "in", tmp_path / "out"], check=True)
    filters = {} if allow is None else {"allow": allow[0] if masks == 1 else allow}
    walked = hf.ppr(graph, restarts, damping=damping, tol=1e-6, **filters)
    hits = hf.ppr_topk(graph, restarts, 12, candidates=candidates, damping=damping, tol=1e-6, walk="passes", **filters)
    expected = [walked.scores, walked.bound, hits.ids, hits.scores, hits.counts]
    assert (tmp_path / "out").read_bytes() == b"".join(np.ascontiguousarray(one).tobytes() for one in expected)
