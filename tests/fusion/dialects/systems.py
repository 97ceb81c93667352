"""Systems that PyPI offers, run: a function each, giving what it is and its cases."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Ranked = list[tuple[int, float]]
Case = tuple[dict[str, Any], Callable[..., Ranked], dict[str, Any]]
WEIGHTS = {2: [0.75, 0.5], 3: [2.0, 1.0, 0.5]}
#: Systems that order equal scores of a list as they please, asked for ranks.
UNTIED = ("ties", "equal", "equal at zero")


def about(package: str, page: str) -> dict[str, str]:
    return {"system": package, "version": version(package), "made by": "running it", "source": page}


def ranx() -> tuple[dict[str, str], list[Case]]:
    import ranx as library

    def fuser(method: str, norm: str | None, **params: Any) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
            runs = [library.Run({"q": {str(i): s for i, s in one}}) for one in lists]
            given = {**params, **({"weights": weights} if weights else {})}
            return pairs(library.fuse(runs, norm=norm, method=method, params=given).to_dict()["q"])

        return fuse

    skip = {"skip": ("empty",)}
    norms = {"min_max": "min-max", "max": "max", "sum": "sum", "z_score": "zmuv", "rank": "rank", "none": None}
    cases: list[Case] = []
    for ours, theirs in norms.items():
        given = {"skip": ("empty", *(UNTIED if ours == "rank" else ())), "signed": True}
        call = {"method": "comb_sum", **({"calibration": ours} if ours != "min_max" else {})}
        cases.append((call, fuser("sum", theirs), given))
    for name in ("anz", "min", "max", "med", "mnz"):
        cases.append(({"method": f"comb_{name}"}, fuser(name, "min-max"), skip))
    cases.append(({"method": "comb_mnz", "gamma": 2.0}, fuser("gmnz", "min-max", gamma=2.0), skip))
    cases.append(({"method": "linear"}, fuser("wsum", "min-max"), {**skip, "weights": WEIGHTS}))
    cases.append(({"method": "mixed"}, fuser("mixed", "min-max"), {**skip, "weights": WEIGHTS}))
    ranks = {"skip": ("empty", *UNTIED)}
    cases.append(({"method": "rrf"}, fuser("rrf", None), ranks))
    cases.append(({"method": "rrf", "rank_constant": 10}, fuser("rrf", None, k=10), ranks))
    cases.append(({"method": "isr"}, fuser("isr", None), ranks))
    cases.append(({"method": "log_isr"}, fuser("log_isr", None), ranks))
    cases.append(({"method": "log_isr", "sigma": 0.25}, fuser("logn_isr", None, sigma=0.25), ranks))
    cases.append(({"method": "borda"}, fuser("bordafuse", None), ranks))
    cases.append(({"method": "borda"}, fuser("w_bordafuse", None), {**ranks, "weights": WEIGHTS}))
    cases.append(({"method": "rbc", "phi": 0.75}, fuser("rbc", None, phi=0.75), ranks))
    return about("ranx", "https://amenra.github.io/ranx/fusion/"), cases


def pairs(found: dict[str, float]) -> Ranked:
    return [(int(i), float(s)) for i, s in found.items()]


SYSTEMS = {"ranx": ranx}
