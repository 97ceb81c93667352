"""The columns of an index: the sections of its file, and the arrays of a record of its log.

Two tables say what there is to say of a column: dtype and sizes, what is present together, what its numbers are, and
which section an array of the log continues. The checks of files and records, what is renumbered when slots move, and
the table of FORMAT.md (``python tests/golden/columns.py``) are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from ..errors import FormatError
from ..types.edge_statements import UNKNOWN
from ..types.graph import MAX_EDGE_TYPES, MAX_NODES
from .file.format import Settings, name_of

T = TypeVar("T")

#: A dtype that stands for two columns, ``name.offsets`` and ``name.bytes``.
STRINGS = "strings"
#: The dtype of the header's storage.
VECTOR = "vector"
_VECTOR_DTYPES = {"int8": ("float32", "float16", "bfloat16")}  # originals, each section in its own precision


# ---- What columns are made of ----


@dataclass(frozen=True)
class Size:
    """A size that columns share.

    Attributes
    ----------
    what : str
        What is counted; empty if columns share nothing.
    symbol : str
        How the specification writes it.
    count : int, optional
        The only number that is allowed.
    more : int
        By how much the size of a column exceeds the number.
    """

    what: str
    symbol: str = ""
    count: int | None = None
    more: int = 0

    def __add__(self, more: int) -> Size:
        return replace(self, more=more)


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that are present together: when, and with which other group."""

    present: str
    needs: Group | None = None


class Column(NamedTuple):
    """A section of a file, or two of strings, and what it contains."""

    name: str
    dtype: str
    sizes: tuple[Size, ...]
    group: Group
    contents: str


PASSAGES, ENTITIES, ALIASES = Size("passages", "P"), Size("entities", "E"), Size("aliases", "A")
DOCUMENTS, LANGUAGES = Size("documents", "D"), Size("languages", "J")
DIMENSIONS, ENTITY_DIMENSIONS = Size("dimensions", "d"), Size("dimensions of entities", "d2")
NODES, ENTRIES, EDGE_TYPES = Size("nodes", "N"), Size("entries of the graph", "M"), Size("edge types", "T")
EDGES, ENDS = Size("stated edges", "I"), Size("ends of a stated edge", "2", 2)
ENCODER_NAMES, ENCODER_SETTINGS = Size("names of the encoder", "1", 1), Size("settings of the encoder", "2", 2)
WORD_SETTINGS, FIRST_WORDS = Size("settings of the words", "2", 2), Size("first words", "1", 1)
WORD_STOPWORDS, READING_RULES = Size("stop words of the words", "U"), Size("reading rules of a part", "1", 1)
TERM_SETTINGS, STOPWORDS = Size("settings and parameters of the lexical part", "2", 2), Size("stop words", "W")
TERMS, TERM_ENTRIES = Size("terms", "V"), Size("entries of terms", "Z")
RELATIONS, FACTS, STATEMENTS = Size("relations", "R"), Size("facts", "F"), Size("statements", "Q")
FACT_COLUMNS = Size("columns of facts (head, relation, tail)", "3", 3)
METADATA_COLUMNS, METADATA_STRINGS = Size("columns of metadata", "X"), Size("strings of metadata", "Y")
STATES = Size("states of the source", "1", 1)
ANY = Size("")

CORE = Group("always")
STRING_IDS, NUMBER_IDS = Group("if ids are strings"), Group("if ids are integers")
DOCUMENT, LANGUAGE = Group("if a passage has one"), Group("if that of a passage is known")
DOCUMENT_NAMES = Group("with `passage.document`, if documents are strings", DOCUMENT)
DOCUMENT_NUMBERS = Group("with `passage.document`, if documents are integers", DOCUMENT)
STATED, NAME_RULE = Group("unless all are stated"), Group("optional")
PASSAGE_VECTORS, ENTITY_VECTORS = Group("if given"), Group("if entities have vectors")
ENCODER, SOURCE = Group("if it is known"), Group("if the source is followed")
WORDS, GRAPH = Group("with words"), Group("with a graph")
WORD_RULE = Group("with words, optional", WORDS)
WEIGHTS, TYPES = Group("with a graph, optional", GRAPH), Group("with a graph, if and only if T > 1", GRAPH)
STATED_EDGES = Group("with stated edges", GRAPH)
LEXICAL = Group("with a lexical part")
TERM_RULE = Group("with a lexical part, optional", LEXICAL)
TERM_COUNTS = Group("with a lexical part, optional, for changes", LEXICAL)
FACT = Group("with facts")
FACT_ORDER = Group("with facts, unless in this order", FACT)
METADATA = Group("with metadata")

#: Groups of which there is exactly one beside another group: what are strings or integers.
_EITHER = {CORE: (STRING_IDS, NUMBER_IDS), DOCUMENT: (DOCUMENT_NAMES, DOCUMENT_NUMBERS)}


# ---- The sections ----

#: In file order.
COLUMNS = (
    Column("passage.id", STRINGS, (PASSAGES,), STRING_IDS, "ids, distinct"),
    Column("passage.id.number", "int64", (PASSAGES,), NUMBER_IDS, "ids, distinct"),
    Column("passage.title", STRINGS, (PASSAGES,), CORE, "titles"),
    Column("passage.text", STRINGS, (PASSAGES,), CORE, "texts"),
    Column(
        *("passage.length", "int32", (PASSAGES,), CORE),
        "tokens of each text, split at Unicode white space as by Python's `str.split()`",
    ),
    Column(
        *("passage.document", "int32", (PASSAGES,), DOCUMENT),
        "the document or conversation that contains the passage, by its place in the next section; −1 if there is none",
    ),
    Column("document.name", STRINGS, (DOCUMENTS,), DOCUMENT_NAMES, "documents, ascending; each contains a passage"),
    Column("document.number", "int64", (DOCUMENTS,), DOCUMENT_NUMBERS, "documents, ascending; each contains a passage"),
    Column(
        *("passage.language", "int32", (PASSAGES,), LANGUAGE),
        "the language of title and text, by its place in the next section; −1 if it is not known",
    ),
    Column(
        *("language.tag", STRINGS, (LANGUAGES,), LANGUAGE),
        "BCP 47 tags in the case that RFC 5646 recommends (`en`, `zh-Hant-TW`), ascending; each is some passage's",
    ),
    Column("entity.name", STRINGS, (ENTITIES,), CORE, "names"),
    Column(
        *("entity.alias.rows", "int64", (ENTITIES + 1,), CORE),
        "the aliases of entity e are `rows[e]` … `rows[e + 1] − 1`",
    ),
    Column("entity.alias", STRINGS, (ALIASES,), CORE, "aliases"),
    Column(
        *("entity.stated", "uint8", (ENTITIES,), STATED),
        "1 if a user stated the entity, 0 if only a reader of the passages made it; absent if all are 1",
    ),
    Column(
        *("entity.rule", "int64", (READING_RULES,), NAME_RULE),
        "the reading rule under which names are folded, compared and found in questions; absent if it is 1",
    ),
    Column(
        *("passage.vectors", VECTOR, (PASSAGES, DIMENSIONS), PASSAGE_VECTORS),
        "finite; no row is zero under cosine",
    ),
    Column("entity.vectors", VECTOR, (ENTITIES, ENTITY_DIMENSIONS), ENTITY_VECTORS, "likewise"),
    Column(
        *("encoder.name", STRINGS, (ENCODER_NAMES,), ENCODER),
        "name of the encoder that made the vectors, not empty",
    ),
    Column(
        *("encoder.setting", "int64", (ENCODER_SETTINGS,), ENCODER),
        "the dimensions that it makes: d, without `passage.vectors` d2; 1 if it scales vectors to length 1, else 0",
    ),
    Column(
        *("word.setting", STRINGS, (WORD_SETTINGS,), WORDS),
        "how words are read from texts: PyStemmer's name of the Snowball stemmer, and the spaCy model that tags the "
        "words; empty if there is none",
    ),
    Column("word.first", "int64", (FIRST_WORDS,), WORDS, "words are the entities `word.first` … E − 1"),
    Column("word.stopword", STRINGS, (WORD_STOPWORDS,), WORDS, "stop words, which are left out, ascending"),
    Column(
        *("word.rule", "int64", (READING_RULES,), WORD_RULE),
        "the reading rule under which texts and questions are folded and cut into words; absent if it is 1",
    ),
    Column(
        *("entity.passage_frequency", "int32", (ENTITIES,), GRAPH),
        "distinct passages adjacent to the entity, in either direction",
    ),
    Column("graph.type_name", STRINGS, (EDGE_TYPES,), GRAPH, "names of the edge types, distinct"),
    Column(
        *("graph.edge_count", "int64", (EDGE_TYPES,), GRAPH),
        "number of merged edges of each type; an undirected edge counts once",
    ),
    Column("graph.indptr", "int64", (NODES + 1,), GRAPH, "row v holds the entries `indptr[v]` … `indptr[v + 1] − 1`"),
    Column("graph.indices", "int32", (ENTRIES,), GRAPH, "source of each entry, an internal node"),
    Column("graph.weight", "float32", (ENTRIES,), WEIGHTS, "weight of each entry; absent if all are 1"),
    Column("graph.edge_type", "uint8", (ENTRIES,), TYPES, "type of each entry"),
    Column(
        *("graph.degree", "float64", (NODES, EDGE_TYPES), GRAPH),
        "sum of the weights out of each internal node, by type, added in stored order",
    ),
    Column("graph.node_of", "int32", (NODES,), GRAPH, "node of each internal node"),
    Column("graph.internal_of", "int32", (NODES,), GRAPH, "internal node of each node"),
    Column(
        *("edge.end", "int32", (EDGES, ENDS), STATED_EDGES),
        "source and target node of each stated edge, in the order of the statements",
    ),
    Column(
        *("edge.weight", "float64", (EDGES,), STATED_EDGES),
        "its weight, above 0; the weights of all statements of an edge and type add up to the edge's weight in the "
        "graph",
    ),
    Column("edge.type", "uint8", (EDGES,), STATED_EDGES, "its type"),
    Column(
        *("edge.passage", "int32", (EDGES,), STATED_EDGES),
        "the passage that states it; −1 if no passage does, −2 if this is not known. An edge is deleted with a passage "
        "at one of its ends and with the passage that states it",
    ),
    Column(
        *("lexical.setting", STRINGS, (TERM_SETTINGS,), LEXICAL),
        "the method, `lucene`, `robertson` or `atire`, and PyStemmer's name of the Snowball stemmer, empty if there is "
        "none",
    ),
    Column("lexical.parameter", "float64", (TERM_SETTINGS,), LEXICAL, "k1, b"),
    Column("lexical.stopword", STRINGS, (STOPWORDS,), LEXICAL, "words that are not terms, ascending"),
    Column(
        *("lexical.rule", "int64", (READING_RULES,), TERM_RULE),
        "the reading rule under which texts and questions are folded and cut into terms; absent if it is 1",
    ),
    Column("lexical.term", STRINGS, (TERMS,), LEXICAL, "terms, ascending"),
    Column(
        *("lexical.indptr", "int64", (TERMS + 1,), LEXICAL),
        "term t has the entries `indptr[t]` … `indptr[t + 1] − 1`",
    ),
    Column("lexical.passage", "int32", (TERM_ENTRIES,), LEXICAL, "passage of each entry"),
    Column(
        *("lexical.score", "float32", (TERM_ENTRIES,), LEXICAL),
        "what each occurrence of the term in a question adds to the passage's score",
    ),
    Column(
        *("lexical.count", "int32", (TERM_ENTRIES,), TERM_COUNTS),
        "how often the term occurs in the passage; scores are computed again from it after changes",
    ),
    Column(
        *("fact.relation", STRINGS, (RELATIONS,), FACT),
        "names of the relations, distinct, in the order in which the facts first have them",
    ),
    Column(
        *("fact.row", "int32", (FACTS, FACT_COLUMNS), FACT),
        "head (an entity), relation, tail (an entity) of each fact; no two rows the same",
    ),
    Column(
        *("fact.indptr", "int64", (FACTS + 1,), FACT),
        "fact f is stated by the entries `indptr[f]` … `indptr[f + 1] − 1`",
    ),
    Column("fact.passage", "int32", (STATEMENTS,), FACT, "passage of each entry"),
    Column(
        *("fact.statement", "int32", (STATEMENTS,), FACT_ORDER),
        "position of each entry in the order in which the facts were stated; absent if the entries are in this order",
    ),
    Column("metadata.name", STRINGS, (METADATA_COLUMNS,), METADATA, "names of the columns, distinct, not empty"),
    Column(
        *("metadata.type", "uint8", (METADATA_COLUMNS,), METADATA),
        "type of each column: 0 bool, 1 int64, 2 float64, 3 string, 4 timestamp, 5 list of strings",
    ),
    Column(
        *("metadata.present", "uint8", (Size("", "X · P"),), METADATA),
        "column by column, for each passage: 1 if it has a value, 0 if it has none",
    ),
    Column("metadata.flag", "uint8", (Size("", "· P"),), METADATA, "the values of each column of bools: 0 or 1"),
    Column(
        *("metadata.number", "int64", (Size("", "· P"),), METADATA),
        "of each column of integers or timestamps (microseconds since 1970-01-01 in UTC, without leap seconds)",
    ),
    Column("metadata.real", "float64", (Size("", "· P"),), METADATA, "of each column of numbers; no NaN"),
    Column(
        *("metadata.code", "int32", (Size("", "· P"),), METADATA),
        "of each column of strings: index into `metadata.value`; −1 if missing",
    ),
    Column(
        *("metadata.list", "int64", (Size("", "· (P + 1)"),), METADATA),
        "of each column of lists: passage p has the items `list[p]` … `list[p + 1] − 1`",
    ),
    Column("metadata.item", "int32", (ANY,), METADATA, "index into `metadata.value` of each item of the lists"),
    Column("metadata.value", STRINGS, (METADATA_STRINGS,), METADATA, "the strings of all columns, ascending"),
    Column(
        *("source.state", STRINGS, (STATES,), SOURCE),
        "state that is needed to follow the index's source, such as how far it was read",
    ),
)
_FIXED = dict.fromkeys(size for column in COLUMNS for size in column.sizes if size.count is not None)


def _sections(columns: tuple[Column, ...]) -> Iterator[Column]:
    """Yield columns with the two of strings in place of one."""
    for column in columns:
        if column.dtype == STRINGS:
            yield column._replace(name=f"{column.name}.offsets", dtype="int64", sizes=(column.sizes[0] + 1,))
            yield column._replace(name=f"{column.name}.bytes", dtype="uint8", sizes=(ANY,))
        else:
            yield column


#: By name, in file order.
SECTIONS = {section.name: section for section in _sections(COLUMNS)}
_PLACE = {name: place for place, name in enumerate(SECTIONS)}
GRAPH_ARRAYS = tuple(
    f"graph.{name}" for name in ("indptr", "indices", "weight", "edge_type", "degree", "node_of", "internal_of")
)


# ---- The arrays of a record of the log ----


class Numbers(NamedTuple):
    """What the numbers of an array are: ``least`` .. ``most`` - 1, and what becomes of them.

    Bounds that each record extends are named: the passages and entities before it (``old``) and after it, those that
    it adds (``new``), and its own lists of names. One with a minus is a lower bound, of entities at ends of edges.
    """

    most: int | str
    least: int | str = 0
    slots: str = ""
    """What they are slots of: ``passages``, ``entities``, or ``ends``."""
    names: str = ""
    """The names of the record that they are places in, which get numbers common to all records."""


class Array(NamedTuple):
    """An array of a record, or two of strings."""

    name: str
    dtype: str
    sizes: tuple[Size | int, ...]
    group: str = ""
    """Arrays of a group are present together; those of strings always are."""
    numbers: tuple[Numbers, ...] = ()
    """For each column."""
    follows: str | None = ""
    """The section whose rows its own continue: empty without one, None if they are not kept as rows."""
    default: int | None = None
    """The value of a row without one, if records and generations may lack the array."""
    counts: str = ""
    """What a row of it stands for in a history."""


_OLD_PASSAGE, _PASSAGE = Numbers("old passages", slots="passages"), Numbers("passages", slots="passages")
_OLD_ENTITY, _ENTITY = Numbers("old entities", slots="entities"), Numbers("entities", slots="entities")
_OLD_END, _END = (Numbers(f"{when}passages", f"-{when}entities", "ends") for when in ("old ", ""))
_OWNER = Numbers("passages", UNKNOWN, "passages")
_EDGE_TYPE, _RELATION = Numbers("edge types", names="edge.type_name"), Numbers("relations", names="fact.relation")
_DELETED = {what: Size(f"deleted {what}") for what in ("passages", "entities", "aliases", "edges", "facts")}
_SECTION = {column.name: column for column in COLUMNS}


def _added(name: str, group: str = "", **more: Any) -> Array:
    """Return an array of a section's dtype and sizes, whose rows continue that section."""
    return Array(name, _SECTION[name].dtype, _SECTION[name].sizes, group, **({"follows": name} | more))


_ARRAYS = (
    Array("delete.passage", "int64", (_DELETED["passages"],), "", (_OLD_PASSAGE,), counts="deleted passages"),
    Array("delete.entity", "int64", (_DELETED["entities"],), "", (_OLD_ENTITY,), counts="deleted entities"),
    Array(
        *("delete.alias.entity", "int64", (_DELETED["aliases"],), "deleted aliases", (_OLD_ENTITY,)),
        counts="deleted aliases",
    ),
    Array("delete.alias.name", STRINGS, (_DELETED["aliases"],), "deleted aliases"),
    Array(
        *("delete.edge", "int64", (_DELETED["edges"], 3), "", (_OLD_END, _OLD_END, _EDGE_TYPE)),
        counts="deleted edges",
    ),
    Array(
        *("delete.fact", "int64", (_DELETED["facts"], 3), "", (_OLD_ENTITY, _RELATION, _OLD_ENTITY)),
        counts="deleted facts",
    ),
    _added("passage.id"),
    _added("passage.id.number"),
    _added("passage.title", "passages"),
    _added("passage.text", "passages"),
    _added("passage.length", "passages", counts="passages"),
    Array("passage.vectors", VECTOR, (PASSAGES, ANY), follows="passage.vectors"),
    _added("passage.document", numbers=(Numbers("documents", -1),), default=-1),
    _added("document.name"),
    _added("document.number"),
    _added("passage.language", "languages", numbers=(Numbers("languages", -1),), default=-1),
    _added("language.tag", "languages"),
    *(
        Array(column.name, column.dtype, (ANY,), "metadata", follows=None)
        for column in COLUMNS
        if column.group is METADATA
    ),
    _added("entity.name", "entities"),
    Array("entity.word", "uint8", (ENTITIES,), "entities", counts="entities"),
    Array("entity.vectors", VECTOR, (ENTITIES, ANY), follows="entity.vectors"),
    _added("entity.stated", numbers=(Numbers(2),), default=1),
    Array("stated.entity", "int64", (Size("stated entities"),), numbers=(_OLD_ENTITY,), counts="stated entities"),
    Array("alias.entity", "int64", (ALIASES,), "aliases", (_ENTITY,), counts="aliases"),
    Array("alias.name", STRINGS, (ALIASES,), "aliases", follows="entity.alias"),
    Array("edge.type_name", STRINGS, (EDGE_TYPES,), follows=None),
    Array("edge.end", "int64", (EDGES, 2), "edges", (_END, _END), counts="edges"),
    Array("edge.type", "int64", (EDGES,), "edges", (_EDGE_TYPE,)),
    Array("edge.weight", "float64", (EDGES,), "edges"),
    Array("edge.passage", "int64", (EDGES,), "edges", (_OWNER,)),
    Array("fact.relation", STRINGS, (RELATIONS,), follows=None),
    Array(
        *("fact.row", "int64", (STATEMENTS, 4), "", (_ENTITY, _RELATION, _ENTITY, _PASSAGE)),
        counts="statements of facts",
    ),
    Array("lexical.term", STRINGS, (TERMS,), "terms", follows=None),
    Array("lexical.indptr", "int64", (TERMS + 1,), "terms", follows=None),
    Array("lexical.passage", "int64", (TERM_ENTRIES,), "terms", (Numbers("new passages"),)),
    Array("lexical.count", "int32", (TERM_ENTRIES,), "terms", (Numbers(2**31, 1),)),
    Array("source.state", STRINGS, (STATES,), follows=None),
)
#: The sections of names that get common numbers, by the arrays with those of records.
COMMON_NAMES = {"edge.type_name": "graph.type_name", "fact.relation": "fact.relation"}
#: Arrays of which a record has exactly one if it has another array: what are strings or integers.
EITHER = {
    "passage.length": ("passage.id.offsets", "passage.id.number"),
    "passage.document": ("document.name.offsets", "document.number"),
}
#: The array that has a row for each added passage or entity.
ADDED = {PASSAGES: "passage.length", ENTITIES: "entity.word"}


def _single(arrays: tuple[Array, ...]) -> Iterator[Array]:
    """Yield arrays with the two of strings in place of one."""
    for array in arrays:
        if array.dtype != STRINGS:
            yield array
            continue
        (size,), group = array.sizes, array.group or array.name
        for part, dtype, own in (("offsets", "int64", size + 1), ("bytes", "uint8", ANY)):
            follows = array.follows and f"{array.follows}.{part}"
            yield Array(f"{array.name}.{part}", dtype, (own,), group, follows=follows)


#: By name, in the order of the specification.
ARRAYS = {array.name: array for array in _single(_ARRAYS)}
#: The arrays, numbered.
NUMBER = {name: number for number, name in enumerate(ARRAYS)}
#: Kinds of rows in a history: 1 if they are added or -1 if they are deleted, and the array that has one row for each.
KINDS = {
    array.counts: (-1 if array.name.startswith("delete.") else 1, array.name)
    for array in ARRAYS.values()
    if array.counts
}


# ---- Checks ----


def in_file_order(arrays: Mapping[str, T]) -> dict[str, T]:
    """Return the sections in the order of the format."""
    return {name: arrays[name] for name in sorted(arrays, key=_PLACE.__getitem__)}


def check_schema(sections: Mapping[str, Any], settings: Settings) -> None:
    """Check names, dtypes and shapes of the sections.

    Raises
    ------
    FormatError
        A section is unknown, missing, out of order, or of another dtype or shape.
    """
    _check_names(sections)
    counts: dict[str, int] = {}
    for name, section in sections.items():
        column = SECTIONS[name]
        dtypes: tuple[str, ...] = (column.dtype,)
        if column.dtype == VECTOR:
            dtypes = _VECTOR_DTYPES.get(settings.storage, (settings.storage,))
        if name_of(section.dtype) not in dtypes or len(section.shape) != len(column.sizes):
            raise FormatError(
                "dtype",
                None,
                "section {section!r} is {given}; it must be {allowed} with {dimensions} dimensions",
                section=name,
                given=f"{name_of(section.dtype)}{section.shape}",
                allowed=" or ".join(dtypes),
                dimensions=len(column.sizes),
            )
        for size, given in zip(column.sizes, section.shape, strict=True):
            if size.what and counts.setdefault(size.what, given - size.more) != given - size.more:
                raise FormatError(
                    "shape",
                    None,
                    "section {section!r} has the shape {given}, but there are {size} {what} elsewhere",
                    section=name,
                    given=section.shape,
                    size=counts[size.what],
                    what=size.what,
                )
    _check_counts(counts, sections)


def _check_names(sections: Mapping[str, Any]) -> None:
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise FormatError("unknown", None, "section {section!r} is unknown to this format version", section=unknown[0])
    groups = {SECTIONS[name].group for name in sections} | {CORE}
    groups |= {group.needs for group in groups if group.needs is not None}
    for whole, kinds in _EITHER.items():
        if groups.issuperset(kinds):
            one, other = (next(column.name for column in COLUMNS if column.group is kind) for kind in kinds)
            raise FormatError(
                "duplicate",
                None,
                "sections {one!r} and {other!r} are both there; an index has one of them",
                one=one,
                other=other,
            )
        if whole in groups and groups.isdisjoint(kinds):
            groups.add(kinds[0])
    expected = [name for name, column in SECTIONS.items() if column.group in groups]
    missing = [name for name in expected if name not in sections]
    if missing:
        raise FormatError("missing", None, "section {section!r} is missing", section=missing[0])
    if list(sections) != expected:
        raise FormatError("order", None, "the sections are not in the order of the format")


def _check_counts(counts: Mapping[str, int], sections: Mapping[str, Any]) -> None:
    nodes = counts[PASSAGES.what] + counts[ENTITIES.what]
    if min(counts.values()) < 0 or nodes > MAX_NODES:
        raise FormatError(
            "length",
            None,
            "the sizes are {given}; each is at least 0, and passages and entities together at most {most}",
            given=dict(counts),
            most=MAX_NODES,
        )
    if 0 in (counts.get(DIMENSIONS.what), counts.get(ENTITY_DIMENSIONS.what)):
        raise FormatError("shape", None, "vectors have no components; d is at least 1")
    for size in _FIXED:
        if counts.get(size.what, size.count) != size.count:
            raise FormatError(
                "length",
                None,
                "there are {given} {what}; there must be {allowed}",
                given=counts[size.what],
                what=size.what,
                allowed=size.count,
            )
    if NODES.what not in counts:
        return
    if counts[NODES.what] != nodes:
        raise FormatError(
            "length",
            None,
            "the graph has {given} nodes; P = {passages} and E = {entities} make {allowed}",
            given=counts[NODES.what],
            passages=counts[PASSAGES.what],
            entities=counts[ENTITIES.what],
            allowed=nodes,
        )
    if not 1 <= counts[EDGE_TYPES.what] <= MAX_EDGE_TYPES:
        raise FormatError(
            "limit",
            None,
            "there are {given} edge types; 1 to {allowed} are allowed",
            given=counts[EDGE_TYPES.what],
            allowed=MAX_EDGE_TYPES,
        )
    if ("graph.edge_type" in sections) != (counts[EDGE_TYPES.what] > 1):
        raise FormatError(
            "conflict",
            None,
            "section {section!r} must exist if and only if there are at least two edge types",
            section="graph.edge_type",
        )
