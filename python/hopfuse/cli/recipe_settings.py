"""``--option NAME=VALUE``: what a recipe takes beside a command's own options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import numpy as np

from ..errors import InputError
from ..fusion import resolve
from ..recipes import HybridRRF, Ising, PhaseGraph, PolicyRAG, TripleHybrid
from .sweep_options import assigned, values

F = TypeVar("F", bound=Callable[..., Any])

MADE_BY: dict[str, type] = {
    "phase-graph": PhaseGraph,
    "policy-rag": PolicyRAG,
    "hybrid-rrf": HybridRRF,
    "triple-hybrid": TripleHybrid,
}
#: What a command gives a recipe and its search itself.
_GIVEN = {"self", "index", "triples", "vectors", "fact_vectors", "encoder", "matcher", "lexical", "policy", "llm"}
_GIVEN |= {"threads", "queries", "entities", "k", "explain", "allowed", "shared_graph"}
#: Options that have options of their own, written with a dot, and how one is called in errors.
_PARTS = {"phase-graph": {"edge_weights": "TYPE", "ising": "NAME", "method": "NAME"}}
_FACTS = {"seeds", "hops", "unit", "repeats"}
_UNION = {"vector_k", "graph_k", "calibration"}
#: What is not read where an option has a value other than its default.
_UNREAD: dict[str, tuple[str, dict[str, set[str]]]] = {
    "triple-hybrid": ("mode", {"graph": _UNION, "vector": _FACTS | _UNION, "lexical": _FACTS | _UNION}),
    "hybrid-rrf": ("fusion", {"convex": {"rank_constant"}}),
}
#: Options that take several values.
_SEVERAL = {("hybrid-rrf", "weights"), ("policy-rag", "edge_weights")}


class Settings(NamedTuple):
    """Arguments of a recipe's constructor, and of its search."""

    made: dict[str, Any]
    asked: dict[str, Any]


def setting_option(command: F) -> F:
    """``--option``, as argument ``settings``; :func:`read_settings` reads it."""
    return click.option(
        "--option",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="What the recipe takes beside these, e.g. mode=graph of triple-hybrid, weights=1,1,0.5 of hybrid-rrf, "
        "method=rrf with method.rank_constant=10, ising.blend=0.1 or edge_weights.synonym=0 of phase-graph. May be "
        "given several times; a name that the recipe does not have is refused with those that it has.",
    )(command)


def read_settings(recipe: str, given: Sequence[str], own: Collection[str] = ()) -> Settings:
    """What ``--option`` is given, checked against the recipe's own arguments.

    Parameters
    ----------
    recipe : str
        As ``--recipe`` names it.
    given : sequence of str
        Each ``NAME=VALUE``; several values have commas between them. ``NAME.PART=VALUE`` is a part of an option:
        of PhaseGraph's ``method`` and ``ising``, and a type of its ``edge_weights``. ``importance`` names an .npy file.
    own : collection of str
        Arguments that the command has options for.

    Raises
    ------
    InputError
        A name that the recipe does not have, or that is given twice; a value that cannot be read; what the mode or
        the fusion that is given does not read.

    Examples
    --------
    >>> read_settings("triple-hybrid", ["mode=graph", "hops=2"])
    Settings(made={'hops': 2}, asked={'mode': 'graph'})
    >>> read_settings("phase-graph", ["method=rrf", "method.rank_constant=10"]).made
    {'method': RRF(rank_constant=10.0)}
    """
    made, asked = _arguments(MADE_BY[recipe], own), _arguments(MADE_BY[recipe].search, own)  # type: ignore[attr-defined]
    parts: Mapping[str, str] = _PARTS.get(recipe, {})
    found: dict[str, Any] = {}
    for written, text in assigned(given, "mode=graph"):
        name = "ising.blend" if written == "ising" and "ising" in parts else written
        whole, dot, _ = name.partition(".")
        if written in own:
            raise InputError(
                f"--option {written}={text}: there is an option for it; give --{written.replace('_', '-')}"
            )
        if (dot and whole not in parts) or name == "edge_weights" in parts or whole not in {**made, **asked}:
            raise InputError(f"--option {written}: {recipe} has no such option; {_allowed({**made, **asked}, parts)}")
        if name in found:
            raise InputError(f"--option {written} is given twice; give one value")
        found[name] = _value(recipe, name, text, None if dot else {**made, **asked}[name])
    _check_read(recipe, found)
    plain = _joined(found, parts)
    return Settings({n: v for n, v in plain.items() if n in made}, {n: v for n, v in plain.items() if n not in made})


def option_names(recipe: str, own: Collection[str]) -> set[str]:
    """What ``--option`` may name, parts apart; ``own``: arguments that the command has options for."""
    return {*_arguments(MADE_BY[recipe], own), *_arguments(MADE_BY[recipe].search, own)}  # type: ignore[attr-defined]


def setting_files(given: Sequence[str]) -> dict[str, Path]:
    """The files that ``--option`` names.

    Examples
    --------
    >>> [(option, path.name) for option, path in setting_files(["importance=a.npy", "graph_k=5"]).items()]
    [('--option importance', 'a.npy')]
    """
    return {f"--option {name}": Path(text) for name, text in assigned(given, "mode=graph") if name == "importance"}


def _check_read(recipe: str, found: Mapping[str, Any]) -> None:
    """Refuse what is given and plays no part."""
    choice, unread = _UNREAD.get(recipe, ("", {}))
    chosen = found.get(choice)
    for name in found:
        if isinstance(chosen, str) and name in unread.get(chosen, ()):
            raise InputError(
                f"--option {name}: {recipe} does not read it with {choice}={chosen}; leave it out, or choose another "
                f"{choice}"
            )


def _arguments(call: Any, own: Collection[str]) -> dict[str, Parameter]:
    """Keyword arguments that nothing else gives."""
    return {n: p for n, p in signature(call).parameters.items() if n not in _GIVEN and n not in own}


def _allowed(names: Collection[str], parts: Mapping[str, str]) -> str:
    dotted = {f"{name}.{part}" for name, part in parts.items()}
    rest = [name for name in names if name != "edge_weights" or not parts]
    return f"allowed: {', '.join(sorted([*rest, *dotted]))}"


def _value(recipe: str, name: str, text: str, parameter: Parameter | None) -> Any:
    """A number or a word; true or false; several, or a file's numbers, where the option takes these."""
    if name == "importance":
        return _numbers_of(text)
    if parameter is not None and isinstance(parameter.default, bool):
        if text not in ("true", "false"):
            raise InputError(f"--option {name}={text}: give true or false")
        return text == "true"
    found = values(text, f"option {name}")
    if (recipe, name) in _SEVERAL:
        return found
    if len(found) > 1 and not name.startswith("method."):
        raise InputError(f"--option {name}={text}: it takes one value")
    return found[0] if len(found) == 1 else tuple(found)


def _numbers_of(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--option importance={path}: it cannot be read as an .npy array: {error}") from None


def _joined(found: Mapping[str, Any], parts: Mapping[str, str]) -> dict[str, Any]:
    """The options, those with parts made of them."""
    plain = {name: value for name, value in found.items() if "." not in name}
    own = {whole: {n.partition(".")[2]: v for n, v in found.items() if n.startswith(f"{whole}.")} for whole in parts}
    if own.get("method"):  # an object, which has its temperature itself
        heat = {"temperature": plain.pop("temperature")} if "temperature" in plain else {}
        plain["method"] = resolve(plain.get("method", "boltzmann"), {**heat, **own["method"]})
    if own.get("ising"):
        plain["ising"] = _ising(own["ising"])
    if own.get("edge_weights"):
        plain["edge_weights"] = own["edge_weights"]
    return plain


def _ising(options: Mapping[str, Any]) -> Ising:
    names = [field.name for field in fields(Ising)]
    unknown = [name for name in options if name not in names]
    if unknown:
        raise InputError(f"--option ising.{unknown[0]}: there is no such option; allowed: {', '.join(names)}")
    if "blend" not in options:
        raise InputError(f"--option ising.{next(iter(options))} is given without ising.blend, whose default is off")
    return Ising(**options)
