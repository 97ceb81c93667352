"""The first use of an installation: every kernel is compiled for the GPU and loaded."""

from __future__ import annotations

import time
from pathlib import Path

import hopfuse as hf

from ...machine import versions
from ..card import BACKEND, about_card, require_card
from ..journal import FailedError, Journal
from ..sizes import Sizes


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Time the quick self-test with an empty kernel cache, most of which is compilation."""
    require_card()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    found = hf.selftest(BACKEND, quick=True)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    kernels = about_card()["kernels"]
    journal.note(card=about_card(), versions=versions(), seconds=seconds, cpu_seconds=cpu_seconds)
    if not found.passed:
        raise FailedError(f"{sum(not check.equal for check in found.checks)} checks differ from the CPU's")
    return f"{len(kernels)} files of kernels loaded in {seconds:.1f} s, {cpu_seconds:.1f} s of processors"
