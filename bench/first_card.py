"""What docs/gpu.md says of the first run on a GPU."""

from __future__ import annotations

from statistics import median

from .first_gpu.sizes import FULL

SECTION = """
## First run on a GPU

`python -m bench.first_gpu --out report.json`, from a checkout on Linux with `pip install -e '.[cuda13,dev]' --group
sanitizer` (pip 25.1 or later), runs every check and measurement on a GPU. Each part runs in its own process with a
time limit. The report is written after each part: if a part fails, crashes or hangs, the report has its notes up to
then, and the next part starts. Parts whose packages are not installed are skipped with the reason, and so are two
walks of `calls` without the data of hotpotqa ([Data sets](datasets.md)). `--only NAME` runs some of the parts,
`--quick` runs all on small inputs. **`--minutes 15` is for a card that is lent**: parts have short limits, the first
ones tell most, and those that no time is left for are skipped. The exit status is 1 if a part failed, crashed or ran
out of time.
[examples/first_gpu.ipynb] does the same on a hosted T4, cell by cell.

| part | runs | reports |
| --- | --- | --- |
| `build` | first use: compile kernels that are not prebuilt, and load all | GPU, driver, versions, seconds |
| `rates` | copies, random gathers, chains of loads, launches, grid barriers | GB/s, nanoseconds, clocks |
| `searches` | recorded searches of the sizes above | hashes beside the CPU's, milliseconds, clocks, times by kernel |
| `calls` | dense lists, walks, best nodes beside PyTorch and CuPy | in a row and rested, least and median, clocks |
| `profiler` | `ncu` on one search | bytes, sectors, instructions, occupancy of each launch |
| `racecheck`, `initcheck`, `memcheck` | compute-sanitizer on the quick self-test, without a memory pool | its summary |
| `tests` | `HOPFUSE_TESTS_DRIVER=cuda pytest -m gpu`, changed files first | outcomes, and the reasons of failures |
| `selftest` | `hopfuse selftest --report` | results of checks and kernels, seconds by CUDA events, leaks |
| `recordings` | record, run and drop a search {recordings} times | free memory after each, seconds of replays |
| `out_of_memory` | fill the memory, search, release it, search again | errors, free memory after each |
| `threads` | two threads: a shared recording, their own, eager calls | differences |
| `torch_streams` | torch tensors that are still being made, and overwritten right after | differences |
| `bench` | other cases, hopfuse alone and beside faiss, cuVS, PyTorch, CuPy and cuGraph | rows of the benchmarks |

`out_of_memory` fills the GPU's memory for moments, so use a GPU that nobody else is using. The folder `report.parts`
beside the report has the output of each part. The `--quick` form was run on an emulated driver, with substitutes for
NVRTC and compute-sanitizer (tests/bench/test_first_gpu.py).

Wheels for Linux have compiled kernels. A first use without them compiles them in threads, and says so on
standard error. With NVRTC {nvrtc} for sm_89, {files} files took
{median:.1f} s of CPU time ({machine}: the median of {runs} runs of
`python tests/cuda/compile_times.py 89`, which took {least:.1f} to {most:.1f} s).

[examples/first_gpu.ipynb]: ../examples/first_gpu.ipynb
"""
#: The output of tests/cuda/compile_times.py: CPU seconds of all kernel files in each run, the NVRTC and the processor.
COMPILED_FILES, COMPILED_BY, COMPILED_ON = 19, "12.9.86", "AMD EPYC"
COMPILED_SECONDS = (12.28, 12.43, 11.81)


def section() -> str:
    """Return the section, in Markdown."""
    return SECTION.format(
        recordings=FULL.recordings, files=COMPILED_FILES, nvrtc=COMPILED_BY, machine=COMPILED_ON,
        median=median(COMPILED_SECONDS), runs=len(COMPILED_SECONDS), least=min(COMPILED_SECONDS),
        most=max(COMPILED_SECONDS),
    )  # fmt: skip
