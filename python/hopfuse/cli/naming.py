"""Name the arguments of errors as a command spells them: ``--dense-k`` for ``dense_k``, ``--option hops``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ..errors import HopfuseError, InputError
from ..stores import is_place

#: Parameters that stand for arguments of the library with other names.
OTHER_NAMES = {
    "base_url": "endpoint",
    "config": "policy",
    "fact_vectors": "encoder",
    "graph": "edges",
    "language": "lexical",
    "lexical": "words",
    "llm": "model",
    "names": "case_sensitive",
    "path": "from",
    "place": "from",
    "queries": "question",
    "questions": "question",
    "stemmer": "lexical",
    "stopwords": "lexical",
    "texts": "question",
}
#: Parameters whose values are NAME=VALUE, and their options: a NAME is a field of a config, or a filter.
SETTINGS = {"settings": "--option", "further": "--option", "where": "--where"}


class ArgumentNames:
    """The names of a command's arguments.

    Parameters
    ----------
    app : Group
    words : sequence of str
        The command and its arguments.

    Examples
    --------
    >>> from hopfuse.cli.app import app
    >>> names = ArgumentNames(app, ["search", "index", "Who?", "--option", "hops=9"])
    >>> names("dense_k"), names("hops"), names("entities[3]"), names("queries"), names("rows")
    ('--dense-k', '--option hops', '--entity[3]', 'QUESTION', 'rows')
    """

    def __init__(self, app: click.Group, words: Sequence[str]) -> None:
        self._read(*_parsed(app, words))

    @classmethod
    def here(cls) -> ArgumentNames:
        """Return the names of the arguments of the command that runs."""
        names, context = cls.__new__(cls), click.get_current_context()
        names._read(context.command, given_parameters(context), context.params)
        return names

    def _read(self, command: click.Command, given: set[str], values: Mapping[str, Any]) -> None:
        shown = {str(one.name): _spelling(one) for one in command.params}
        own = {field_of(one): _spelling(one) for one in command.params}
        known = {**own, **shown}  # the argument PASSAGES of build, not its option --passages
        place = values.get("origin")
        if "passages" not in given and place is not None and is_place(place):
            known["passages"] = own["passages"]  # the rows of a store
        self._shown = {name: known[other] for name, other in OTHER_NAMES.items() if other in known} | known
        self._settings = {
            one.partition("=")[0]: option for name, option in SETTINGS.items() for one in values.get(name) or ()
        }
        for name in given:  # --alpha, though there is an --option alpha, too
            self._settings.pop(name, None)

    def __call__(self, field: str) -> str:
        """Return what the command calls a field; one that it does not have is returned as it is."""
        path = re.sub(r"\['(.*?)'\]", r".\1", field).partition("[")[0]
        name = re.split(r"\W", field, maxsplit=1)[0]
        if path in self._settings:
            return f"{self._settings[path]} {field}"
        return self._shown.get(name, name) + field[len(name) :]


def _parsed(app: click.Group, words: Sequence[str]) -> tuple[click.Command, set[str], Mapping[str, Any]]:
    """Return the command that the words name, or the group itself, the parameters given, and the values of all."""
    command = app.commands.get(words[0]) if words else None
    if command is None:
        return app, set(), {}
    context = command.make_context(words[0], list(words[1:]), resilient_parsing=True)
    return context.command, given_parameters(context), context.params


def given_parameters(context: click.Context) -> set[str]:
    """Return the names of the parameters that are given on the command line."""
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _spelling(one: click.Parameter) -> str:
    if isinstance(one, click.Option):
        return max(one.opts, key=len)
    name = re.search(r"\w+", one.metavar or str(one.name))
    assert name is not None
    return name[0].upper()


def field_of(one: click.Parameter) -> str:
    """Return the field of errors about a parameter: ``allow_scope`` for ``--allow-scope``."""
    return _spelling(one).lstrip("-").replace("-", "_").lower()


# ---- Click's own errors ----------------------------------------------------------------------------------------------


def usage_error(error: click.UsageError) -> InputError:
    """Return an error of Click's as data: the parameter, and the code that the library gives to the same mistake."""
    parameter = getattr(error, "param", None)
    field = None if parameter is None else field_of(parameter)
    if isinstance(error, (click.NoSuchOption, click.BadOptionUsage)):
        field = error.option_name.lstrip("-").replace("-", "_")
    found = InputError("syntax", field, "{reason}", reason=error.format_message())
    found.code = _code(error, None if parameter is None else parameter.type)
    return found


def _code(error: click.UsageError, kind: Any) -> str:
    if isinstance(error, click.NoSuchOption):
        return "unknown"
    if isinstance(error, (click.MissingParameter, click.BadOptionUsage)):
        return "missing"
    if isinstance(kind, click.Choice):
        return "choice"
    return "range" if isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)) else "syntax"


def left_out_lines(left_out: Mapping[str, HopfuseError]) -> list[str]:
    """Return a line for each reason why rankings are left out, in the words of the command that runs."""
    names = ArgumentNames.here()
    said = {name: why.sentence(names) for name, why in left_out.items()}
    return [
        f"Left out: {', '.join(name for name in said if said[name] == why)}: {why}"
        for why in dict.fromkeys(said.values())
    ]
