"""Fusions of several runs, as trials of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import fusion
from .._validation import check_choice, check_list, check_some
from ..errors import InputError
from ..types import Hits
from .runs import Run
from .sweep import Options


class FusedLegs:
    """The fusion of several runs, as a system with options for :func:`sweep`.

    Options are ``leg`` (one of the runs by itself), or ``method`` (a name in ``hopfuse.fusion.METHODS``) with any of

    - ``alpha``: the weight of the first leg, in [0, 1]; the others share 1 - alpha equally. By default the method's.
    - ``pool``: the number of hits to take of each leg; ``pool NAME``: of that leg.
    - ``calibration``, ``consensus`` and the method's own options: see :func:`hopfuse.fuse`.

    Parameters
    ----------
    legs : mapping of str to Run
        Two or more, in the order of the judgements' queries.
    k : int
        Hits to keep for each query.

    Raises
    ------
    InputError
        There are fewer than two legs, or their numbers of queries differ.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import FusedLegs, Run
    >>> dense, graph = Run(hf.Hits([[0, 1]], [[0.9, 0.8]])), Run(hf.Hits([[2, 1]], [[0.7, 0.2]]))
    >>> legs = FusedLegs({"dense": dense, "graph": graph}, k=2)
    >>> legs({"method": "rrf", "alpha": 0.5, "pool graph": 1}, np.array([0])).ids
    array([[0, 2]])
    >>> legs({"leg": "graph"}, np.array([0])).hits.ids
    array([[2, 1]])
    """

    def __init__(self, legs: Mapping[str, Run], *, k: int = 100) -> None:
        if len(legs) < 2:
            raise InputError("missing", "legs", "{field} has {given}; give two or more runs to fuse", given=list(legs))
        sizes = {name: len(run) for name, run in legs.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(
                "length",
                "legs",
                "{field} has runs of different numbers of queries, {sizes}; read them for the same judgements",
                sizes=sizes,
            )
        self.legs, self.k = dict(legs), k

    def __call__(self, options: Options, rows: NDArray[np.int64]) -> Hits | Run:
        """Return the hits of the queries at ``rows``; a leg by itself keeps its answers, texts and baseline."""
        if "leg" in options:
            alone = self._leg(options["leg"]).take(rows)
            return replace(alone, hits=alone.hits.head(self.k), num_missing=0, num_unjudged=0)
        from ..ops.fusion import fuse  # loads the kernels, which other evaluations do not need

        given = dict(options)
        alpha, whole = given.pop("alpha", None), given.pop("pool", None)
        pools = [given.pop(f"pool {name}", whole) for name in self.legs]
        others = len(self.legs) - 1
        weights = None if alpha is None else [alpha, *[(1 - alpha) / others] * others]
        legs = [run.take(rows) for run in self.legs.values()]
        fused = fuse([run.hits for run in legs], weights=weights, pool=pools, k=self.k, **given)
        texts = next((run.texts for run in legs if run.texts is not None), None)
        baseline = next((run.baseline for run in legs if run.baseline is not None), None)
        return fused if texts is None and baseline is None else Run(fused, texts=texts, baseline=baseline)

    def _leg(self, name: str) -> Run:
        return self.legs[check_choice(name, "leg", self.legs)]


def fusion_trials(
    methods: Sequence[str], grid: Mapping[str, Sequence[Any]], legs: Sequence[str]
) -> list[dict[str, Any]]:
    """Return each leg by itself, and each method with every combination of its options.

    Parameters
    ----------
    methods : sequence of str
        Names in ``hopfuse.fusion.METHODS``.
    grid : mapping of str to sequence
        Values of options of :class:`FusedLegs`. Options that a method does not have are left out of its trials:
        ``temperature``, or ``calibration`` of a method that reads ranks. A method that reads scores is tried with the
        calibrations that it can use, and left out if it can use none.
    legs : sequence of str
        Names of the legs.

    Returns
    -------
    list of dict
        The ``grid`` of :func:`sweep`.

    Raises
    ------
    InputError
        There is no method, a method is unknown, an option has no values or belongs to none of the methods, or no
        method can use any of the calibrations.

    Examples
    --------
    >>> from hopfuse.evaluate import fusion_trials
    >>> grid = {"alpha": [0.5, 0.7], "temperature": ["auto", 1.0]}
    >>> for trial in fusion_trials(["rrf", "boltzmann"], grid, ["dense"])[1:4]:
    ...     print(trial)
    {'method': 'rrf', 'alpha': 0.5}
    {'method': 'rrf', 'alpha': 0.7}
    {'method': 'boltzmann', 'alpha': 0.5, 'temperature': 'auto'}
    """
    methods = check_some(check_list(methods, "methods", "a list of fusion methods"), "methods", "fusion method")
    for name, values in grid.items():
        check_some(check_list(values, f"grid[{name!r}]"), f"grid[{name!r}]", "value")
    found = {method: _usable(method, grid, legs) for method in methods}
    usable = {method: own for method, own in found.items() if own is not None}
    cannot = [method for method, own in found.items() if own is None]
    reason = f"{', '.join(cannot)} can use none of the calibrations {grid.get('calibration')}"
    if not usable:
        raise InputError(
            "unsupported",
            "methods",
            "{field}: {reason}; leave them out, or name another calibration or method",
            reason=reason,
        )
    unused = [name for name in grid if not any(name in own for own in usable.values())]
    if unused:
        raise InputError(
            "unused",
            "grid",
            "{field} has {unused}, which {methods} do not take{reason}; leave it out, or name another method",
            unused=", ".join(unused),
            methods=", ".join(usable),
            reason=f", and {reason}" if cannot else "",
        )
    made: list[dict[str, Any]] = [{"leg": leg} for leg in legs]
    for method, own in usable.items():
        made += [{"method": method, **dict(zip(own, values, strict=True))} for values in product(*own.values())]
    return made


def _usable(method: str, grid: Mapping[str, Sequence[Any]], legs: Sequence[str]) -> dict[str, Sequence[Any]] | None:
    """Return the options of the grid that a method has, or None if it can use none of the calibrations."""
    check_choice(method, "methods", fusion.METHODS)
    kind = fusion.METHODS[method]
    allowed = {"consensus", "pool", *(f"pool {leg}" for leg in legs), *(field.name for field in fields(kind))}  # type: ignore[arg-type]
    if kind.weighted:
        allowed.add("alpha")
    found = {name: values for name, values in grid.items() if name in allowed}
    reads_scores = kind.calibrations is None or len(kind.calibrations) > 0
    if "calibration" in grid and reads_scores:
        kept = [one for one in grid["calibration"] if kind.calibrations is None or one in kind.calibrations]
        if not kept:
            return None
        found["calibration"] = kept
    return found
