"""Tsallis fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, KernelOptions, check_temperature, per_list


@dataclass(frozen=True, kw_only=True)
class Tsallis(FusionMethod):
    """:class:`Boltzmann` with the q-exponential in place of the exponential (PhaseGraph; Tsallis 1988).

    P_i = e_q(-E_i/T) / sum_j e_q(-E_j/T) with e_q(x) = [1 + (1 - q) x]_+^(1/(1 - q)), and e_1 = exp;
    score = sum_l w_l P_l. q > 1 gives a longer tail, q < 1 cuts it off. A list that lacks the document adds 0. P is
    uniform for a list with one hit, all tied, or all cut off. All calibrations of Boltzmann but "none" are allowed.
    Default weights: (0.7, 0.3) for two lists, else equal ones.

    Parameters
    ----------
    q : float or sequence of float, length L
        In [0, 10]. PhaseGraph's q > 1 for the graph list only is ``q=(1.0, 1.5)``.
    temperature : "auto" or float > 0
        "auto" is 2/3 of the list's mean energy.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hits = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]])
    >>> hf.fuse([hits], method="tsallis", q=2.0, temperature=1.0, calibration="rank", k=3).scores.round(4)
    array([[0.457 , 0.3252, 0.2178]], dtype=float32)
    """

    q: float | Sequence[float] = 1.5
    temperature: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "tsallis"
    calibrations: ClassVar[tuple[str, ...] | None] = tuple(name for name in NONNEGATIVE if name != "none")
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if isinstance(self.q, Sequence | np.ndarray) and not isinstance(self.q, str):
            object.__setattr__(self, "q", tuple(self.q))

    def kernel_options(self, num_lists: int) -> KernelOptions:
        q = per_list(self.q, num_lists, "q")
        if ((q < 0) | (q > 10)).any():
            raise InputError("range", "q", "{field} is {given!r}; it must be in [0, 10]", given=self.q)
        return {"temperature": check_temperature(self.temperature), "q": q}
