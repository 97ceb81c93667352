"""How a recipe fuses its pools: by any method, with what that method takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ..fusion import Calibration, FusionMethod, resolve
from ..fusion.calibration import CalibrationName, Ties
from ..ops._checks import is_real
from ..ops.fusion import KEEPS_SIGN, fuse
from ..types import Hits

if TYPE_CHECKING:
    from .phase_graph import PhaseGraph


def chosen_method(method: str | FusionMethod, temperature: float | Literal["auto"] | None) -> FusionMethod:
    """The method; a temperature that it does not have is refused."""
    return resolve(method, {} if temperature is None else {"temperature": temperature})


def checked_alpha(alpha: Any) -> float:
    """The dense leg's weight, by default the paper's."""
    if alpha is None:
        return 0.7
    if not is_real(alpha) or not 0 <= alpha <= 1:
        raise InputError(f"alpha is {alpha!r}; it must be in [0, 1]")
    return float(alpha)


def checked_consensus(consensus: Any) -> Any:
    """One number for all queries; which ones are allowed, the operation says."""
    if not is_real(consensus):
        raise InputError(f"consensus is {consensus!r}; it must be one number, for all queries")
    return consensus


def check_weighted(method: FusionMethod, **weights: Any) -> None:
    """Refuse weights that the method would not read."""
    given = [name for name, value in weights.items() if value is not None]
    if given and not method.weighted:
        raise InputError(f"fusion method {method.name!r} reads no weights; leave {' and '.join(given)} out")


def check_unread(**options: Any) -> None:
    """Refuse options of a leg that is not there."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{' and '.join(given)} are given without lexical=; give the leg, or leave them out")


def rule_of(
    method: FusionMethod, calibration: CalibrationName | Calibration | None, ties: Ties | None
) -> Calibration | None:
    """What scores go through before the method reads them; None where it reads ranks."""
    if method.calibrations == () or isinstance(calibration, Calibration):
        return calibration if isinstance(calibration, Calibration) else None
    return Calibration(method.default_calibration if calibration is None else calibration, ties=ties)


def looks_at_scores(method: FusionMethod, rule: Calibration | None) -> bool:
    """Whether fusing refuses scores below 0: a recording of a GPU cannot look at them."""
    return method.needs_nonnegative and rule is not None and rule.method in KEEPS_SIGN


def adds_up(method: FusionMethod) -> bool:
    """Whether a fused score is the weighted sum of what the method makes of each list alone."""
    if method.name == "boltzmann":
        return not getattr(method, "wasserstein", 0.0)
    if method.name == "tsallis":
        return not isinstance(getattr(method, "q", None), tuple)
    return method.name in ("linear", "comb_sum", "rrf", "rbc")


def fuse_pools(recipe: PhaseGraph, lists: list[Hits], k: int) -> Hits:
    """The k best of a recipe's pools."""
    return fuse(
        lists,
        method=recipe.method,
        calibration=recipe.calibration,
        ties=recipe.ties,
        weights=tuple(recipe.weights.values()) if recipe.method.weighted else None,
        consensus=recipe.consensus,
        k=k,
        threads=recipe.threads,
    )
