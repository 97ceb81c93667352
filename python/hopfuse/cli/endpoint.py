"""``--endpoint`` and ``--model``: a language model over the network, for the commands that ask one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ..connect import ChatEndpoint
from .options import DIRECTORY

F = TypeVar("F", bound=Callable[..., Any])
#: The options that say nothing without ``--model``.
DETAILS = ("endpoint", "cache", "concurrency")


def endpoint_options(kept: str) -> Callable[[F], F]:
    """Those of :func:`make_endpoint`; ``kept`` says why a cache is of use."""
    options = (
        click.option(
            "--endpoint", metavar="URL", help="Where --model answers, up to /v1; its key: OPENAI_API_KEY alone."
        ),
        click.option("--model", metavar="NAME", help="A language model, as the endpoint names it."),
        click.option("--cache", type=DIRECTORY, help=f"Folder of the endpoint's answers, {kept}."),
        click.option("--concurrency", type=int, help="Requests to the endpoint at once.  [default: 8]"),
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def make_endpoint(options: Mapping[str, Any]) -> ChatEndpoint:
    """The endpoint that the options name; nothing is asked of it yet."""
    given = {name: options[name] for name in ("cache", "concurrency") if options[name] is not None}
    return ChatEndpoint(options["endpoint"], model=options["model"], **given)
