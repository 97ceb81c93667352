"""``--recipe`` and its options, as arguments of :class:`hopfuse.Retriever`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import Index, Retriever
from .._validation import check_needs
from ..llm import ChatEndpoint
from ..recipes import RECIPES, apply_options
from ..retriever import WORDS, recipe_class
from .config_options import option_files, read_options
from .filters import read_filter
from .options import ENDPOINT_OPTIONS, FILE, Rule, check_rules, endpoint_options, make_endpoint
from .policy import read_policy

F = TypeVar("F", bound=Callable[..., Any])

#: Fields of configs that have options of their own; the others are given by --option.
COMMON = (
    "alpha",
    "dense_k",
    "graph_k",
    "damping",
    "consensus",
    "passage_seeds",
    "lexical_weight",
    "lexical_k",
)
#: Options that need a language model.
MODEL_NEEDS: tuple[Rule, ...] = tuple(
    (name, "model", "the name of a language model") for name in (*ENDPOINT_OPTIONS, "answers")
)


threads_option = click.option(
    "--threads", type=int, help="CPU threads.  [default: HOPFUSE_NUM_THREADS, else all processors]"
)
words_option = click.option(
    "--words",
    is_flag=False,
    flag_value="auto",
    type=click.Choice(WORDS),
    help="List by words: bm25 (the index's own, else built at the start), fts5 (SQLite's), auto (bm25 if bm25s is "
    "installed, else fts5) or none. Also fts5:unicode61 (no stems) and fts5:trigram (parts of words).  [default: auto "
    "for hybrid-rrf, the index's own for guided-walk, else none]",
)

# ---- Options ---------------------------------------------------------------------------------------------------------


def recipe_options(command: F) -> F:
    """Add the options of recipes and ``--threads``; :func:`open_retriever` and :func:`search_options` take them."""
    return config_options(threads_option(command))


def config_options(command: F) -> F:
    """Add the options that decide what is found; the COMMON ones are made from fields of the configs."""
    options = (
        click.option(
            "--recipe",
            type=click.Choice(tuple(RECIPES)),
            help="How to rank passages.  [default: guided-walk if the index can run it, else hybrid-rrf]",
        ),
        click.option("--policy", type=FILE, help="Policy of policy-rag, .toml; see hopfuse policy."),
        *(_field_option(name) for name in COMMON),
        click.option(
            "--option",
            "settings",
            metavar="NAME=VALUE",
            multiple=True,
            help="Set a field of the recipe's config, such as mode=graph of triple-hybrid, weights=1,1,0.5 of "
            "hybrid-rrf, method=rrf with method.rank_constant=10 or edge_weights.synonym=0 of phase-graph, first=dense "
            "of guided-walk, walk.damping=0.7 of policy-rag. May be given several times; the error for an unknown name "
            "lists all fields.",
        ),
        words_option,
        click.option(
            "--allow",
            metavar="IDS|FILE",
            help="Only these passages: ids separated by commas, or a file with one id per line.",
        ),
        click.option(
            "--where",
            metavar="COLUMN__OPERATOR=VALUE",
            multiple=True,
            help="Only passages whose metadata matches: tenant=a, year__ge=2020, tags__any=x,y, day__exists=false. May "
            "be given several times; a passage must match them all, and --allow.",
        ),
        click.option(
            "--at",
            metavar="TIME",
            help="Only passages that are valid at this time, by their metadata valid_from and valid_to: "
            "2024-05-01T12:00:00Z, or a number if they are numbers.",
        ),
        click.option(
            "--allow-scope",
            type=click.Choice(("isolated", "results")),
            help="With --allow, --where or --at: answer as if the index had only these passages (isolated), or only "
            "filter the results.  [default: isolated]",
        ),
        click.option(
            "--per-document",
            type=click.IntRange(min=1),
            help="Largest number of passages of a document; of equal texts there is one.",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Refuse what is otherwise only noted: an entity that the index does not have, a vector that the "
            "recipe does not read, a question of which the index knows no word and no name.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _field_option(name: str) -> Callable[[F], F]:
    """Return an option made from the field that recipes' configs have under a name."""
    found = {recipe: one for recipe, kind in RECIPES.items() for one in fields(kind.Config) if one.name == name}
    first = next(iter(found.values()))
    help = f"{first.metadata['doc'].partition(chr(10))[0]}  [{', '.join(found)}]"
    return click.option(f"--{name.replace('_', '-')}", type=first.metadata["type"], help=help)


# ---- Arguments of a retriever and of its search ----------------------------------------------------------------------


def open_retriever(index: Index, options: Mapping[str, Any], **more: Any) -> Retriever:
    """Return the retriever that the options of :func:`recipe_options` describe; ``more`` are further arguments.

    Raises
    ------
    InputError
        As :class:`hopfuse.Retriever`.
    """
    given: dict[str, Any] = {name: options.get(name) for name in ("encoder", "words", "threads")}
    given["names"] = "case-sensitive" if options.get("case_sensitive") else None
    return Retriever(
        index,
        options.get("recipe"),
        config=config_of(recipe_class(index, options.get("recipe")).name, options),
        strict=bool(options.get("strict")),
        **{**given, **more},
    )


def config_of(recipe: str, options: Mapping[str, Any]) -> Any:
    """Return the config of a recipe with the fields that a command's options give."""
    common = [f"{name}={options[name]}" for name in COMMON if options.get(name) is not None]
    config = RECIPES[recipe].Config() if options.get("policy") is None else read_policy(options["policy"])
    return apply_options(config, read_options(type(config), [*options.get("settings", ()), *common]), recipe)


def search_options(index: Index, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of :meth:`hopfuse.Retriever.search` that do not depend on a question."""
    allow, scope = read_filter(options, index), options["allow_scope"]
    check_needs("allow_scope", scope, ("allow", "where", "at"), allow)
    found = {"k": options["k"], "allow": allow, "per_document": options["per_document"]}
    return found if scope is None else {**found, "allow_scope": scope}


def read_files(options: Mapping[str, Any]) -> dict[str, Path | None]:
    """Return the files that a recipe's options name, by option."""
    allow = options.get("allow")
    files: dict[str, Path | None] = {"policy": options.get("policy")}
    if allow is not None and Path(allow).is_file():
        files["allow"] = Path(allow)
    for name in RECIPES if options.get("recipe") is None else (options["recipe"],):
        files |= option_files(options.get("settings", ()), RECIPES[name].Config)
    return files


# ---- A language model ------------------------------------------------------------------------------------------------


def answering_options(command: F) -> F:
    """Add ``--answers`` and the model's options; :func:`language_model` reads them."""
    command = endpoint_options("so that no request is repeated")(command)
    return click.option(
        "--answers",
        is_flag=True,
        help="With policy-rag: have --model answer from the first hits; see [answers] of the policy.",
    )(command)


def language_model(options: Mapping[str, Any]) -> ChatEndpoint | None:
    """Return the language model that the options name, or None; refuse options of a model that is not named."""
    check_rules(options, needs=MODEL_NEEDS)
    return None if options["model"] is None else make_endpoint(options)


def check_answers(retriever: Retriever, options: Mapping[str, Any]) -> None:
    """Refuse answers that the recipe does not give, and a language model that nothing asks; before any request."""
    if options["answers"]:
        retriever.answer([], retriever.check(options["k"]))
    elif options["model"] is not None and not getattr(retriever.recipe.config, "asks_model", False):
        check_needs("model", options["model"], ("answers", "policy with facts.gate = llm"), None, "which ask it")
