"""``--recipe`` and its options: make the recipe that a command runs, and check what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

from .. import Index
from .._validation import check_excludes, check_needs
from ..encoders import Encoder
from ..errors import InputError
from ..lexical import BM25, FTS5, leg_of, words_of
from ..llm import ChatEndpoint
from ..recipes import RECIPES, AllowScope, Policy, PolicyRAG, Recipe, apply_options
from .checks import Rule, check_rules, stated
from .config_options import option_files, read_options
from .filters import read_filter
from .naming import given_parameters
from .options import ENDPOINT_OPTIONS, FILE, check_dim, endpoint_options, make_endpoint
from .run.policy import read_policy

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
LEGS = ("auto", "bm25", "fts5", "none")
#: Options about a language model, and what they need.
MODEL_NEEDS: tuple[Rule, ...] = (
    *((name, "model", "the name of a language model") for name in (*ENDPOINT_OPTIONS, "answers")),
    ("model", ("answers", "policy with facts.gate = llm"), "which ask it"),
)
#: Parts of an index, and the options of ``hopfuse build`` that make them.
PARTS = {
    "corpus": "no vectors (--encoder or --vectors)",
    "graph": "no graph (--edges, --from or --reader)",
    "facts": "no facts (--facts, --from or --reader)",
    "entity_corpus": "no vectors of entities (--encoder or --entity-vectors)",
}


threads_option = click.option(
    "--threads", type=int, help="CPU threads.  [default: HOPFUSE_NUM_THREADS, else all processors]"
)

# ---- Options ---------------------------------------------------------------------------------------------------------


def recipe_options(command: F) -> F:
    """Add the options of recipes and ``--threads``; :func:`bind` takes them."""
    return config_options(threads_option(command))


def config_options(command: F) -> F:
    """Add the options that decide what a recipe finds; the COMMON ones are made from fields of the configs."""
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
        click.option(
            "--lexical",
            is_flag=False,
            flag_value="auto",
            type=click.Choice(LEGS),
            help="Lexical list: bm25 (the index's own, else built at the start), fts5 (SQLite's), auto (bm25 if bm25s "
            "is installed, else fts5) or none.  [default: auto for hybrid-rrf, the index's own for guided-walk, else "
            "none]",
        ),
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
            "--allow-scope",
            type=click.Choice(("isolated", "results")),
            help="With --allow or --where: answer as if the index had only these passages (isolated), or only filter "
            "the results.  [default: isolated]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _field_option(name: str) -> Callable[[F], F]:
    """Return an option made from the field that recipes' configs have under a name."""
    found = {recipe: _field(recipe, name) for recipe in RECIPES}
    owners = {recipe: field for recipe, field in found.items() if field is not None}
    first = next(iter(owners.values()))
    help = f"{first.metadata['doc']}  [{', '.join(owners)}]"
    return click.option(f"--{name.replace('_', '-')}", type=first.metadata["type"], help=help)


def _field(recipe: str, name: str) -> Any:
    return next((field for field in fields(RECIPES[recipe].Config) if field.name == name), None)


# ---- A recipe over an index ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoundRecipe:
    """A recipe over an index, with the arguments that a command passes to each search."""

    name: str
    recipe: Recipe
    ids: Sequence[Any]
    allow: NDArray[np.bool_] | None = None
    allow_scope: AllowScope = "isolated"

    @property
    def purpose(self) -> str:
        """What the text of a question is needed for, as words of an error; empty if it is not needed."""
        if not self.recipe.needs.texts:
            return ""
        leg = getattr(self.recipe, "lexical", None)
        return f"for {self.name}" if leg is None else f"for {type(leg).__name__}'s list"

    @property
    def alone(self) -> NDArray[np.bool_] | None:
        """The allowed passages if the filter isolates them, else None."""
        return self.allow if self.allow_scope == "isolated" else None

    def search(self, texts: list[str] | None, vectors: Any, entities: Any, k: int, *, trace: bool = False) -> Any:
        """Return the recipe's own result."""
        options: dict[str, Any] = {"allow": self.allow, "allow_scope": self.allow_scope, "trace": trace}
        return self.recipe.search(texts, vectors=vectors, entities=entities, k=k, **options)

    def check(self, k: int) -> Any:
        """Run a search of no questions, so that errors of every search are raised early; return its result."""
        index, needs = self.recipe.index, self.recipe.needs
        corpus = index.entity_corpus if self.name == "triple-hybrid" else index.corpus
        vectors = np.zeros((0, corpus.dim), np.float32) if needs.vectors and corpus is not None else None
        return self.search([] if needs.texts else None, vectors, [] if needs.entities else None, k)


def default_recipe(index: Index) -> str:
    """Return the name of the recipe that searches an index by default."""
    return "hybrid-rrf" if RECIPES["guided-walk"].missing(index) else "guided-walk"


def hit_ids(index: Index, options: Mapping[str, Any]) -> Sequence[str | int]:
    """Return the ids of hits by row: names of entities for triple-hybrid, else ids of passages."""
    name = options.get("recipe") or default_recipe(index)
    return index.entity_names if name == "triple-hybrid" else index.passage_ids


def bind(
    index: Index,
    options: Mapping[str, Any],
    *,
    encoder: Encoder | None = None,
    llm: Any = None,
) -> BoundRecipe:
    """Return the recipe that the options of :func:`recipe_options` describe.

    Raises
    ------
    InputError
        An option that the recipe does not have, or an index that it cannot run on.
    """
    name = options.get("recipe") or default_recipe(index)
    kind: Any = RECIPES[name]
    config = config_of(name, options)
    check_index(name, index, config)
    given: dict[str, Any] = {"encoder": encoder, "threads": options.get("threads")}
    lexical = options.get("lexical")
    if "lexical" in signature(kind).parameters:
        given["lexical"] = lexical_leg(name, index, config, lexical)
        for field in ("lexical_k", "lexical_weight"):
            check_needs(field, options.get(field), "lexical", given["lexical"], "whose list it is about")
    elif lexical is not None:
        raise unread("lexical", name)
    if kind is PolicyRAG:
        given |= {"llm": llm, "fact_vectors": fact_vectors(index, config, encoder)}
        if llm is None and config.switches.gate and config.facts.gate == "llm":
            raise no_model()
    recipe = kind(index, config, **given)
    allow = read_filter(options, index)
    check_needs("allow_scope", options.get("allow_scope"), ("allow", "where"), allow)
    return BoundRecipe(name, recipe, hit_ids(index, options), allow, options.get("allow_scope") or "isolated")


def config_of(name: str, options: Mapping[str, Any]) -> Any:
    """Return the config of a recipe with the fields that a command's options give."""
    kind: Any = RECIPES[name].Config
    if kind is Policy:
        config = read_policy(options.get("policy"))
    elif options.get("policy") is not None:
        raise unread("policy", name, ("policy-rag",))
    else:
        config = kind()
    given = [(field, options.get(field)) for field in COMMON if options.get(field) is not None]
    for field, _ in given:
        if _field(name, field) is None:
            raise unread(field, name, [recipe for recipe in RECIPES if _field(recipe, field) is not None])
    settings = [*options.get("settings", ()), *(f"{field}={value}" for field, value in given)]
    return apply_options(config, read_options(kind, settings), name)


def unread(field: str, recipe: str, readers: Sequence[str] = ()) -> InputError:
    """Return the error for an option that a recipe does not read; ``readers`` are those that do."""
    return InputError(
        "unused",
        field,
        "{field} is given, and {recipe} does not read it{others}; leave it out",
        recipe=recipe,
        others=f", as {', '.join(readers)} would" if readers else "",
    )


def no_model() -> InputError:
    """Return the error for a policy that asks a language model, without one."""
    return InputError(
        "missing",
        "model",
        'the policy has facts.gate = "llm", which needs {field} and {@endpoint}; give them to hopfuse score, search or '
        'trace, or set facts.gate to "rules"',
    )


def read_files(options: Mapping[str, Any]) -> dict[str, Path | None]:
    """Return the files that a recipe's options name, by option."""
    allow = options.get("allow")
    files: dict[str, Path | None] = {"policy": options.get("policy")}
    if allow is not None and Path(allow).is_file():
        files["allow"] = Path(allow)
    for name in RECIPES if options.get("recipe") is None else (options["recipe"],):
        files |= option_files(options.get("settings", ()), RECIPES[name].Config)
    return files


def check_index(name: str, index: Index, config: Any = None) -> None:
    """Refuse an index that a recipe cannot run on, with an error that names the options of ``hopfuse build``."""
    kind: Any = RECIPES[name]
    lacks = kind.missing(index, config)
    if lacks is not None:
        absent = [words for part, words in PARTS.items() if part in lacks.allowed and getattr(index, part) is None]
        raise InputError(
            "missing",
            "index",
            "{field} has {parts}, so {recipe} cannot run on it; build the index with them, or {fix}",
            recipe=name,
            parts=" and ".join(absent),
            fix="choose --recipe hybrid-rrf, which runs on it" if name != "hybrid-rrf" else "give --lexical",
        )


def fact_vectors(index: Index, policy: Policy, encoder: Encoder | None) -> Any:
    """Return vectors of all facts for PolicyRAG, or None without an encoder."""
    if encoder is not None and index.facts is not None:
        return encoder.encode_passages(index.facts.texts(index.entity_names))
    if policy.facts.scope == "all":
        raise InputError(
            "missing", "encoder", 'the policy has facts.scope = "all", which needs {field}, and an index with facts'
        )
    return None


# ---- Words -----------------------------------------------------------------------------------------------------------


def lexical_leg(name: str, index: Index, config: Any, kind: str | None) -> BM25 | FTS5 | None:
    """Return the leg of ``--lexical``: over the entities' names for triple-hybrid, else over the passages.

    By default, guided-walk uses the index's own if there is one, and hybrid-rrf makes one for any index.
    """
    if name == "triple-hybrid":
        if config.mode == "lexical":
            return leg_of(list(index.entity_names), kind or "auto")
        if kind not in (None, "none"):
            check_needs("lexical", kind, "option mode=lexical", None, "with which triple-hybrid reads it")
        return None
    if kind is None and name == "guided-walk" and index.lexical is not None:
        return words_of(index)
    kind = kind or ("auto" if name == "hybrid-rrf" else "none")
    return None if kind == "none" else words_of(index, kind)


# ---- Where questions' vectors come from, and which options a recipe reads --------------------------------------------


def check_given(bound: BoundRecipe, vectors: Path | None, encoder: Any) -> None:
    """Refuse vectors or an encoder that the recipe does not use, and the lack of both if it needs vectors."""
    needs, index = bound.recipe.needs, bound.recipe.index
    encodes_names = needs.entities and index.entity_corpus is not None
    encodes_facts = isinstance(bound.recipe, PolicyRAG) and index.facts is not None
    if not needs.vectors:
        if vectors is not None:
            raise unread("vectors", bound.name)
        if encoder is not None and not (encodes_names or encodes_facts):
            raise unread("encoder", bound.name)
    elif vectors is None and encoder is None:
        raise InputError(
            "missing",
            "vectors",
            "{field} is missing, and {recipe} needs a vector of each question; give {field} or {@encoder}, the one "
            "that the index was built with",
            recipe=bound.name,
        )
    elif vectors is not None and encoder is not None and not (encodes_names or encodes_facts):
        check_excludes("vectors", vectors, "encoder", encoder, "which has nothing else to encode")
    elif vectors is None:
        entities = bound.name == "triple-hybrid"
        corpus = index.entity_corpus if entities else index.corpus
        if corpus is not None:
            check_dim("encoder", encoder.dim, corpus.dim, "entities" if entities else "passages")


def check_names(bound: BoundRecipe) -> None:
    """Refuse options about names in questions if the recipe reads none."""
    context = click.get_current_context()
    for option in ("entities", "case_sensitive"):
        if option in given_parameters(context) and not bound.recipe.needs.entities:
            raise unread(option, bound.name)


# ---- A language model ------------------------------------------------------------------------------------------------


def answering_options(command: F) -> F:
    """Add ``--answers`` and the model's options; :func:`language_model` reads them."""
    command = endpoint_options("so that no request is repeated")(command)
    return click.option(
        "--answers",
        is_flag=True,
        help="With policy-rag: have --model answer from the first hits; see [answers] of the policy.",
    )(command)


def language_model(recipe: str | None, policy: Path | None, options: Mapping[str, Any]) -> ChatEndpoint | None:
    """Return policy-rag's language model, or None; refuse one that is needed but not named, or named but not needed."""
    if recipe != "policy-rag":
        for name in ("answers", "model", *ENDPOINT_OPTIONS):
            if stated(options, name) is not None:
                raise unread(name, recipe or "the default recipe", ("policy-rag",))
        return None
    rules = read_policy(policy)
    gated = rules.switches.gate and rules.facts.gate == "llm"
    check_rules({**options, "policy with facts.gate = llm": gated}, needs=MODEL_NEEDS)
    if options["model"] is not None:
        return make_endpoint(options)
    if gated:
        raise no_model()
    return None
