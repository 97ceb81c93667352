"""The parts, in order. Each is a module's ``run(journal, sizes, folder, ...)``, imported in its own process."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A part: its name, its module, its time limit in seconds, and further arguments of ``run``."""

    name: str
    module: str
    limit: float
    arguments: tuple[str, ...] = ()


MINUTE = 60.0
#: Racecheck and the benchmarks have the longest limits, because their times are not known yet.
PARTS = (
    Part("build", f"{__name__}.build", 10 * MINUTE),
    Part("tests", f"{__name__}.gpu_tests", 60 * MINUTE),
    Part("selftest", f"{__name__}.self_test", 20 * MINUTE),
    Part("memcheck", f"{__name__}.sanitizer", 30 * MINUTE, ("memcheck",)),
    Part("racecheck", f"{__name__}.sanitizer", 60 * MINUTE, ("racecheck",)),
    Part("initcheck", f"{__name__}.sanitizer", 30 * MINUTE, ("initcheck",)),
    Part("recordings", f"{__name__}.recordings", 15 * MINUTE),
    Part("out_of_memory", f"{__name__}.out_of_memory", 15 * MINUTE),
    Part("threads", f"{__name__}.threads", 10 * MINUTE),
    Part("torch_streams", f"{__name__}.torch_streams", 10 * MINUTE),
    Part("searches", f"{__name__}.searches", 15 * MINUTE),
    Part("bench", f"{__name__}.peers", 120 * MINUTE),
)
