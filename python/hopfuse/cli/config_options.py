"""``--option NAME=VALUE``: values of a recipe's options, parsed by the types of its config's fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import InputError
from ..fusion import FusionMethod
from ..io.files import read_npy


def assigned(given: Sequence[str], field: str = "option", example: str = "graph_k=50") -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each ``NAME=VALUE`` of an option.

    Examples
    --------
    >>> list(assigned(["p=2", "q=a=b"]))
    [('p', '2'), ('q', 'a=b')]
    """
    for one in given:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise InputError(
                "syntax",
                field,
                "{field} is {given!r}; give a name and a value, such as {field} {example}",
                given=one,
                example=example,
            )
        yield name, value


def read_options(config: type, given: Sequence[str]) -> dict[str, Any]:
    """Return the options that ``--option`` names, for :func:`hopfuse.recipes.apply_options`.

    Parameters
    ----------
    config : type
        The recipe's config, a dataclass.
    given : sequence of str
        Each ``NAME=VALUE``. The field's type decides how the value is parsed: a number, true or false, a word, several
        values separated by commas, or the path of an .npy file. ``NAME.KEY=VALUE`` sets a key of a mapping, a field of
        a nested config, or an option of a fusion method. A text of another type stays a text.

    Raises
    ------
    InputError
        A name that is given twice.

    Examples
    --------
    >>> from hopfuse.recipes import PhaseGraphConfig
    >>> read_options(PhaseGraphConfig, ["graph_k=20", "method=rrf", "method.rank_constant=3"])
    {'graph_k': 20, 'method': {'name': 'rrf', 'rank_constant': 3}}
    """
    kinds, options = get_type_hints(config), dict[str, Any]()
    for name, text in assigned(given):
        whole, dot, key = name.partition(".")
        kind, part = kinds.get(whole, str), options
        if dot or FusionMethod in _members(kind):
            part, key = options.setdefault(whole, {}), key or "name"
            kind = _kind_of_key(kind, key)
        if not isinstance(part, dict) or (key or whole) in part:
            raise InputError("duplicate", name, "{field} is given twice; give one value")
        part[key or whole] = _value(text, kind, name)
    return options


def _kind_of_key(kind: Any, key: str) -> Any:
    """Return the type of a key of a mapping, a nested config or a fusion method; None for any number or word."""
    for member in _members(kind):
        if get_origin(member) in (dict, Mapping):
            return get_args(member)[1]
        if is_dataclass(member):
            return get_type_hints(member).get(key, str)
    return str if key == "name" else None


def listed(config: type, name: str, text: str) -> list[str]:
    """Return the comma-separated values of an option.

    The commas of a field that holds several numbers belong to its value, so its text is one value.

    Examples
    --------
    >>> from hopfuse.recipes import HybridRRFConfig
    >>> listed(HybridRRFConfig, "rank_constant", "5, 60"), listed(HybridRRFConfig, "weights", "1,1,0.35")
    (['5', '60'], ['1,1,0.35'])
    """
    if any(get_origin(member) in (tuple, Sequence) for member in _members(get_type_hints(config).get(name))):
        return [text]
    return [part.strip() for part in text.split(",")]


def option_files(given: Sequence[str], config: type) -> dict[str, Path]:
    """Return the files that ``--option`` names, by option: values of fields that take an array."""
    arrays = {name for name, kind in get_type_hints(config).items() if kind is Any}
    return {f"option {name}": Path(text) for name, text in assigned(given) if name in arrays}


def _members(kind: Any) -> list[Any]:
    """Return the members of a union, except None."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [member for member in members if member is not NoneType]


def _value(text: str, kind: Any, name: str) -> Any:
    """Return the value of an option; a text of another type is returned as it is, for the config to refuse."""
    if kind is None:
        parts = [plain_value(part.strip()) for part in text.split(",")]
        return parts[0] if len(parts) == 1 else tuple(parts)
    found = (_read(text, member, name) for member in _members(kind))
    return next((value for value in found if value is not None), text)


def _read(text: str, kind: Any, name: str) -> Any:
    """Return the value, or None if the text is not of this type."""
    if kind is Any:
        return read_npy(Path(text), name, mapped=False)
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return None
    if get_origin(kind) in (tuple, Sequence) and "," in text:
        return tuple(_value(part.strip(), get_args(kind)[0], name) for part in text.split(","))
    return text if kind is str or get_origin(kind) is Literal else None


def plain_value(text: str) -> Any:
    """Return a number if the text is one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
