"""The linker cannot confuse functions of the AVX2, AVX-VNNI, AVX-512 and AMX objects with the baseline's.

Every kernel file is compiled once per instruction set. An inline function or template instance that two of the
objects define under one name is kept once, by the linker's choice: if that were the AVX-512 one, the baseline would
crash on an older processor. So every weak symbol must carry its instruction set in its name.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CMAKE = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
# Clang's helper that terminates the program: two calls without arithmetic, the same in every object.
HARMLESS = {"__clang_call_terminate"}


def shared_weak_symbols(listing: str, isa: str) -> list[str]:
    """Return the weak symbols in nm's output (mangled names) without the name of the instruction set."""
    spaces = "|".join(f"{len(space)}{space}" for space in (isa, f"shared_{isa}"))
    own = re.compile(rf"(7hopfuse|S[0-9A-Z]*_)({spaces})")  # a name writes hopfuse out once
    found = []
    for line in listing.splitlines():
        fields = line.split()
        kind, name = fields[-2], fields[-1]
        # u, v, V, w, W: kept once in a program. DW.ref.*: the address of a type or function, no code.
        harmless = name.startswith("DW.ref.") or name in HARMLESS
        if kind in "uvVwW" and not harmless and not own.search(name):
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("_ZN7hopfuse6avx5127ppr_runEv", True),
        ("_ZN7hopfuse13shared_avx5128TreeSumIfE4pushEf", True),
        ("_ZSt13__introselectIPN7hopfuse6avx5126RankedElEvT_S4_S4_T0_", True),
        ("_ZNSt6vectorIfN7hopfuse6avx5129VecMemoryIfEEE17_M_default_appendEm", True),
        ("_ZNSt6vectorIN7hopfuse4avx24RankENS0_6avx5129VecMemoryIS2_EEED2Ev", True),
        ("DW.ref.__gxx_personality_v0", True),
        ("__clang_call_terminate", True),
        ("_ZNSt6vectorIfSaIfEE17_M_realloc_insertEv", False),
        ("_ZN7hopfuse7TreeSumIfE4pushEf", False),
        ("_ZN7hopfuse4avx27ppr_runEv", False),
        ("_ZNSt6vectorIN7hopfuse4avx24RankENS0_4avx29VecMemoryIS2_EEED2Ev", False),
        ("_ZSt4sortIPfEvT_S1_", False),
    ],
)
def test_the_check_knows_planted_symbols(name: str, accepted: bool) -> None:
    listing = f"0000000000000000 W {name}\n0000000000000000 T _ZSt4strongv\n                 U malloc"
    assert shared_weak_symbols(listing, "avx512") == ([] if accepted else [name])


def flags_of(isa: str) -> list[str]:
    flags = re.search(rf"set\(flags_{isa} ([^)]*)\)", CMAKE)
    assert flags is not None
    return flags[1].split()


def kernel_sources(isa: str) -> list[str]:
    """Return the files that are compiled for an instruction set: all in its namespace, or those of dense search."""
    if isa in _listed("dense_isas"):
        return _listed("dense_sources")
    files = sorted((ROOT / "kernels" / "cpu").glob("*.cpp"))
    return [path.relative_to(ROOT).as_posix() for path in files if "HOPFUSE_ISA_NS" in path.read_text(encoding="utf-8")]


def _listed(name: str) -> list[str]:
    """Return a list of CMakeLists.txt."""
    found = re.search(rf"set\({name} ([^)]*)\)", CMAKE)
    assert found is not None
    return found[1].split()


@pytest.fixture(scope="module")
def listings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """nm of every kernel file for these instruction sets: objects of the build in HOPFUSE_OBJECTS, or compiled here."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        pytest.skip(f"the instruction sets are those of x86-64; this is {platform.machine()}")
    compiler = shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++") or shutil.which("clang++")
    nm = shutil.which("nm")
    if compiler is None or nm is None:
        pytest.skip("no C++ compiler with nm here")
    folder = tmp_path_factory.mktemp("objects")

    def listed(job: tuple[str, str]) -> str:
        target = built(*job) if "HOPFUSE_OBJECTS" in os.environ else compiled(*job)
        return subprocess.run([nm, "--defined-only", target], check=True, capture_output=True, text=True).stdout

    def built(source: str, isa: str) -> Path:
        return Path(os.environ["HOPFUSE_OBJECTS"]) / f"CMakeFiles/hopfuse_{isa}.dir/{source}.o"

    def compiled(source: str, isa: str) -> Path:
        target = folder / f"{Path(source).stem}_{isa}.o"
        definitions = ["-DHOPFUSE_X86", f"-DHOPFUSE_ISA_NS={isa}", f"-DHOPFUSE_ISA_{isa.upper()}"]
        options = ["-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-pthread", "-ffp-contract=off", "-fvisibility=hidden"]
        subprocess.run(
            [compiler, *options, *definitions, *flags_of(isa), "-Ikernels/include", "-c", source, "-o", str(target)],
            cwd=ROOT,
            check=True,
        )
        return target

    jobs = [(source, isa) for isa in ("avx2", "avxvnni", "avx512", "amx") for source in kernel_sources(isa)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(jobs, pool.map(listed, jobs), strict=True))


def test_weak_symbols_name_their_instruction_set(listings: dict[tuple[str, str], str]) -> None:
    for (source, isa), listing in listings.items():
        assert f"7hopfuse{len(isa)}{isa}" in listing, (source, isa)
        assert shared_weak_symbols(listing, isa) == [], (source, isa)
