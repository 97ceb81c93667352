"""Configs of recipes: frozen dataclasses that check their own fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, fields, is_dataclass, replace
from inspect import cleandoc
from textwrap import indent
from typing import Any, TypeVar

from ..._validation import (
    MAX_WHOLE,
    check_choice,
    check_flag,
    check_needs,
    check_number,
    check_text,
    check_type,
    check_whole,
)
from ...errors import InputError
from ...fusion import METHODS, resolve
from ...index import Index

C = TypeVar("C")


def option(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] | None = None,
    optional: bool = False,
    own: bool = False,
) -> Any:
    """Return a dataclass field with a description and a range, which :func:`check_options` checks.

    Parameters
    ----------
    default : bool, int, float or str
        Its type is the type of the option.
    doc : str
        One line, which the command line's help shows, and after it more for the docstring (:func:`with_options`).
    low, high : float, optional
        The smallest and the largest value.
    below : float, optional
        An exclusive upper bound.
    choices : tuple of str, optional
    optional : bool
        The value may be None, and is None by default; ``default`` then only gives the type.
    own : bool
        The config checks the value itself.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from hopfuse.recipes._parts.config import check_options, make_config, option
    >>> @dataclass(frozen=True)
    ... class Config:
    ...     damping: float = option(0.5, "Probability of walking on.", low=0, below=1)
    ...     pool: int = option(100, "Length of the list.", low=1)
    ...     def __post_init__(self):
    ...         check_options(self)
    >>> make_config(Config, None, {"pool": 30})
    Config(damping=0.5, pool=30)
    """
    about = {"doc": doc, "low": low, "high": high, "below": below, "choices": choices, "optional": optional}
    return field(default=None if optional else default, metadata={**about, "type": type(default), "own": own})


def with_options(kind: type[C]) -> type[C]:
    """Document the fields of a config that :func:`option` declared, in a section of its docstring before ``Raises``."""
    first, heading, rest = cleandoc(kind.__doc__ or "").partition("Raises\n------")
    named = [f"{f.name} : {_allowed(f)}\n{indent(f.metadata['doc'], '    ')}" for f in fields(kind)]  # type: ignore[arg-type]
    kind.__doc__ = f"{first}Parameters\n----------\n{chr(10).join(named)}\n\n{heading}{rest}"
    return kind


def _allowed(field: Field[Any]) -> str:
    """Return the type of an option in words, or the texts that it may be."""
    choices, own = field.metadata["choices"], field.metadata["own"]
    return str(field.type) if own or not choices else f"{{{', '.join(map(repr, choices))}}}"


def make_config(kind: type[C], config: C | None, options: Mapping[str, Any]) -> C:
    """Return a config of a class: the given one or the default, with the options of :func:`apply_options`."""
    made = kind() if config is None else config
    check_type(made, "config", kind, f"a {kind.__name__}, or its fields as keyword arguments")
    return apply_options(made, options, kind.__name__)


def apply_options(config: C, options: Mapping[str, Any], recipe_name: str) -> C:
    """Return a recipe's config with options, which are values by the names of its fields.

    Parameters
    ----------
    config : dataclass
        Gives the values of all other fields.
    options : mapping of str to value
        A mapping as a value changes only the keys that it has: fields of a nested config, numbers of a mapping, or
        options of a fusion method, whose name is the key ``"name"``. A list is read as a tuple.
    recipe_name : str
        For errors.

    Raises
    ------
    InputError
        A name that the config does not have, a value that it refuses, or an option that the others make irrelevant
        (``config.unread``). The field of a nested value is dotted: ``"walk.damping"``.

    Examples
    --------
    >>> from hopfuse.recipes import PhaseGraphConfig, Policy, apply_options
    >>> apply_options(PhaseGraphConfig(), {"method": {"name": "rrf", "rank_constant": 10}}, "phase-graph").method
    RRF(rank_constant=10.0)
    >>> apply_options(Policy(), {"walk": {"damping": 0.5}}, "policy-rag").walk.damping
    0.5
    """
    if not options:
        return config
    known = {f.name: f for f in fields(config) if f.init}  # type: ignore[arg-type]
    values = {}
    for name, value in options.items():
        if name not in known:
            raise InputError(
                "unknown",
                name,
                "{field}: {recipe} has no such option; allowed: {allowed}",
                recipe=recipe_name,
                allowed=", ".join(known),
            )
        try:
            values[name] = _changed(getattr(config, name), value, known[name], recipe_name)
        except InputError as error:
            inner = (error.field or "").partition("[")[0] in value
            raise error.at(field=f"{name}.{error.field}" if inner else None) from None
    made = replace(config, **values) if values else config  # type: ignore[type-var]
    for name, reason in getattr(made, "unread", {}).items():
        if name in values:
            raise InputError(
                "unused",
                name,
                "{field} is given, and {reason}: {recipe} does not read it; leave one of them out",
                reason=reason,
                recipe=recipe_name,
            )
    return made


def _changed(now: Any, value: Any, field: Field[Any], recipe_name: str) -> Any:
    """Return the new value of a field, whose value is ``now``."""
    if not isinstance(value, Mapping):
        return tuple(value) if isinstance(value, list) else value
    if field.metadata.get("choices") == tuple(METHODS) and ("name" in value or isinstance(now, str)):
        more = {key: one for key, one in value.items() if key != "name"}
        method = value.get("name", now)
        return resolve(method, more) if more else method
    if is_dataclass(now):
        return apply_options(now, value, recipe_name)
    return {**now, **value} if isinstance(now, Mapping) else value


def check_options(config: Any, prefix: str = "") -> None:
    """Check the fields of a frozen config that :func:`option` declared, and convert them to their types.

    ``prefix`` precedes a field's name in errors: ``"walk."``.
    """
    for f in fields(config):
        value = getattr(config, f.name)
        if f.metadata.get("own", True) or (value is None and f.metadata["optional"]):
            continue
        name, kind, low, high = prefix + f.name, f.metadata["type"], f.metadata["low"], f.metadata["high"]
        if kind is bool:
            checked: Any = check_flag(value, name)
        elif kind is str and f.metadata["choices"] is None:
            checked = check_text(value, name)
        elif kind is str:
            checked = check_choice(value, name, f.metadata["choices"])
        elif kind is int:
            checked = check_whole(value, name, MAX_WHOLE if high is None else int(high))
        else:
            checked = check_number(value, name, low=low, high=high, below=f.metadata["below"])
        object.__setattr__(config, f.name, checked)


def check_index(index: Any) -> None:
    """Raise unless a recipe is given an index."""
    check_type(index, "index", Index, "an Index, such as Index.open(path)")


def needed(field: str, what: str, fix: str) -> InputError:
    """Return the error for an input that something needs."""
    return InputError("missing", field, "{what} needs {needed:@}, {fix}", what=what, needed=field, fix=fix)


def lacking(name: str, *parts: str, fix: str = "") -> InputError:
    """Return the error for an index without parts that a recipe needs, by the names of its attributes (``allowed``)."""
    return InputError(
        "missing",
        "index",
        "{recipe} needs an index with {names}; build one, where {@encoder} makes vectors and {@reader} a graph and "
        "facts{fix}",
        recipe=name,
        allowed=parts,
        names=" and ".join(_NOUNS[part] for part in parts),
        fix=fix,
    )


_NOUNS = {"corpus": "vectors", "graph": "a graph", "facts": "facts", "entity_corpus": "vectors of its entities"}


def check_lexical(leg: Any, options: Mapping[str, Any]) -> None:
    """Refuse options of a lexical leg, given by name, without one."""
    for name, value in options.items():
        check_needs(name, value, "lexical", leg)


def check_edge_weights(weights: Any) -> dict[str, float] | None:
    """Return weights by names of edge types, each at least 0."""
    if weights is None:
        return None
    check_type(weights, "edge_weights", Mapping, 'a mapping of names of edge types to numbers: {"synonym": 0.5}')
    return {name: check_number(weight, f"edge_weights.{name}", low=0) for name, weight in weights.items()}
