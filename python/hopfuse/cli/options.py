"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import Index
from ..encoders import Encoder, SentenceTransformerEncoder, WordLlamaEncoder
from ..errors import InputError
from .words import words_of

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


def recipe_options(alpha: float | None = None) -> Callable[[F], F]:
    """The parameters of PhaseGraph, as keyword arguments of the same names; without ``alpha`` its own stays open."""
    weight = "Weight of the dense list." + ("  [default: 0.7]" if alpha is None else "")
    options = (
        click.option("--alpha", type=float, default=alpha, show_default=True, help=weight),
        click.option("--dense-k", type=int, default=100, show_default=True, help="Length of the dense list."),
        click.option("--graph-k", type=int, default=30, show_default=True, help="Length of the graph list."),
        click.option("--damping", type=float, default=0.5, show_default=True, help="Probability of walking on."),
        click.option("--consensus", type=float, default=0.0, show_default=True, help="Bonus for being in two lists."),
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


def lexical_options(command: F) -> F:
    """Those of PhaseGraph's lexical leg; :func:`recipe_arguments` reads them."""
    for option in (
        click.option("--lexical-k", type=int, help="Length of BM25's list.  [default: 100]"),
        click.option("--lexical-weight", type=float, help="Weight of BM25's list.  [default: 0.3]"),
        click.option("--lexical", is_flag=True, help="Fuse BM25's list too, of an index that was built with it."),
    ):
        command = option(command)
    return command


def recipe_arguments(index: Index, options: Mapping[str, Any], words: str | None = None) -> dict[str, Any]:
    """PhaseGraph's arguments from what the options above read: ``lexical`` becomes the index's leg, or ``words``."""
    rest = {name: value for name, value in options.items() if not name.startswith("lexical")}
    detail = {name: options[name] for name in ("lexical_weight", "lexical_k") if options[name] is not None}
    if not options["lexical"]:
        if detail:
            raise InputError(f"--{next(iter(detail)).replace('_', '-')} is given without --lexical; add it")
        if words is not None:
            raise InputError("--words is given without --lexical; add it")
        return rest
    if index.lexical is None and words is None:
        raise InputError(
            "--lexical: the index has no lexical part; build it with `hopfuse build --lexical`, or give --words"
        )
    return {**rest, **detail, "lexical": words_of(index, words)}


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
