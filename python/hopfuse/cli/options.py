"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..encoders import Encoder, SentenceTransformerEncoder, WordLlamaEncoder
from ..errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(file_okay=False, path_type=Path)

index_option = click.option("--index", "directory", type=DIRECTORY, required=True, help="Directory of the index.")
encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    help="Turns text into vectors: wordllama, wordllama:DIM, or sentence-transformers:FOLDER.",
)
case_option = click.option(
    "--case-sensitive", is_flag=True, help="Find names in texts only as they are written in the index."
)


def recipe_options(alpha: float) -> Callable[[F], F]:
    """The parameters of PhaseGraph, as keyword arguments of the same names."""
    options = (
        click.option("--alpha", type=float, default=alpha, show_default=True, help="Weight of the dense list."),
        click.option("--dense-k", type=int, default=100, show_default=True, help="Length of the dense list."),
        click.option("--graph-k", type=int, default=30, show_default=True, help="Length of the graph list."),
        click.option("--damping", type=float, default=0.5, show_default=True, help="Probability of walking on."),
        click.option("--consensus", type=float, default=0.0, show_default=True, help="Bonus for being in both lists."),
        click.option(
            "--passage-seeds",
            type=float,
            default=0.0,
            show_default=True,
            help="Restart mass on the dense list for each unit on entities.",
        ),
        click.option("--threads", type=int, help="By default HOPFUSE_NUM_THREADS, else all processors."),
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def make_encoder(name: str) -> Encoder:
    """The encoder that ``--encoder`` names.

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
        f"--encoder is {name!r}; allowed: wordllama, wordllama:64, wordllama:128, wordllama:256, "
        "sentence-transformers:FOLDER"
    )
