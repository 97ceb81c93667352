"""``--option NAME=VALUE``: set fields of a recipe's config, parsed by their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import InputError
from ..fusion import FusionMethod, resolve
from ..io.npy import read_npy


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


def read_config(config: Any, given: Sequence[str], recipe: str) -> Any:
    """Return a config with the fields that ``--option`` names.

    Parameters
    ----------
    config : dataclass
        Gives the values of all other fields.
    given : sequence of str
        Each ``NAME=VALUE``. The field's type decides how the value is parsed: a number, true or false, a word, several
        values separated by commas, or the path of an .npy file. ``NAME.KEY=VALUE`` sets a key of a mapping, a field of
        a nested config, or an option of a fusion method.
    recipe : str
        The name of the recipe, for errors.

    Raises
    ------
    InputError
        A name that the config does not have, or that is given twice; a value of another type, or out of its range; an
        option that the other options make irrelevant (:func:`unread_options`).

    Examples
    --------
    >>> from hopfuse.recipes import TripleHybrid
    >>> config = read_config(TripleHybrid.Config(), ["mode=graph", "hops=2"], "triple-hybrid")
    >>> config.mode, config.hops
    ('graph', 2)
    """
    made = _with_options(config, given, recipe)
    for name, reason in _unread(made, given).items():
        raise unread_option(name, reason, recipe)
    return made


def unread_option(name: str, reason: str, recipe: str) -> InputError:
    """Return the error for an option that the others of a config make irrelevant."""
    return InputError(
        "unused",
        name,
        "{field} is given, and {reason}: {recipe} does not read it; leave one of them out",
        reason=reason,
        recipe=recipe,
    )


def unread_options(config: Any, given: Sequence[str], recipe: str) -> dict[str, str]:
    """Return the options among ``given`` that the others make irrelevant (``config.unread``), each with the reason.

    Raises
    ------
    InputError
        As :func:`read_config`, except for these options.

    Examples
    --------
    >>> from hopfuse.recipes import GuidedWalkConfig
    >>> unread_options(GuidedWalkConfig(), ["word_boost=0", "word_k=5"], "guided-walk")
    {'word_k': 'word_boost is 0'}
    """
    return _unread(_with_options(config, given, recipe), given)


def _unread(config: Any, given: Sequence[str]) -> dict[str, str]:
    unread: Mapping[str, str] = getattr(config, "unread", {})
    return {name: unread[name] for name, _ in assigned(given) if name in unread}


def _with_options(config: Any, given: Sequence[str], recipe: str) -> Any:
    kinds = _types(config)
    values: dict[str, Any] = {}
    parts: dict[str, dict[str, str]] = {}
    for name, text in assigned(given):
        whole, dot, key = name.partition(".")
        if whole not in kinds or (bool(dot) and not _has_keys(kinds[whole])) or (not dot and _only_keys(kinds[whole])):
            raise InputError(
                "unknown",
                name,
                "{field}: {recipe} has no such option; allowed: {allowed}",
                recipe=recipe,
                allowed=", ".join(_names(kinds)),
            )
        if name in values or key in parts.get(whole, {}):
            raise InputError("duplicate", name, "{field} is given twice; give one value")
        if dot:
            parts.setdefault(whole, {})[key] = text
        else:
            values[name] = _value(text, kinds[whole], name)
    for name, keys in parts.items():
        values[name] = _joined(name, keys, kinds[name], values.get(name, getattr(config, name)))
    return replace(config, **values) if values else config


def listed(config: Any, name: str, text: str) -> list[str]:
    """Return the comma-separated values of an option.

    The commas of a field that holds several numbers belong to its value, so its text is one value.

    Examples
    --------
    >>> from hopfuse.recipes import HybridRRFConfig
    >>> listed(HybridRRFConfig(), "rank_constant", "5, 60"), listed(HybridRRFConfig(), "weights", "1,1,0.35")
    (['5', '60'], ['1,1,0.35'])
    """
    kind = _types(config).get(name)
    if any(get_origin(member) in (tuple, Sequence) for member in _members(kind)):
        return [text]
    return [part.strip() for part in text.split(",")]


def option_files(given: Sequence[str], config: type) -> dict[str, Path]:
    """Return the files that ``--option`` names, by option: values of fields that take an array."""
    arrays = {name for name, kind in get_type_hints(config).items() if kind is Any}
    return {f"option {name}": Path(text) for name, text in assigned(given) if name in arrays}


def _types(config: Any) -> dict[str, Any]:
    hints = get_type_hints(type(config))
    return {f.name: hints[f.name] for f in fields(config) if f.init}


def _names(kinds: Mapping[str, Any]) -> list[str]:
    """Return the names of options; those with keys as ``name.NAME``."""
    names = [name for name, kind in kinds.items() if not _only_keys(kind)]
    return sorted([*names, *(f"{name}.NAME" for name, kind in kinds.items() if _has_keys(kind))])


def _members(kind: Any) -> list[Any]:
    """Return the members of a union, except None."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [member for member in members if member is not NoneType]


def _is_method(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, FusionMethod)


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) in (dict, Mapping)


def _has_keys(kind: Any) -> bool:
    return any(_is_mapping(member) or _is_method(member) or is_dataclass(member) for member in _members(kind))


def _only_keys(kind: Any) -> bool:
    return all(_is_mapping(member) or is_dataclass(member) for member in _members(kind))


def _joined(name: str, keys: Mapping[str, str], kind: Any, value: Any) -> Any:
    """Return the value of an option that is given by keys: a nested config, a mapping, or a fusion method."""
    for member in _members(kind):
        if is_dataclass(value) and is_dataclass(member) and not _is_method(member):
            try:
                return read_config(value, [f"{key}={text}" for key, text in keys.items()], name)
            except InputError as error:
                raise error.at(field=f"{name}.{error.field}") from None
        if _is_mapping(member):
            _, of = get_args(member)
            return {**(value or {}), **{key: _value(text, of, f"{name}.{key}") for key, text in keys.items()}}
    return resolve(value, {key: _number_or_words(text) for key, text in keys.items()})


def _value(text: str, kind: Any, name: str) -> Any:
    """Return the value of an option; a text of another type is returned as it is, for the config to refuse."""
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
    if get_origin(kind) in (tuple, Sequence):
        return tuple(_value(part.strip(), get_args(kind)[0], name) for part in text.split(","))
    return text if kind is str or get_origin(kind) is Literal else None


def _number_or_words(text: str) -> Any:
    """Parse an option of a fusion method: a number, several numbers, or a word."""
    parts = [plain_value(part.strip()) for part in text.split(",")]
    return parts[0] if len(parts) == 1 else tuple(parts)


def plain_value(text: str) -> Any:
    """Return a number if the text is one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
