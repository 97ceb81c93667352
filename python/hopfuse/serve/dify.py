"""Dify's external knowledge API: ``POST /retrieval``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..errors import HopfuseError, InputError
from .answers import PartedResponse, in_parts, respond
from .bounds import check_most
from .decoding import FEW, LARGE, decode_checked, on_desk
from .errors import status_of
from .http import JSON, BodyReader, check_content_type, encode
from .schema import At, HitOut, NoteOut
from .searches import Search, SearchAnswer
from .service import Service
from .snapshots import SearchQuery

#: Dify's error codes; for other errors the HTTP status is sent.
NO_KEY, NO_KNOWLEDGE = 1002, 2001


class RetrievalSetting(msgspec.Struct):
    """The number of passages, and the lowest score; other fields are ignored."""

    top_k: Annotated[int, msgspec.Meta(ge=1)] = 10
    score_threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = 0.0
    score_threshold_enabled: bool | None = None


class RetrievalRequest(msgspec.Struct):
    """Dify's request. Dify adds fields, so unknown ones are ignored."""

    knowledge_id: Annotated[str, msgspec.Meta(description="The index.")]
    query: str
    retrieval_setting: RetrievalSetting = msgspec.field(default_factory=RetrievalSetting)
    metadata_condition: Annotated[
        dict[str, Any] | None, msgspec.Meta(description="Must be null: give the key a filter.")
    ] = None
    at: At = None


class Record(msgspec.Struct):
    """A passage; ``score`` is its share of the best passage's score."""

    content: str
    score: float
    title: str
    metadata: dict[str, Any]


class RetrievalResponse(msgspec.Struct, omit_defaults=True):
    """The passages, best first, and notes as of ``/v1/search``."""

    records: list[Record]
    notes: list[NoteOut] = []


_DECODER = msgspec.json.Decoder(RetrievalRequest)


async def retrieval(service: Service, request: Request) -> Response:
    """Answer a request of Dify's."""
    check_content_type(request)
    async with BodyReader(request, service.budget, service.config.limits) as body:
        return await _answer(service, request, body)


async def _answer(service: Service, request: Request, body: bytes) -> Response:
    principal, held = request.state.principal, request.state.held
    asked = await on_desk(service, held, len(body) > LARGE, decode_checked, _DECODER, body, service.config.limits)
    if asked.metadata_condition:
        raise InputError(
            "unsupported",
            "metadata_condition",
            "{field} is not supported; give this knowledge's key a filter in the server's configuration",
        )
    snapshot = service.snapshot(asked.knowledge_id, principal)
    check_most(len(asked.query), "query.text", service.config.limits, "text_chars", "character")
    rows = snapshot.rows(None, principal, "query.allow")
    if asked.at is not None:
        rows = await on_desk(service, held, snapshot.index.num_passages > FEW, snapshot.valid_rows, rows, asked.at)
    query = SearchQuery(asked.query, allow=rows)
    search = Search(
        snapshot=snapshot, queries=[query], k=asked.retrieval_setting.top_k, principal=principal, owner=held.owner
    )
    request.state.search = search
    try:
        request.state.answer = answer = await service.search(search)
    except HopfuseError as error:
        raise error.about("query.text" if error.field == "queries[0].text" else None) from None
    return await respond(service, held, answer, partial(_response, threshold=asked.retrieval_setting.score_threshold))


def _response(answer: SearchAnswer, threshold: float | None) -> PartedResponse:
    """Return the hits whose scores are high enough; no others are read."""
    (found,) = answer.found
    scores = found.scores.tolist()
    best = max(scores, default=0.0)
    high = [at for at, score in enumerate(scores) if _share(score, best) >= (threshold or 0.0)]
    runs = ([encode([_record(hit, best) for hit in run])[1:-1]] for run in answer.reader.runs(found, high))
    return PartedResponse(in_parts(RetrievalResponse([], found.notes), runs), JSON)


def _share(score: float, best: float) -> float:
    """Return a score in [0, 1] as a share of the best, since each recipe has its own scale."""
    return max(0.0, score / best) if best > 0 else 0.0


def _record(hit: HitOut, best: float) -> Record:
    return Record(hit.text or "", _share(hit.score, best), hit.title or "", {"id": hit.id, **(hit.metadata or {})})


def dify_error(error: HopfuseError) -> dict[str, Any]:
    """Return an error in Dify's format, with its code and field."""
    status = status_of(error)
    return {
        "error_code": {401: NO_KEY, 404: NO_KNOWLEDGE}.get(status, status),
        "error_msg": error.sentence(str),
        "code": error.code,
        "field": error.field,
    }
