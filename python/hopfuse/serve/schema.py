"""The types of requests and answers: what is decoded, encoded, and described by ``/openapi.json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Field = Literal["title", "text", "metadata"]
AtLeast = (
    Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1, description="Wait, within the timeout, for a state of this seq.")]
    | None
)
#: An integer is one of 64 bits.
Name = Annotated[str, msgspec.Meta(min_length=1)]
PassageId = Name | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
End = tuple[Literal["passage", "entity"], PassageId]


class QueryIn(msgspec.Struct, forbid_unknown_fields=True):
    """One question.

    A vector or a text is needed by recipes that compare vectors; entities or a text by those that walk a graph.
    """

    text: Annotated[str | None, msgspec.Meta(description="The question.")] = None
    vector: Annotated[list[float] | None, msgspec.Meta(description="Its vector; by default the encoder's.")] = None
    vector_base64: Annotated[
        str | None, msgspec.Meta(description="The same as the base64 of little-endian float32 values.")
    ] = None
    entities: Annotated[
        list[str | int] | None,
        msgspec.Meta(description="Names in it, or numbers of entities; by default those that are found in the text."),
    ] = None
    allow: Annotated[
        list[str | int] | dict[str, Any] | None,
        msgspec.Meta(
            description="Ids of the passages that it may find, or conditions on their metadata, "
            '{"tenant": "a", "year__ge": 2020}; the others change no answer.'
        ),
    ] = None


class SearchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A batch of questions."""

    queries: Annotated[list[str | QueryIn], msgspec.Meta(min_length=1)]
    k: Annotated[int, msgspec.Meta(ge=1, description="Hits of each question.")] = 10
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first.")] = None
    recipe: Annotated[str | None, msgspec.Meta(description="By default the index's.")] = None
    options: Annotated[dict[str, Any], msgspec.Meta(description="Fields of the recipe's config.")] = {}
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at_least: AtLeast = None
    trace: Annotated[bool, msgspec.Meta(description="Say how each hit was found.")] = False
    fields: Annotated[list[Field], msgspec.Meta(description="What of a passage is sent beside its id and score.")] = (
        msgspec.field(default_factory=lambda: ["title", "text", "metadata"])
    )


class EntityIn(msgspec.Struct, forbid_unknown_fields=True):
    """An entity by its name, with its vector where the index has vectors of entities."""

    name: Name
    vector: Annotated[list[float] | None, msgspec.Meta(description="By default the encoder's.")] = None
    vector_base64: str | None = None


class EdgeIn(msgspec.Struct, forbid_unknown_fields=True):
    """An edge; its ends are ``["passage", id]`` or ``["entity", name]``."""

    src: End
    dst: End
    type: Annotated[str | None, msgspec.Meta(description="By default the index's first.")] = None
    weight: float = 1.0
    stated_by: Annotated[
        PassageId | None, msgspec.Meta(description="Between two entities: the passage that it goes with.")
    ] = None


class PassageIn(msgspec.Struct, forbid_unknown_fields=True):
    """A passage that is added, with what it states."""

    id: PassageId
    text: str
    title: str = ""
    metadata: dict[str, Any] = {}
    vector: Annotated[list[float] | None, msgspec.Meta(description="Its vector; by default the encoder's.")] = None
    vector_base64: Annotated[
        str | None, msgspec.Meta(description="The same as the base64 of little-endian float32 values.")
    ] = None
    entities: Annotated[
        list[Name], msgspec.Meta(description="Names in it: an edge of the type context joins it to each.")
    ] = []
    facts: Annotated[
        list[tuple[Name, str, Name]], msgspec.Meta(description="Facts that it states: head, relation, tail.")
    ] = []


class PassagesRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A change: all of it, or nothing."""

    passages: list[PassageIn] = []
    entities: Annotated[
        list[Name | EntityIn],
        msgspec.Meta(description="As those that passages and their facts name: added where no entity has the name."),
    ] = []
    aliases: Annotated[
        dict[str, list[Name]], msgspec.Meta(description="Other names of entities, by the entity's name.")
    ] = {}
    edges: list[EdgeIn] = []
    facts: Annotated[
        list[tuple[Name, str, Name, PassageId]], msgspec.Meta(description="Head, relation, tail, id of the passage.")
    ] = []
    replace: Annotated[
        bool, msgspec.Meta(description="Replace passages that have these ids; by default they are refused.")
    ] = False
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first.")] = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None


class ChangeResponse(msgspec.Struct):
    """The seq of a change that is on the disk: a search with ``at_least`` reads it."""

    seq: int


class ArrowSettings(msgspec.Struct, forbid_unknown_fields=True):
    """The metadata of a stream's schema, under ``hopfuse``: as in a JSON body."""

    k: Annotated[int, msgspec.Meta(ge=1)] = 10
    index: str | None = None
    recipe: str | None = None
    options: dict[str, Any] = {}
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    at_least: AtLeast = None
    fields: list[Field] = msgspec.field(default_factory=lambda: ["title", "text", "metadata"])


class HitOut(msgspec.Struct, omit_defaults=True):
    """A passage, or an entity by triple-hybrid."""

    id: str | int
    score: float
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None


class ResultOut(msgspec.Struct, omit_defaults=True):
    """The ranking of one question, best first."""

    hits: list[HitOut]
    trace: dict[str, Any] | None = None


class Timings(msgspec.Struct):
    """Times in the queue, and in the batch that the request was searched in."""

    queued_ms: float
    batch: int
    search_ms: float


class SearchResponse(msgspec.Struct):
    """Answers in the order of the questions, of one state of the index."""

    results: list[ResultOut]
    seq: int
    timings: Timings


class ArrowAbout(msgspec.Struct):
    """The metadata of an answer's schema, under ``hopfuse``."""

    seq: int
    timings: Timings


class IndexOut(msgspec.Struct):
    """An index that is served."""

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
    """Every index, the one for requests without a name first."""

    indexes: list[IndexOut]


class Health(msgspec.Struct, omit_defaults=True):
    """The state of the server: it runs, it answers searches; of several workers, which one says so."""

    status: Literal["ok"]
    worker: int | None = None


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """A code for programs, and what was given, what is allowed, the fix."""

    code: str
    message: str
    field: str | None = None


class ErrorResponse(msgspec.Struct):
    """Every answer that is not 200."""

    error: ErrorBody
