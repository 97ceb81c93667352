"""``--recipe``: which recipe a command runs, and which options it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from .. import Index, Triples
from ..encoders import Encoder
from ..errors import InputError
from ..lexical import BM25, FTS5
from ..recipes import HybridRRF, PhaseGraph, Policy, PolicyRAG, TripleHybrid
from .options import FILE, recipe_arguments
from .policy import read_policy

F = TypeVar("F", bound=Callable[..., Any])
Recipe = PhaseGraph | PolicyRAG | HybridRRF | TripleHybrid

RECIPES = ("phase-graph", "policy-rag", "hybrid-rrf", "triple-hybrid")
_PHASE = {"alpha", "dense_k", "graph_k", "damping", "consensus", "passage_seeds"}
_NAMES = {"entities", "case_sensitive"}
#: What PhaseGraph is given where a command has no options of a lexical leg.
_NO_WORDS = {"lexical": False, "lexical_k": None, "lexical_weight": None}
#: Of the options that only some recipes read, those that each reads.
READS = {
    "phase-graph": _PHASE | _NAMES | {"lexical", "lexical_k", "lexical_weight"},
    "policy-rag": {"policy"} | _NAMES,
    "hybrid-rrf": {"dense_k", "graph_k", "damping", "lexical_k"} | _NAMES,
    "triple-hybrid": set[str](),
}


def recipe_choice(command: F) -> F:
    """``--recipe`` and ``--policy``, as arguments ``chosen`` and ``policy``."""
    option = click.option("--policy", type=FILE, help="What policy-rag does; see hopfuse policy.  [default: its own]")
    command = option(command)
    names = click.Choice(RECIPES)
    return click.option("--recipe", "chosen", type=names, default=RECIPES[0], show_default=True)(command)


def check_read(chosen: str) -> None:
    """Refuse options of the command that are given, and that the chosen recipe does not read."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        owners = [recipe for recipe, read in READS.items() if name in read]
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if owners and chosen not in owners and given:
            raise InputError(f"{parameter.opts[0]} is given, and {chosen} does not read it; {', '.join(owners)} does")


@dataclass(frozen=True, eq=False)
class Chosen:
    """A recipe over an index: asked alike, whichever it is."""

    name: str
    recipe: Recipe
    ids: Sequence[str]

    @property
    def words(self) -> str:
        """What needs the questions' words, besides their vectors and entities; nothing, where that is empty."""
        if isinstance(self.recipe, PhaseGraph):
            return "" if self.recipe.lexical is None else "BM25's list"
        return self.name

    @property
    def reads_entities(self) -> bool:
        """Whether it needs the names in the questions."""
        return not isinstance(self.recipe, TripleHybrid)

    def search(
        self, texts: list[str] | None, vectors: Any, entities: Sequence[Sequence[Any]] | None, k: int, **options: Any
    ) -> Any:
        """The recipe's own result."""
        if isinstance(self.recipe, TripleHybrid):
            return self.recipe.search(texts or [], vectors=vectors, k=k, **options)
        recipe: Any = self.recipe
        return recipe.search(texts, vectors=vectors, entities=entities, k=k, **options)


def make_chosen(
    name: str, index: Index, encoder: Encoder | None, policy: Path | None, options: Mapping[str, Any]
) -> Chosen:
    """The recipe of a name, with those of the command's options that it reads."""
    threads = options["threads"]
    if name == "triple-hybrid":
        return Chosen(name, triple_hybrid(index, encoder, threads), index.entity_names)
    if name == "policy-rag":
        recipe: Recipe = policy_rag(index, Policy() if policy is None else read_policy(policy), encoder, threads)
    elif name == "hybrid-rrf":
        read = {key: options[key] for key in READS[name] if options.get(key) is not None}
        recipe = HybridRRF(index, lexical=words_of(index), encoder=encoder, threads=threads, **read)
    else:
        recipe = PhaseGraph(index, encoder=encoder, **recipe_arguments(index, {**_NO_WORDS, **options}))
    return Chosen(name, recipe, index.passage_ids)


def words_of(index: Index) -> BM25 | FTS5:
    """BM25 where the index was built with it, else SQLite's."""
    if index.lexical is not None:
        return BM25(index.lexical)
    return FTS5.build([f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)])


def policy_rag(index: Index, policy: Policy, encoder: Encoder | None, threads: int | None) -> PolicyRAG:
    """PolicyRAG by rules; where all facts are candidates, the encoder gives them their vectors."""
    if policy.switches.gate and policy.facts.gate == "llm":
        raise InputError(
            'the policy has facts.gate = "llm", and the command line has no model; set it to "rules", or use '
            "hopfuse.recipes.PolicyRAG with llm="
        )
    vectors = None
    if policy.facts.scope == "all":
        if encoder is None or index.entity_corpus is None or index.facts is None:
            raise InputError(
                'the policy has facts.scope = "all": give --encoder, and an index with facts and --entity-vectors of it'
            )
        names, relations = index.entity_names, index.facts.relations
        rows = index.facts.rows.tolist()
        vectors = encoder.encode_passages([f"{names[a]} {relations[r]} {names[b]}" for a, r, b in rows])
    return PolicyRAG(index, policy, encoder=encoder, fact_vectors=vectors, threads=threads)


def triple_hybrid(index: Index, encoder: Encoder | None, threads: int | None) -> TripleHybrid:
    """TripleHybrid over an index's entities and facts: its hits are entities."""
    if index.facts is None or index.entity_corpus is None:
        lacks = "facts" if index.facts is None else "vectors of its entities"
        raise InputError(f"triple-hybrid: the index has no {lacks}; build it with --facts and --entity-vectors")
    names, relations = list(index.entity_names), index.facts.relations
    rows = [(names[head], relations[kind], names[tail]) for head, kind, tail in index.facts.rows.tolist()]
    return TripleHybrid(Triples(rows, names), index.entity_corpus, encoder=encoder, threads=threads)
