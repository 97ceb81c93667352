"""The policy of PolicyRAG: its options, and their TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, ClassVar

from ..._validation import check_names, check_number, check_type
from ...errors import InputError
from .._parts.config import apply_options, check_options, option

VERSION = 1
MAX_FAMILY_WEIGHT = 1e30
"""Limit of family weights, which multiply float32 edge weights."""


FILTER_PROMPT = """
You choose facts that help to answer a question. You get the question and numbered facts, each a head, a relation and a
tail. Choose the smallest set that leads from the question to its answer, at most {keep}: direct facts before context,
few bridges, what is specific before what is general. Choose none that has nothing to do with the question.

Question: {question}

Facts:
{facts}

In "keep" give the numbers of the chosen facts, the most telling first.
"""

ANSWER_PROMPT = """
Answer the question from the passages alone, as briefly as you can: a name, a date or a few words. Use nothing that the
passages do not say. If they do not hold the answer, write exactly: {not_found}

{passages}

Question: {question}
"""


@dataclass(frozen=True)
class _Section:
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_options(self, f"{self.name}.")


@dataclass(frozen=True)
class SeedRules(_Section):
    """Rules that choose where a walk starts."""

    name = "seeds"

    source: str = option(
        "entities",
        "Candidates: entities that the question names (entities), entities near its vector (question), or both.",
        choices=("entities", "question", "both"),
    )
    nearest: int = option(5, "Number of entities nearest to the question by vector, if these are candidates.", low=1)
    most: int = option(5, "Phrase seeds of a question at most; those with the best kept facts come first.", low=1)
    lexical: float = option(1.0, "Weight of the name's similarity to the question in align(e, q).", low=0)
    embedding: float = option(0.5, "Weight of the vector's cosine with the question's in align(e, q).", low=0)
    threshold: float = option(
        0.8, "Smallest cosine at which an unknown name matches the nearest entity by vector.", low=-1, high=1
    )
    ambiguous: int = option(3, "aliasOK(e, q) is 0 if an alias in the question names more entities than this.", low=1)
    passages: float = option(
        0.05,
        "w_p: restart mass of the passages nearest to the question, relative to 1 for entities.\n"
        "Needs passage nodes in the walk.",
        low=0,
    )
    passage_list: int = option(30, "Number of passages that share it, by min-max calibrated similarity.", low=1)


@dataclass(frozen=True)
class FactRules(_Section):
    """Rules that choose the facts that support a seed."""

    name = "facts"

    scope: str = option(
        "seeds",
        "Facts to choose from: those around the candidates, or all (which needs vectors of the facts).",
        choices=("seeds", "all"),
    )
    candidates: int = option(5, "Number of facts most similar to the question that the gate sees.", low=1)
    gate: str = option("rules", "Gate: the rules of the recipe, or a language model.", choices=("rules", "llm"))
    keep: int = option(4, "Number of facts that the gate keeps, at most.", low=1)
    duplicate: float = option(
        0.8, "Similarity of relations at which two facts with the same ends are duplicates.", low=0, high=1
    )


@dataclass(frozen=True)
class WalkRules(_Section):
    """The typed walk: v = damping * T'v + (1 - damping) * s, T = sum of weight * rownorm(edges of a type)."""

    name = "walk"

    damping: float = option(0.85, "Damping, 1 - alpha in the paper.", low=0, high=0.999)
    relation: float = option(1.0, "eta of the relations between entities.", low=0, high=1)
    synonym: float = option(1.0, "eta of the synonyms.", low=0, high=1)
    context: float = option(1.0, "eta between passages and their entities; above 0, passages are nodes.", low=0, high=1)
    edge_type_norm: str = option(
        "joint",
        "Normalise rows for each type (weights of types then sum to at most 1), or over all types.",
        choices=("per_type", "joint"),
    )
    tol: float = option(1e-6, "Bound on the L1 error of a walk.", low=1e-12, high=1)


@dataclass(frozen=True)
class ProjectionRules(_Section):
    """From nodes to passages: u = v or u = B'v, then u / (length^beta * IPF^gamma), then u / max(u)."""

    name = "projection"

    source: str = option(
        "passages",
        "Source of a passage's score: its own node (passages), which the walk reaches through its entities; or\n"
        "the sum over its entities and, if passages are nodes, its own node (entities), which favours passages\n"
        "that mention the seeds themselves.",
        choices=("passages", "entities"),
    )
    row_normalised: bool = option(
        False, "With the source entities: the entities of a passage share a weight of 1, instead of 1 each."
    )
    beta: float = option(0.25, "Power of the passage's length in words, divided by the mean length.", low=0, high=1)
    gamma: float = option(
        0.0, "Power of the mean of 1 + document frequency over the passage's entities.", low=0, high=1
    )


@dataclass(frozen=True)
class RerankingRules(_Section):
    """S = u + title * phi_title + coverage * phi_cov + path * phi_path - hub * phi_hub, each phi in [0, 1]."""

    name = "reranking"

    pool: int = option(100, "Number of passages that are re-ranked.", low=1)
    title: float = option(0.0, "Weight of the share of the title's words that are in question or kept facts.", low=0)
    coverage: float = option(0.0, "Weight of the share of seed mass on entities that the passage mentions.", low=0)
    path: float = option(0.0, "Weight of the share of kept facts, by score, that the passage states.", low=0)
    hub: float = option(0.0, "Weight of the share of the passage's entities that are hubs, subtracted.", low=0)
    hub_share: float = option(
        0.01, "Entities that more than this share of the passages mention are hubs.", low=0, high=1
    )


@dataclass(frozen=True)
class Switches(_Section):
    """Switches that leave out parts, for ablations."""

    name = "switches"

    specificity: bool = option(True, "Seeds weigh 1 / (1 + document frequency).")
    gate: bool = option(True, "The gate chooses among the facts; without it, all are kept.")
    synonym_edges: bool = option(True, "The walk uses synonym edges.")
    relation_edges: bool = option(True, "The walk uses relation edges.")
    passage_nodes: bool = option(
        True, "Passages are nodes of the walk; if not, none is a seed, and scores are read from entities."
    )
    normalisation: bool = option(True, "Projected scores are divided by length and IPF.")
    reranking: bool = option(True, "Scores include the re-ranking terms.")
    dense_fallback: bool = option(True, "A question without seeds is ranked by vectors; if off, it has no hits.")


@dataclass(frozen=True)
class AnswerRules(_Section):
    """Prompts for a language model, and the answer if the passages hold none."""

    name = "answers"

    passages: int = option(5, "Number of passages in the prompt for an answer.", low=1)
    not_found: str = option("Not found in retrieved context", "The answer if the passages hold none.")
    prompt: str = option(ANSWER_PROMPT, "Prompt for an answer: {question}, {passages} and {not_found} are filled in.")
    filter_prompt: str = option(FILTER_PROMPT, "Prompt of the gate: {question}, {facts} and {keep} are filled in.")


@dataclass(frozen=True)
class Policy:
    """The options of :class:`PolicyRAG`; :meth:`to_toml` writes them with comments. Immutable.

    Attributes
    ----------
    seeds, facts, walk, projection, reranking, switches, answers
        Sections; every key has a default.
    families : dict of str to float
        Weight of each family (edge type) among the relations; 1 if absent.

    Raises
    ------
    InputError
        A value of the wrong type or out of its range, or options that contradict each other.

    Examples
    --------
    >>> from hopfuse.recipes import Policy
    >>> policy = Policy.from_toml("version = 1\\n[walk]\\nsynonym = 0.5\\n[seeds]\\npassages = 0.0")
    >>> policy.walk.damping, policy.walk.synonym
    (0.85, 0.5)
    >>> Policy.from_toml(policy.to_toml()) == policy
    True
    """

    seeds: SeedRules = field(default_factory=SeedRules)
    facts: FactRules = field(default_factory=FactRules)
    walk: WalkRules = field(default_factory=WalkRules)
    projection: ProjectionRules = field(default_factory=ProjectionRules)
    reranking: RerankingRules = field(default_factory=RerankingRules)
    switches: Switches = field(default_factory=Switches)
    answers: AnswerRules = field(default_factory=AnswerRules)
    families: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in SECTIONS.items():
            check_type(getattr(self, name), name, kind, f"a {kind.__name__}")
        check_type(self.families, "families", Mapping, "a mapping of names of families to weights")
        for family, weight in self.families.items():
            check_type(family, "families", str, "a mapping of strings")
            check_number(weight, f"families.{family}", low=0, high=MAX_FAMILY_WEIGHT)
        total = self.walk.relation + self.walk.synonym + self.walk.context
        if self.walk.edge_type_norm == "per_type" and total > 1 + 1e-12:
            raise InputError(
                "range",
                "walk",
                "relation, synonym and context of {field} sum to {given:g}; under per_type it is at most {allowed}",
                given=total,
                allowed=1,
            )
        if total == 0:
            raise InputError("zero", "walk", "relation, synonym and context of {field} are all 0; a walk needs edges")
        if self.seeds.lexical == 0 and self.seeds.embedding == 0:
            raise InputError("zero", "seeds", "lexical and embedding of {field} are both 0; no entity could be a seed")
        reads_passages = {
            "seeds.passages": (self.seeds.passages, self.seeds.passages > 0),
            "projection.source": (self.projection.source, self.projection.source == "passages"),
        }
        for name, (value, reads) in reads_passages.items():
            if reads and self.walk.context == 0:
                raise InputError(
                    "conflict",
                    name,
                    "{field} is {given!r}, and walk.context = 0 leaves passages out of the walk; change one of them",
                    given=value,
                )
        for name, needed in _PLACES.items():
            absent = [place for place in needed if place not in getattr(self.answers, name)]
            if absent:
                raise InputError(
                    "missing",
                    f"answers.{name}",
                    "{field} has no {missing}; it needs {allowed}",
                    missing=absent[0],
                    allowed=", ".join(needed),
                )

    @property
    def passage_mass(self) -> float:
        """Restart mass of passages, relative to 1 for entities."""
        return self.seeds.passages if self.switches.passage_nodes else 0.0

    @property
    def reads_vectors(self) -> bool:
        """Return whether a search finds the passages nearest to a question."""
        return self.passage_mass > 0 or self.switches.dense_fallback

    @property
    def asks_model(self) -> bool:
        """Return whether a search asks a language model which facts to keep."""
        return self.switches.gate and self.facts.gate == "llm"

    @property
    def edge_type_weights(self) -> tuple[float, float, float]:
        """Weights of relations, synonyms and context in the walk; 0 for a type that is switched off."""
        walk, on = self.walk, self.switches
        return (
            walk.relation if on.relation_edges else 0.0,
            walk.synonym if on.synonym_edges else 0.0,
            walk.context if on.passage_nodes else 0.0,
        )

    @property
    def reads_passages(self) -> bool:
        """Return whether a passage has the score of its node."""
        return self.projection.source == "passages" and self.switches.passage_nodes

    @property
    def term_weights(self) -> dict[str, float]:
        """Weights of the re-ranking terms, 0 if they are switched off."""
        rules, on = self.reranking, self.switches.reranking
        weights = {"title": rules.title, "coverage": rules.coverage, "path": rules.path, "hub": -rules.hub}
        return {name: weight if on else 0.0 for name, weight in weights.items()}

    @classmethod
    def paper(cls) -> Policy:
        """Return the paper's settings: rows normalised for each edge type, sums over entities, three re-ranking terms.

        Values that the paper leaves open are those that this recipe was published with.

        Examples
        --------
        >>> from hopfuse.recipes import Policy
        >>> Policy.paper().projection.source, Policy.paper().walk.edge_type_norm
        ('entities', 'per_type')
        """
        return cls(
            seeds=SeedRules(passages=2.0),
            walk=WalkRules(damping=0.5, relation=0.6, synonym=0.2, context=0.2, edge_type_norm="per_type"),
            projection=ProjectionRules(source="entities"),
            reranking=RerankingRules(title=0.1, coverage=0.1, path=0.1),
        )

    @classmethod
    def from_toml(cls, text: str) -> Policy:
        """Read a policy from TOML: ``version = 1`` and the sections that differ from the defaults.

        Parameters
        ----------
        text : str
            Such as ``Path("policy.toml").read_text()``.
        """
        check_type(text, "policy", str, "the text of a file: Path('policy.toml').read_text()")
        try:
            read = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError("syntax", "policy", "{field} is not TOML: {error}", error=error) from None
        version = read.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise InputError(
                "version",
                "version",
                "{field} is {given!r}; this release reads {allowed}",
                given=version,
                allowed=VERSION,
            )
        return apply_options(cls(), read, "policy-rag")

    def to_toml(self) -> str:
        """Return the policy as TOML, with a comment above each key."""
        sections = [_write_section(getattr(self, name), name) for name in SECTIONS]
        rows = "".join(f"{_quoted(family)} = {float(weight)!r}\n" for family, weight in self.families.items())
        return f"version = {VERSION}\n\n" + "\n".join([*sections, f"[families]\n{_FAMILIES}{rows}"])

    def without(self, *switches: str) -> Policy:
        """Return the policy with some switches off.

        Examples
        --------
        >>> from hopfuse.recipes import Policy
        >>> Policy().without("gate", "reranking").switches.gate
        False
        """
        check_names(switches, "switches", [f.name for f in fields(Switches)])
        return replace(self, switches=replace(self.switches, **dict.fromkeys(switches, False)))


SECTIONS: dict[str, type[_Section]] = {
    kind.name: kind
    for kind in (SeedRules, FactRules, WalkRules, ProjectionRules, RerankingRules, Switches, AnswerRules)
}
_PLACES = {"prompt": ("{question}", "{passages}"), "filter_prompt": ("{question}", "{facts}")}
_FAMILIES = "# Weight of each family of relations, such as kinship = 2.0; 1 if absent.\n"


# ---- TOML ------------------------------------------------------------------------------------------------------------


def _write_section(section: Any, name: str) -> str:
    """Return a section as TOML, with a comment above each key."""
    lines = [f"[{name}]"]
    for f in fields(section):
        lines += [f"# {line}" for line in [*f.metadata["doc"].splitlines(), *_range(f)]]
        lines.append(f"{f.name} = {_toml(getattr(section, f.name))}")
    return "\n".join(lines) + "\n"


def _range(f: Field[Any]) -> list[str]:
    choices, low, high = (f.metadata[part] for part in ("choices", "low", "high"))
    if choices is not None:
        return [f"One of {', '.join(_quoted(choice) for choice in choices)}."]
    if high is not None:
        return [f"A number in [{low}, {high}]."]
    return [] if low is None else [f"A number, at least {low}."]


def _quoted(text: str) -> str:
    """Return a TOML string, which has JSON's escapes and one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if "\n" not in value or any(ord(letter) < 32 and letter not in "\n\t" for letter in value):
        return _quoted(value)
    escaped = value.replace("\\", "\\\\").replace('"""', '""\\"')
    escaped = f'{escaped[:-1]}\\"' if escaped.endswith('"') and not escaped.endswith('\\"') else escaped
    return f'"""\n{escaped}"""'.replace("\x7f", "\\u007f")
