"""``--recipe``: which recipe a command runs, and which options it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from click.core import ParameterSource

from .. import Index, Triples
from ..encoders import Encoder
from ..errors import InputError
from ..lexical import BM25, FTS5
from ..recipes import HybridRRF, PhaseGraph, Policy, PolicyRAG, TripleHybrid
from .options import FILE, recipe_arguments
from .policy import read_policy
from .recipe_settings import MADE_BY, option_names, read_settings
from .words import leg_of, words_of

F = TypeVar("F", bound=Callable[..., Any])
Recipe = PhaseGraph | PolicyRAG | HybridRRF | TripleHybrid

RECIPES = tuple(MADE_BY)
_PHASE = {"alpha", "dense_k", "graph_k", "damping", "consensus", "passage_seeds"}
_NAMES = {"entities", "case_sensitive"}
_POLICY = "What policy-rag does; see hopfuse policy.  [default: its own]"
_RECIPE = "policy-rag encodes all facts of the index at the start where it has an encoder."
#: What PhaseGraph is given where a command has no options of a lexical leg.
_NO_WORDS = {"lexical": False, "lexical_k": None, "lexical_weight": None}
#: Of the options that only some recipes read, those that each reads.
READS = {
    "phase-graph": _PHASE | _NAMES | {"lexical", "lexical_k", "lexical_weight", "words"},
    "policy-rag": {"policy", "answers", "model", "endpoint", "cache", "concurrency"} | _NAMES,
    "hybrid-rrf": {"dense_k", "graph_k", "damping", "lexical_k", "words"} | _NAMES,
    "triple-hybrid": {"words"},
}


def recipe_choice(command: F) -> F:
    """``--recipe`` and ``--policy``, as arguments ``chosen`` and ``policy``."""
    option = click.option("--policy", type=FILE, help=_POLICY)
    command = option(command)
    names = click.Choice(RECIPES)
    return click.option("--recipe", "chosen", type=names, default=RECIPES[0], show_default=True, help=_RECIPE)(command)


def check_read(chosen: str) -> None:
    """Refuse options of the command that are given, and that the chosen recipe does not read."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        owners = [recipe for recipe, read in READS.items() if name in read]
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if owners and chosen not in owners and given:
            does = f"{', '.join(owners)} {'does' if len(owners) == 1 else 'do'}"
            fix = _instead(chosen, name, context)
            raise InputError(f"{parameter.opts[0]} is given, and {chosen} does not read it; {does}: {fix}")


def _instead(chosen: str, name: str, context: click.Context) -> str:
    """What to do about an option that is not read: the recipe may have the same argument by ``--option``."""
    by_option = "settings" in context.params and name in option_names(chosen, READS[chosen])
    return f"give --option {name}={context.params[name]}" if by_option else "leave it out"


@dataclass(frozen=True, eq=False)
class Chosen:
    """A recipe over an index: asked alike, whichever it is.

    ``asked``: what every search is given beside its questions.
    """

    name: str
    recipe: Recipe
    ids: Sequence[str]
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """What needs the questions' words, besides their vectors and entities; nothing, where that is empty."""
        if isinstance(self.recipe, PhaseGraph):
            return "" if self.leg is None else f"{self.leg}'s list"
        return self.name

    @property
    def leg(self) -> str | None:
        """Whose words count: the name of the lexical leg's class."""
        leg = getattr(self.recipe, "lexical", None)
        return None if leg is None else type(leg).__name__

    @property
    def reads_entities(self) -> bool:
        """Whether it needs the names in the questions."""
        if isinstance(self.recipe, HybridRRF):
            return self.recipe.index.graph is not None
        return not isinstance(self.recipe, TripleHybrid)

    def search(
        self, texts: list[str] | None, vectors: Any, entities: Sequence[Sequence[Any]] | None, k: int, **options: Any
    ) -> Any:
        """The recipe's own result."""
        recipe: Any = self.recipe
        named = {} if isinstance(self.recipe, TripleHybrid) else {"entities": entities}
        return recipe.search(texts, vectors=vectors, k=k, **named, **self.asked, **options)

    def answer(self, texts: list[str], found: Any) -> list[str]:
        """Policy-rag's answers by its language model, from what a search found."""
        assert isinstance(self.recipe, PolicyRAG)
        return self.recipe.answer(texts, found)

    def check(self) -> None:
        """An empty search, which refuses what every search would be given."""
        corpus = self.recipe.corpus if isinstance(self.recipe, TripleHybrid) else self.recipe.index.corpus
        self.search([], None if corpus is None else np.zeros((0, corpus.dim), np.float32), [], 1)


def make_chosen(
    name: str,
    index: Index,
    encoder: Encoder | None,
    policy: Path | None,
    options: Mapping[str, Any],
    *,
    settings: Sequence[str] = (),
    words: str | None = None,
    llm: Any = None,
) -> Chosen:
    """The recipe of a name, with those of the command's options that it reads.

    ``settings``, ``words`` and ``llm``: what ``--option`` and ``--words`` are given, and policy-rag's language model.
    """
    made, asked = read_settings(name, settings, READS[name])
    threads = options["threads"]
    if name == "triple-hybrid":
        lexical = _entity_words(index, words, asked)
        recipe: Recipe = triple_hybrid(index, encoder, threads, lexical=lexical, **made)
    elif name == "policy-rag":
        rules = read_policy(policy)
        recipe = policy_rag(index, rules, encoder, threads, llm=llm, **made)
    elif name == "hybrid-rrf":
        read = {key: options[key] for key in READS[name] if options.get(key) is not None}
        recipe = HybridRRF(index, lexical=words_of(index, words), encoder=encoder, threads=threads, **read, **made)
    else:
        arguments = recipe_arguments(index, {**_NO_WORDS, **options}, words)
        recipe = PhaseGraph(index, encoder=encoder, **arguments, **made)
    chosen = Chosen(name, recipe, index.entity_names if name == "triple-hybrid" else index.passage_ids, asked)
    if asked:
        chosen.check()
    return chosen


def policy_rag(
    index: Index, policy: Policy, encoder: Encoder | None, threads: int | None, *, llm: Any = None, **settings: Any
) -> PolicyRAG:
    """PolicyRAG; where there is an encoder, it gives all facts of the index their vectors."""
    if policy.switches.gate and policy.facts.gate == "llm" and llm is None:
        raise InputError(
            'the policy has facts.gate = "llm", which needs a language model; set it to "rules", or use hopfuse score '
            "or explain with --model"
        )
    vectors = None
    if encoder is not None and index.facts is not None:
        vectors = encoder.encode_passages(index.facts.texts(index.entity_names))
    elif policy.facts.scope == "all":
        raise InputError('the policy has facts.scope = "all": give --encoder, and an index with facts')
    options = {"encoder": encoder, "fact_vectors": vectors, "llm": llm, "threads": threads}
    return PolicyRAG(index, policy, **options, **settings)


def _entity_words(index: Index, words: str | None, asked: Mapping[str, Any]) -> BM25 | FTS5 | None:
    """TripleHybrid's lexical leg, over the entities' names: one mode reads it."""
    if asked.get("mode") == "lexical":
        return leg_of(list(index.entity_names), words)
    if words is not None:
        raise InputError("--words is given, and triple-hybrid reads words with --option mode=lexical alone")
    return None


def triple_hybrid(index: Index, encoder: Encoder | None, threads: int | None, **settings: Any) -> TripleHybrid:
    """TripleHybrid over an index's entities and facts: its hits are entities."""
    if index.facts is None or index.entity_corpus is None:
        lacks = "facts" if index.facts is None else "vectors of its entities"
        raise InputError(f"triple-hybrid: the index has no {lacks}; build it with --facts and --entity-vectors")
    names, relations = list(index.entity_names), index.facts.relations
    rows = [(names[head], relations[kind], names[tail]) for head, kind, tail in index.facts.rows.tolist()]
    return TripleHybrid(Triples(rows, names), index.entity_corpus, encoder=encoder, threads=threads, **settings)
