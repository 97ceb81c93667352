"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import Index
from ..encoders import Encoder, SentenceTransformerEncoder, WordLlamaEncoder
from ..errors import InputError
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
    help="Encoder of vectors that no file gives: wordllama, wordllama:DIM or sentence-transformers:FOLDER.",
)
case_option = click.option(
    "--case-sensitive", is_flag=True, help="Match names in texts only in the case that the index has."
)


def encoder_for(index: Index, name: str | None, vectors: Path | None) -> Encoder | None:
    """Return the encoder ``name``; by default the index's own, if it is known and no vectors are given."""
    if name is not None:
        return make_encoder(name)
    built = index.encoder
    if vectors is not None or built is None:
        return None
    if built.name == "wordllama":
        return WordLlamaEncoder(built.dim, normalize=built.normalize)
    raise InputError(
        "missing",
        "encoder",
        "{field} is missing: the index was built with {name}, whose files are not known; give {field} "
        "sentence-transformers:FOLDER, or {@vectors}",
        name=built.name,
    )


def question_encoder(index: Index, name: str | None, vectors: Path | None) -> Encoder | None:
    """Return the encoder of questions, as :func:`encoder_for`; None only if there are vectors of the questions."""
    model = encoder_for(index, name, vectors)
    if model is None and vectors is None:
        raise InputError(
            "missing",
            "vectors",
            "{field} is missing, and the index does not record the encoder of its vectors; give {field} or {@encoder}",
        )
    return model


def check_dim(field: str, given: int, allowed: int, owner: str = "passages") -> None:
    """Refuse vectors, or an encoder, of another dimension than the vectors of the index that they are compared with."""
    if given != allowed:
        raise InputError(
            "shape",
            field,
            "{field} has {given} dimensions, the vectors of the index's {owner} have {allowed}; give the encoder that "
            "made those, or vectors by it",
            given=given,
            allowed=allowed,
            owner=owner,
        )


def make_encoder(name: str) -> Encoder:
    """Return the encoder that ``--encoder`` names.

    Examples
    --------
    >>> make_encoder("wordllama:64").dim
    64
    """
    kind, _, detail = name.partition(":")
    if kind == "wordllama" and (not detail or detail.isdecimal()):
        return WordLlamaEncoder(int(detail)) if detail else WordLlamaEncoder()
    if kind == "sentence-transformers" and detail:
        return SentenceTransformerEncoder(detail)
    raise InputError(
        "choice",
        "encoder",
        "{field} is {given!r}; allowed: {allowed}",
        given=name,
        allowed="wordllama, wordllama:64, wordllama:128, wordllama:256, sentence-transformers:FOLDER",
    )


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
