"""The sections of an index, in file order, with their dtypes and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from ..errors import FormatError
from ..types.graph import MAX_EDGE_TYPES, MAX_NODES
from .file.format import Settings, name_of

T = TypeVar("T")

VECTOR = "storage"  # the dtype of the header's storage
LEXICAL, FACTS, ENCODER, WORDS, METADATA, SOURCE = "lexical", "fact", "encoder", "word", "metadata", "source"
DOCUMENT, LANGUAGE = "passage.document", "passage.language"
_VECTOR_DTYPES = {"int8": ("float32", "float16", "bfloat16")}  # originals, each section in its own precision


class Rule(NamedTuple):
    """dtype and shape of a section; a size is a letter with an offset, or (None, 0) for any size."""

    dtype: str
    shape: tuple[tuple[str | None, int], ...]
    group: str = "core"


def _strings(name: str, count: str, group: str = "core") -> dict[str, Rule]:
    return {
        f"{name}.offsets": Rule("int64", ((count, 1),), group),
        f"{name}.bytes": Rule("uint8", ((None, 0),), group),
    }


RULES: dict[str, Rule] = {
    **_strings("passage.id", "P", "passage.id"),
    "passage.id.number": Rule("int64", (("P", 0),), "passage.id.number"),
    **_strings("passage.title", "P"),
    **_strings("passage.text", "P"),
    "passage.length": Rule("int32", (("P", 0),)),
    "passage.document": Rule("int32", (("P", 0),), DOCUMENT),
    **_strings("document.name", "D", "document.name"),
    "document.number": Rule("int64", (("D", 0),), "document.number"),
    "passage.language": Rule("int32", (("P", 0),), LANGUAGE),
    **_strings("language.tag", "J", LANGUAGE),
    **_strings("entity.name", "E"),
    "entity.alias.rows": Rule("int64", (("E", 1),)),
    **_strings("entity.alias", "A"),
    "entity.stated": Rule("uint8", (("E", 0),), "entity.stated"),
    "entity.rule": Rule("int64", (("rules", 0),), "entity.rule"),
    "passage.vectors": Rule(VECTOR, (("P", 0), ("d", 0)), "passage.vectors"),
    "entity.vectors": Rule(VECTOR, (("E", 0), ("d2", 0)), "entity.vectors"),
    **_strings("encoder.name", "K", ENCODER),
    "encoder.setting": Rule("int64", (("G", 0),), ENCODER),
    **_strings("word.setting", "L", WORDS),
    "word.first": Rule("int64", (("O", 0),), WORDS),
    **_strings("word.stopword", "U", WORDS),
    "word.rule": Rule("int64", (("rules", 0),), "word.rule"),
    "entity.passage_frequency": Rule("int32", (("E", 0),), "graph"),
    **_strings("graph.type_name", "T", "graph"),
    "graph.edge_count": Rule("int64", (("T", 0),), "graph"),
    "graph.indptr": Rule("int64", (("N", 1),), "graph"),
    "graph.indices": Rule("int32", (("M", 0),), "graph"),
    "graph.weight": Rule("float32", (("M", 0),), "graph.weight"),
    "graph.edge_type": Rule("uint8", (("M", 0),), "graph.edge_type"),
    "graph.degree": Rule("float64", (("N", 0), ("T", 0)), "graph"),
    "graph.node_of": Rule("int32", (("N", 0),), "graph"),
    "graph.internal_of": Rule("int32", (("N", 0),), "graph"),
    "edge.end": Rule("int32", (("I", 0), ("H", 0)), "edge"),
    "edge.weight": Rule("float64", (("I", 0),), "edge"),
    "edge.type": Rule("uint8", (("I", 0),), "edge"),
    "edge.passage": Rule("int32", (("I", 0),), "edge"),
    **_strings("lexical.setting", "S", LEXICAL),
    "lexical.parameter": Rule("float64", (("S", 0),), LEXICAL),
    **_strings("lexical.stopword", "W", LEXICAL),
    "lexical.rule": Rule("int64", (("rules", 0),), "lexical.rule"),
    **_strings("lexical.term", "V", LEXICAL),
    "lexical.indptr": Rule("int64", (("V", 1),), LEXICAL),
    "lexical.passage": Rule("int32", (("Z", 0),), LEXICAL),
    "lexical.score": Rule("float32", (("Z", 0),), LEXICAL),
    "lexical.count": Rule("int32", (("Z", 0),), "lexical.count"),
    **_strings("fact.relation", "R", FACTS),
    "fact.row": Rule("int32", (("F", 0), ("C", 0)), FACTS),
    "fact.indptr": Rule("int64", (("F", 1),), FACTS),
    "fact.passage": Rule("int32", (("Q", 0),), FACTS),
    "fact.statement": Rule("int32", (("Q", 0),), "fact.statement"),
    **_strings("metadata.name", "X", METADATA),
    "metadata.type": Rule("uint8", (("X", 0),), METADATA),
    "metadata.present": Rule("uint8", ((None, 0),), METADATA),
    "metadata.flag": Rule("uint8", ((None, 0),), METADATA),
    "metadata.number": Rule("int64", ((None, 0),), METADATA),
    "metadata.real": Rule("float64", ((None, 0),), METADATA),
    "metadata.code": Rule("int32", ((None, 0),), METADATA),
    "metadata.list": Rule("int64", ((None, 0),), METADATA),
    "metadata.item": Rule("int32", ((None, 0),), METADATA),
    **_strings("metadata.value", "Y", METADATA),
    **_strings("source.state", "B", SOURCE),
}

#: Groups that need another group.
_PARTS = {
    "graph.weight": "graph",
    "graph.edge_type": "graph",
    "edge": "graph",
    "lexical.count": LEXICAL,
    "lexical.rule": LEXICAL,
    "word.rule": WORDS,
    "fact.statement": FACTS,
    "document.name": DOCUMENT,
    "document.number": DOCUMENT,
}
#: Groups of which there is exactly one beside another group: what are strings or integers.
_EITHER = {
    "core": ("passage.id", "passage.id.number"),
    DOCUMENT: ("document.name", "document.number"),
}
#: Sizes that are fixed, and of what.
_FIXED = {
    "S": (2, "settings and parameters of the lexical part"),
    "K": (1, "names of the encoder"),
    "G": (2, "settings of the encoder"),
    "L": (2, "settings of the words"),
    "O": (1, "first words"),
    "rules": (1, "reading rules of a part"),
    "B": (1, "states of the source"),
    "C": (3, "columns of facts (head, relation, tail)"),
    "H": (2, "ends of a stated edge"),
}
GRAPH_ARRAYS = tuple(
    f"graph.{name}" for name in ("indptr", "indices", "weight", "edge_type", "degree", "node_of", "internal_of")
)


def in_file_order(arrays: Mapping[str, T]) -> dict[str, T]:
    """Return the sections in the order of the format."""
    return {name: arrays[name] for name in sorted(arrays, key=list(RULES).index)}


def check_schema(sections: Mapping[str, Any], settings: Settings) -> dict[str, int]:
    """Check names, dtypes and shapes of the sections, and return the sizes P, E, ... by letter.

    Raises
    ------
    FormatError
        A section is unknown, missing, out of order, or of another dtype or shape.
    """
    _check_names(sections)
    sizes: dict[str, int] = {}
    for name, section in sections.items():
        rule = RULES[name]
        dtypes: tuple[str, ...] = (rule.dtype,)
        if rule.dtype is VECTOR:
            dtypes = _VECTOR_DTYPES.get(settings.storage, (settings.storage,))
        if name_of(section.dtype) not in dtypes or len(section.shape) != len(rule.shape):
            raise FormatError(
                "dtype",
                None,
                "section {section!r} is {given}; it must be {allowed} with {dimensions} dimensions",
                section=name,
                given=f"{name_of(section.dtype)}{section.shape}",
                allowed=" or ".join(dtypes),
                dimensions=len(rule.shape),
            )
        for (letter, more), size in zip(rule.shape, section.shape, strict=True):
            if letter is not None and sizes.setdefault(letter, size - more) != size - more:
                raise FormatError(
                    "shape",
                    None,
                    "section {section!r} has the shape {given}, but {letter} is {size} elsewhere",
                    section=name,
                    given=section.shape,
                    letter=letter,
                    size=sizes[letter],
                )
    _check_sizes(sizes, sections)
    return sizes


def _check_names(sections: Mapping[str, Any]) -> None:
    unknown = [name for name in sections if name not in RULES]
    if unknown:
        raise FormatError("unknown", None, "section {section!r} is unknown to this format version", section=unknown[0])
    groups = {RULES[name].group for name in sections} | {"core"}
    for part, whole in _PARTS.items():
        if part in groups:
            groups.add(whole)
    for whole, kinds in _EITHER.items():
        if groups.issuperset(kinds):
            raise FormatError(
                "duplicate",
                None,
                "sections {one!r} and {other!r} are both there; an index has one of them",
                one=kinds[0],
                other=kinds[1],
            )
        if whole in groups and groups.isdisjoint(kinds):
            groups.add(kinds[0])
    expected = [name for name, rule in RULES.items() if rule.group in groups]
    missing = [name for name in expected if name not in sections]
    if missing:
        raise FormatError("missing", None, "section {section!r} is missing", section=missing[0])
    if list(sections) != expected:
        raise FormatError("order", None, "the sections are not in the order of the format")


def _check_sizes(sizes: Mapping[str, int], sections: Mapping[str, Any]) -> None:
    nodes = sizes["P"] + sizes["E"]
    if min(sizes.values()) < 0 or nodes > MAX_NODES:
        raise FormatError(
            "length",
            None,
            "the sizes are {given}; each is at least 0, and P + E at most {most}",
            given=dict(sizes),
            most=MAX_NODES,
        )
    if sizes.get("d") == 0 or sizes.get("d2") == 0:
        raise FormatError("shape", None, "vectors have no components; d is at least 1")
    for letter, (allowed, what) in _FIXED.items():
        if sizes.get(letter, allowed) != allowed:
            raise FormatError(
                "length",
                None,
                "there are {given} {what}; there must be {allowed}",
                given=sizes[letter],
                what=what,
                allowed=allowed,
            )
    if "N" not in sizes:
        return
    if sizes["N"] != nodes:
        raise FormatError(
            "length",
            None,
            "the graph has {given} nodes; P = {passages} and E = {entities} make {allowed}",
            given=sizes["N"],
            passages=sizes["P"],
            entities=sizes["E"],
            allowed=nodes,
        )
    if not 1 <= sizes["T"] <= MAX_EDGE_TYPES:
        raise FormatError(
            "limit",
            None,
            "there are {given} edge types; 1 to {allowed} are allowed",
            given=sizes["T"],
            allowed=MAX_EDGE_TYPES,
        )
    if ("graph.edge_type" in sections) != (sizes["T"] > 1):
        raise FormatError(
            "conflict",
            None,
            "section {section!r} must exist if and only if there are at least two edge types",
            section="graph.edge_type",
        )
