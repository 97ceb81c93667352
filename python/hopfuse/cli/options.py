"""Options that several commands share, and which of them need or exclude others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import Index
from .._validation import check_excludes, check_needs
from ..encoders import Encoder, open_encoder, recorded_encoder
from ..index.input import CHOICES
from ..llm import ChatEndpoint

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(file_okay=False, path_type=Path)

index_argument = click.argument("directory", metavar="INDEX", type=DIRECTORY)
k_option = click.option(
    "-k", "--k", type=click.IntRange(min=1), default=10, show_default=True, help="Passages per question."
)
encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    help="Encoder of vectors that no file gives: wordllama, wordllama:DIM, sentence-transformers:FOLDER or "
    "endpoint:MODEL:DIM (of OPENAI_BASE_URL).",
)
case_option = click.option(
    "--case-sensitive", is_flag=True, help="Match names in texts only in the case that the index has."
)


def encoder_for(index: Index, name: str | None) -> Encoder | None:
    """Return the encoder of this name; by default the index's own, or None if it keeps the name of none."""
    if name is not None:
        return open_encoder(name)
    built = index.encoder
    return None if built is None else recorded_encoder(built.name, built.dim, built.normalize)


#: Options that need ``--model``.
ENDPOINT_OPTIONS = ("endpoint", "cache", "concurrency")


def endpoint_options(purpose: str) -> Callable[[F], F]:
    """Return the options of :func:`make_endpoint`; ``purpose`` ends the help of ``--cache``."""
    options = (
        click.option(
            "--endpoint", metavar="URL", help="Base URL of --model's server, up to /v1; the key is in OPENAI_API_KEY."
        ),
        click.option("--model", metavar="NAME", help="Language model, as the endpoint names it."),
        click.option("--cache", type=DIRECTORY, help=f"Folder that keeps the endpoint's answers, {purpose}."),
        click.option("--concurrency", type=int, help="Concurrent requests to the endpoint.  [default: 8]"),
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def make_endpoint(options: Mapping[str, Any]) -> ChatEndpoint:
    """Return the endpoint that the options name, without connecting to it."""
    given = {name: options[name] for name in ("cache", "concurrency") if options[name] is not None}
    return ChatEndpoint(options["endpoint"], model=options["model"], **given)


def choice_options(command: F) -> F:
    """Add the options of arguments with few values, as ``Inputs`` declares them; one that is not given is None."""
    for name, one in reversed(CHOICES.items()):
        shown = f"{one.help}  [default: {one.default}]"
        command = click.option(f"--{name.replace('_', '-')}", type=click.Choice(one.allowed), help=shown)(command)
    return command


def choices_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments that are given."""
    return {name: given[name] for name in CHOICES if given[name] is not None}


# ---- Options that need or exclude others -----------------------------------------------------------------------------

#: An option, one or several others, and the reason, which ends the first clause of the sentence.
Rule = tuple[str, str | tuple[str, ...], str]


def stated(given: Mapping[str, Any], name: str) -> Any:
    """Return the value of an option, or None if it is not given."""
    value = given.get(name)
    return None if value is False or value == () else value


def check_rules(given: Mapping[str, Any], needs: Iterable[Rule] = (), excludes: Iterable[Rule] = ()) -> None:
    """Refuse an option without one of those that it needs, and an option beside one that it excludes.

    Parameters
    ----------
    given : mapping
        Values by name. One that is None, False or () is not given. A name may have a value behind it, as in ``"reader
        words"``.
    needs, excludes : iterable of (option, others, reason)
    """
    for option, others, reason in needs:
        check_needs(option, stated(given, option), others, _first(given, others), reason)
    for option, others, reason in excludes:
        check_excludes(option, stated(given, option), others, _first(given, others), reason)


def _first(given: Mapping[str, Any], others: str | tuple[str, ...]) -> Any:
    names = (others,) if isinstance(others, str) else others
    return next((value for name in names if (value := stated(given, name)) is not None), None)
