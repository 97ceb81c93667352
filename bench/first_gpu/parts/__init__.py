"""The parts, in order. Each is a module's ``run(journal, sizes, folder, ...)``, imported in its own process."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A part: its name, its module, its time limit in seconds, and further arguments of ``run``.

    ``short`` is its limit where the whole run has one.
    """

    name: str
    module: str
    limit: float
    arguments: tuple[str, ...] = ()
    short: float | None = None


MINUTE = 60.0
#: Cases of single calls beside torch and CuPy. The first two need no data set.
CALLS = ("dense-200k", "ppr-1e6", "ppr-hotpotqa", "ppr-topk-hotpotqa")
#: What a card that is lent for a quarter of an hour should tell comes first. Racecheck and the benchmarks have the
#: longest limits, because their times are not known yet.
PARTS = (
    Part("build", f"{__name__}.build", 10 * MINUTE, short=90),
    Part("rates", f"{__name__}.rates", 5 * MINUTE, short=60),
    Part("searches", f"{__name__}.searches", 15 * MINUTE, short=150),
    Part("calls", f"{__name__}.peers", 30 * MINUTE, CALLS, short=150),
    Part("profiler", f"{__name__}.profiler", 15 * MINUTE, short=60),
    Part("racecheck", f"{__name__}.sanitizer", 60 * MINUTE, ("racecheck",), short=60),
    Part("initcheck", f"{__name__}.sanitizer", 30 * MINUTE, ("initcheck",), short=60),
    Part("tests", f"{__name__}.gpu_tests", 60 * MINUTE),
    Part("selftest", f"{__name__}.self_test", 20 * MINUTE),
    Part("memcheck", f"{__name__}.sanitizer", 30 * MINUTE, ("memcheck",)),
    Part("recordings", f"{__name__}.recordings", 15 * MINUTE),
    Part("out_of_memory", f"{__name__}.out_of_memory", 15 * MINUTE),
    Part("threads", f"{__name__}.threads", 10 * MINUTE),
    Part("torch_streams", f"{__name__}.torch_streams", 10 * MINUTE),
    Part("bench", f"{__name__}.peers", 120 * MINUTE),
)
