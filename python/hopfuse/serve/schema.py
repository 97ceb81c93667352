"""The types of the JSON bodies of requests and responses, which ``/openapi.json`` describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ..errors import CODES

Field = Literal["title", "text", "metadata"]
AtLeast = Annotated[
    Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | Literal["latest"] | None,
    msgspec.Meta(
        description="Wait, within the timeout, until the index has this seq; or, as latest, what is committed now."
    ),
]
#: Integers have 64 bits.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
PassageId = Name | Int64
EndKind = Literal["passage", "entity"]
End = tuple[EndKind, PassageId]
Vector = Annotated[list[float] | None, msgspec.Meta(description="The vector; by default the text or name is encoded.")]
VectorBase64 = Annotated[str | None, msgspec.Meta(description="The vector as base64 of little-endian float32 values.")]


#: The value of a condition on metadata, or of metadata.
Value = bool | Int64 | float | str | None
Values = dict[str, Value | list[Value]]
#: Types of the values of mappings of a body, by the mapping's name.
MAPPINGS: dict[str, Any] = {
    "allow": Value | list[Value],
    "metadata": Value | list[Value],
    "where": Value | list[Value],
    "aliases": list[Name],
    "merge": list[Name],
}

At = Annotated[
    str | Int64 | float | None,
    msgspec.Meta(description="Search the passages that are valid at this time, by their valid_from and valid_to."),
]
Strict = Annotated[bool, msgspec.Meta(description="Answer what would be a note of a result by an error.")]
PerDocument = (
    Annotated[
        int, msgspec.Meta(ge=1, description="At most so many hits of a document, and one of passages of equal text.")
    ]
    | None
)


class QueryIn(msgspec.Struct, forbid_unknown_fields=True):
    """A query.

    Recipes that compare vectors need a vector or a text; recipes that walk a graph need entities or a text.
    """

    text: Annotated[str | None, msgspec.Meta(description="The text of the query.")] = None
    vector: Vector = None
    vector_base64: VectorBase64 = None
    entities: Annotated[
        list[str | Int64] | None,
        msgspec.Meta(description="Names of entities, or their numbers; by default those found in the text."),
    ] = None
    allow: Annotated[
        list[str | Int64] | Values | None,
        msgspec.Meta(
            description="Ids of allowed passages, or conditions on metadata, "
            '{"tenant": "a", "year__ge": 2020}; other passages do not affect the answer.'
        ),
    ] = None


class SearchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A batch of queries."""

    queries: Annotated[list[str | QueryIn], msgspec.Meta(min_length=1)]
    k: Annotated[int, msgspec.Meta(ge=1, description="Hits of each query.")] = 10
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None
    recipe: Annotated[str | None, msgspec.Meta(description="By default the index's recipe.")] = None
    options: Annotated[dict[str, Any], msgspec.Meta(description="Fields of the recipe's config.")] = {}
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at: At = None
    at_least: AtLeast = None
    trace: Annotated[bool, msgspec.Meta(description="Explain how each hit was found.")] = False
    strict: Strict = False
    per_document: PerDocument = None
    fields: Annotated[list[Field], msgspec.Meta(description="Fields of passages to return, besides id and score.")] = (
        msgspec.field(default_factory=lambda: ["title", "text", "metadata"])
    )


class Outline(msgspec.Struct):
    """The fields of a search by which it is refused before its queries are decoded."""

    queries: list[msgspec.Raw] = []
    options: msgspec.Raw = msgspec.Raw(b"{}")
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None


class EntityIn(msgspec.Struct, forbid_unknown_fields=True):
    """An entity, with its vector if the index has vectors of entities."""

    name: Name
    vector: Vector = None
    vector_base64: VectorBase64 = None


class EdgeIn(msgspec.Struct, forbid_unknown_fields=True):
    """An edge between ends ``["passage", id]`` or ``["entity", name]``."""

    src: End
    dst: End
    type: Annotated[str | None, msgspec.Meta(description="By default the index's first edge type.")] = None
    weight: float = 1.0
    stated_by: Annotated[
        PassageId | None, msgspec.Meta(description="For an edge between entities, the passage that states it.")
    ] = None


class PassageIn(msgspec.Struct, forbid_unknown_fields=True):
    """A passage to add, with its entities and facts."""

    id: PassageId
    text: str
    title: str = ""
    document: Annotated[
        str | int | None,
        msgspec.Meta(description="Its document or conversation, of the type of the others."),
    ] = None
    language: Annotated[str | None, msgspec.Meta(description='Its language, a BCP 47 tag such as "en".')] = None
    metadata: Values = {}
    vector: Vector = None
    vector_base64: VectorBase64 = None
    entities: Annotated[
        list[Name],
        msgspec.Meta(
            description="Names of its entities; each gets an edge of the type context. They go with the last passage "
            "that has them, unless they are stated elsewhere; likewise those of facts."
        ),
    ] = []
    facts: Annotated[
        list[tuple[Name, str, Name]], msgspec.Meta(description="The facts that it states: head, relation, tail.")
    ] = []


class PassagesRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A change, which is made whole or not at all."""

    passages: list[PassageIn] = []
    entities: Annotated[
        list[Name | EntityIn],
        msgspec.Meta(
            description="Entities, added unless they exist in any spelling; likewise those of passages and facts."
        ),
    ] = []
    aliases: Annotated[dict[str, list[Name]], msgspec.Meta(description="Aliases by the entity's name.")] = {}
    merge: Annotated[
        dict[str, list[Name]],
        msgspec.Meta(description="Entities to merge into another, by its name; theirs become its aliases."),
    ] = {}
    edges: list[EdgeIn] = []
    facts: Annotated[
        list[tuple[Name, str, Name, PassageId]], msgspec.Meta(description="Head, relation, tail and id of the passage.")
    ] = []
    replace: Annotated[
        bool, msgspec.Meta(description="Replace existing passages with these ids; by default they are an error.")
    ] = False
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None


class ChangeResponse(msgspec.Struct):
    """The seq of a committed change, for ``at_least`` of a search."""

    seq: int


class DeletionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Passages to delete: by their ids, by conditions or by their document."""

    ids: Annotated[list[PassageId] | None, msgspec.Meta(description="All must exist.")] = None
    where: Annotated[
        Values | None, msgspec.Meta(description='Conditions on metadata, {"tenant": "a", "year__ge": 2020}.')
    ] = None
    document: Annotated[PassageId | None, msgspec.Meta(description="The passages of this document.")] = None
    dry_run: Annotated[bool, msgspec.Meta(description="Count what would be deleted, and change nothing.")] = False
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None


class DeletionResponse(msgspec.Struct):
    """What is deleted: passages, names, words and facts, as far as the key sees. ``seq`` is null after a dry run."""

    seq: int | None
    passages: int
    names: int
    words: int
    facts: int


class ArrowSettings(msgspec.Struct, forbid_unknown_fields=True):
    """The fields under ``hopfuse`` in the schema metadata of a request, as in a JSON body."""

    k: Annotated[int, msgspec.Meta(ge=1)] = 10
    index: str | None = None
    recipe: str | None = None
    options: dict[str, Any] = {}
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at: At = None
    at_least: AtLeast = None
    strict: bool = False
    per_document: PerDocument = None
    fields: list[Field] = msgspec.field(default_factory=lambda: ["title", "text", "metadata"])


class HitOut(msgspec.Struct, omit_defaults=True, gc=False):
    """A passage, or an entity if the recipe ranks entities."""

    id: str | int
    score: float
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None


class PassageOut(msgspec.Struct, omit_defaults=True):
    """A passage, with what is known of it."""

    id: str | int
    text: str
    title: str | None = None
    metadata: dict[str, Any] | None = None
    document: str | int | None = None
    language: str | None = None


class PassagesPage(msgspec.Struct):
    """Passages in ascending order of their ids, from one state of the index.

    ``after`` is what the next page's ``after`` must be; null if there is no next page.
    """

    passages: list[PassageOut]
    seq: int
    after: str | int | None


class NoteOut(msgspec.Struct):
    """What was not used of a query, or is not known: the code and sentence of an error, and the query's field."""

    code: str
    field: str
    message: str


class ResultOut(msgspec.Struct, omit_defaults=True):
    """The ranking of one query, best first."""

    hits: list[HitOut]
    trace: dict[str, Any] | None = None
    notes: list[NoteOut] = []


class Timings(msgspec.Struct):
    """Time in the queue, queries in the batch, and time of the batch."""

    queued_ms: float
    batch: int
    search_ms: float


class SearchResponse(msgspec.Struct):
    """The results in the order of the queries, all from one state of the index."""

    results: list[ResultOut]
    seq: int
    timings: Timings


class ArrowAbout(msgspec.Struct, omit_defaults=True):
    """The fields under ``hopfuse`` in the schema metadata of a response; notes by query, if there are any."""

    seq: int
    timings: Timings
    notes: list[list[NoteOut]] = []


class IndexOut(msgspec.Struct):
    """An index."""

    name: str
    passages: int
    entities: int | None
    dim: int | None
    recipe: str
    recipes: list[str]
    encoder: str | None
    reads_texts: bool
    writable: bool
    seq: int


class IndexesResponse(msgspec.Struct):
    """All indexes, the default one first."""

    indexes: list[IndexOut]


class Health(msgspec.Struct, omit_defaults=True):
    """The state of the server, and the number of the worker that answers if there are several."""

    status: Literal["ok"]
    worker: int | None = None


class ErrorBody(msgspec.Struct, rename={"kind": "class"}):
    """An error: its class, a code for programs, the field, a message with what is allowed and the fix, its values."""

    kind: str
    code: Annotated[str, msgspec.Meta(description=", ".join(sorted(CODES)))]
    message: str
    field: str | None = None
    values: dict[str, Any] = {}
    places: list[str] = []


class ErrorResponse(msgspec.Struct):
    """The response of every status other than 200."""

    error: ErrorBody
