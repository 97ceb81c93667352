"""The Open Inference Protocol v2 with its binary extension; an index is a model of vectors or texts."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from .._validation import check_flag, check_names, check_whole
from ..errors import HopfuseError, InputError
from .answers import PartedResponse, respond
from .bounds import check_most
from .compression import WINDOWS, decompressed
from .config import Limits
from .decoding import LARGE, decode_checked, on_desk, read_queries
from .errors import MOST_SHOWN, RefusalError, in_request
from .http import JSON, BodyReader, encode
from .metrics import InferenceCounts
from .schema import QueryIn, SearchRequest, Value
from .searches import Search, SearchAnswer
from .service import Service
from .snapshots import IndexSnapshot
from .vectors import check_vector

#: Header with the length of the JSON part of a body, which binary tensors follow.
HEADER = "Inference-Header-Content-Length"
#: Triton's names of the types of tensors.
_TYPES = {"FP32": "TYPE_FP32", "INT64": "TYPE_INT64", "BYTES": "TYPE_STRING"}
FLOATS: dict[str, np.dtype[Any]] = {"FP16": np.dtype("<f2"), "FP32": np.dtype("<f4"), "FP64": np.dtype("<f8")}


class TensorIn(msgspec.Struct, forbid_unknown_fields=True):
    """An input: ``vectors`` (floating-point, (B, d)) or ``texts`` (BYTES, (B,))."""

    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] = {}
    data: list[Value | list[Value]] | None = None


class OutputIn(msgspec.Struct, forbid_unknown_fields=True):
    """A requested output: ``ids``, ``scores`` or ``counts``."""

    name: str
    parameters: dict[str, Any] = {}


class InferRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Queries; ``parameters`` may have ``k``, ``timeout`` in microseconds, ``strict``, ``per_document`` and ``at``."""

    inputs: list[TensorIn]
    id: str | None = None
    parameters: dict[str, Any] = {}
    outputs: list[OutputIn] | None = None


class InferResponse(msgspec.Struct, omit_defaults=True):
    """Rankings, padded: ``ids`` (BYTES or INT64), ``scores`` (FP32) and ``counts`` (INT64).

    ``parameters`` has ``notes``, JSON of a list for each query, if there are any.
    """

    model_name: str
    model_version: str
    outputs: list[dict[str, Any]]
    id: str | None = None
    parameters: dict[str, Any] = {}


class RepositoryRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Which models to list; all are ready."""

    ready: bool = False


#: The parameters of a request, and those of a search by HTTP that it does not have.
_PARAMETERS = ("k", "timeout", "strict", "per_document", "at")
_OF_SEARCHES = {*SearchRequest.__struct_fields__, *QueryIn.__struct_fields__}.difference(_PARAMETERS)
_DECODER = msgspec.json.Decoder(InferRequest)
_REPOSITORY = msgspec.json.Decoder(RepositoryRequest)
_EXTENSIONS = ["binary_tensor_data", "model_configuration", "model_repository(index)", "statistics"]


def server_metadata() -> dict[str, Any]:
    """Return the response of ``GET /v2``."""
    return {"name": "hopfuse", "version": __version__, "extensions": _EXTENSIONS}


def model_of(service: Service, request: Request) -> IndexSnapshot:
    """Return the state of the index that a request names, whose version is its seq.

    Raises
    ------
    RefusalError
        404: there is no such index, or it is at another seq than a version in the path.
    """
    snapshot = service.snapshot(request.path_params["name"], request.state.principal)
    version = request.path_params.get("version")
    if version is not None and version != str(snapshot.seq):
        raise RefusalError(
            "unknown",
            "version",
            "{field} is {given!r}, and the index is at {allowed}; leave the version out, or give that one",
            given=version[:MOST_SHOWN],
            allowed=snapshot.seq,
        )
    return snapshot


async def read_repository(service: Service, request: Request) -> list[dict[str, Any]]:
    """Return the response of ``POST /v2/repository/index``."""
    limits = service.config.limits
    async with BodyReader(request, service.budget, limits) as body:
        if body:
            await on_desk(service, request.state.held, len(body) > LARGE, decode_checked, _REPOSITORY, body, limits)
    seen = service.snapshots_for(request.state.principal)
    return [{"name": one.name, "version": str(one.seq), "state": "READY", "reason": ""} for one in seen.values()]


def model_config(snapshot: IndexSnapshot) -> dict[str, Any]:
    """Return the response of ``GET /v2/models/{name}/config``, whose shapes include the batch."""
    about = model_metadata(snapshot)

    def tensors(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"name": one["name"], "data_type": _TYPES[one["datatype"]], "dims": one["shape"]} for one in given]

    return {
        "name": snapshot.name,
        "platform": about["platform"],
        "backend": "hopfuse",
        "version_policy": {"latest": {"num_versions": 1}},
        "max_batch_size": 0,
        "input": tensors(about["inputs"]),
        "output": tensors(about["outputs"]),
    }


def model_statistics(service: Service, snapshots: Sequence[IndexSnapshot]) -> dict[str, Any]:
    """Return the response of ``GET /v2/models/{name}/stats``: the requests that this process answered.

    A request shares its executions with others, so each counts as one.
    """
    return {"model_stats": [_statistics(one, service.metrics.inferences[one.name]) for one in snapshots]}


def _statistics(snapshot: IndexSnapshot, counts: InferenceCounts) -> dict[str, Any]:
    succeeded = counts.succeeded

    def part(count: int, ns: int) -> dict[str, int]:
        return {"count": count, "ns": ns}

    return {
        "name": snapshot.name,
        "version": str(snapshot.seq),
        "last_inference": counts.last_ms,
        "inference_count": counts.queries,
        "execution_count": succeeded,
        "inference_stats": {
            "success": part(succeeded, counts.success_ns),
            "fail": part(counts.failed, counts.fail_ns),
            "queue": part(succeeded, counts.queue_ns),
            "compute_input": part(succeeded, 0),
            "compute_infer": part(succeeded, counts.search_ns),
            "compute_output": part(succeeded, 0),
            "cache_hit": part(0, 0),
            "cache_miss": part(0, 0),
        },
        "batch_stats": [],
    }


def model_metadata(snapshot: IndexSnapshot) -> dict[str, Any]:
    """Return the response of ``GET /v2/models/{name}``."""
    ids = _id_type(snapshot)
    dim = snapshot.retriever.dim
    return {
        "name": snapshot.name,
        "versions": [str(snapshot.seq)],
        "platform": "hopfuse",
        "inputs": [
            *([] if dim is None else [{"name": "vectors", "datatype": "FP32", "shape": [-1, dim]}]),
            {"name": "texts", "datatype": "BYTES", "shape": [-1]},
        ],
        "outputs": [
            {"name": "ids", "datatype": ids, "shape": [-1, -1]},
            {"name": "scores", "datatype": "FP32", "shape": [-1, -1]},
            {"name": "counts", "datatype": "INT64", "shape": [-1]},
        ],
    }


async def infer(service: Service, request: Request) -> Response:
    """Answer a request for inference, and count it."""
    began = time.perf_counter_ns()
    snapshot = model_of(service, request)
    counts = service.metrics.inferences[snapshot.name]
    try:
        response = await _infer(service, request, snapshot)
    except BaseException:
        counts.failed += 1
        counts.fail_ns += time.perf_counter_ns() - began
        raise
    answer: SearchAnswer = request.state.answer
    counts.succeeded += 1
    counts.queries += len(answer.found)
    counts.success_ns += time.perf_counter_ns() - began
    counts.queue_ns += round(1e6 * answer.timings.queued_ms)
    counts.search_ns += round(1e6 * answer.timings.search_ms)
    counts.last_ms = time.time_ns() // 1_000_000
    return response


async def _infer(service: Service, request: Request, snapshot: IndexSnapshot) -> Response:
    limits, most = service.config.limits, "body_bytes" if HEADER.lower() in request.headers else "json_bytes"
    async with BodyReader(request, service.budget, limits, most, encodings=WINDOWS) as body:
        encoding, held = request.headers.get("content-encoding", "identity"), request.state.held
        if encoding.strip().lower() != "identity":
            body = await service.desk.run(held.owner, decompressed, body, encoding, limits, most)
            held.add(len(body))
        return await _answer(service, request, snapshot, body)


async def _answer(service: Service, request: Request, snapshot: IndexSnapshot, body: bytes) -> Response:
    limits, principal, held = service.config.limits, request.state.principal, request.state.held
    head = request.headers.get(HEADER.lower())
    if head is not None and not (head.isdecimal() and len(head) < 12 and int(head) <= len(body)):
        raise InputError(
            "range", HEADER, "{field} is {given!r}; the body has {allowed} bytes", given=head[:20], allowed=len(body)
        )
    size = len(body) if head is None else int(head)
    is_large = len(body) > LARGE
    asked, given, vectors = await on_desk(service, held, is_large, _read, body, size, snapshot, limits)
    try:
        queries, is_long = await read_queries(
            service, snapshot, principal, held, given, vectors, "inputs", at=_time(asked.parameters), is_long=is_large
        )
    except InputError as error:
        raise (in_request(error, "parameters") if error.field == "at" else error) from None
    k, timeout_ms = _whole(asked.parameters, "k", 10), _whole(asked.parameters, "timeout", 0)
    request.state.search = search = Search(
        snapshot=snapshot,
        queries=queries,
        is_long=is_long,
        k=k,
        strict=check_flag(asked.parameters.get("strict", False), "parameters.strict"),
        per_document=_whole(asked.parameters, "per_document", 0) or None,
        timeout_ms=max(1, timeout_ms // 1000) if timeout_ms else None,
        fields=frozenset(),
        principal=principal,
        owner=held.owner,
    )
    request.state.answer = answer = await service.search(search)
    return await respond(service, held, answer, partial(_response, asked=asked))


def _read(
    body: bytes, size: int, snapshot: IndexSnapshot, limits: Limits
) -> tuple[InferRequest, list[QueryIn], list[Any] | None]:
    """Return a request, whose JSON has so many bytes, its queries and their vectors."""
    if size > limits.json_bytes:
        raise InputError(
            "limit",
            HEADER,
            "{field} is {given}; at most {allowed} bytes of JSON are allowed ({limit} of the server); send tensors as "
            "binary data",
            given=size,
            allowed=limits.json_bytes,
            limit="limits.json_bytes",
        )
    head = body[:size]
    asked: InferRequest = decode_checked(_DECODER, head, limits)
    tensors = _tensors(asked, body[size:])
    texts, vectors = tensors.get("texts"), tensors.get("vectors")
    counts = {len(one) for one in (texts, vectors) if one is not None}
    if len(counts) != 1 or counts == {0}:
        raise InputError(
            "length", "inputs", "{field} must be vectors, texts, or both, with the same number of queries, at least 1"
        )
    (count,) = counts
    check_most(count, "inputs", limits, "queries", "row")
    checked = None if vectors is None else [check_vector(row, f"inputs[{at}]") for at, row in enumerate(vectors)]
    # Without a text no entities are known, so that a walk has no seeds.
    none: list[Any] | None = [] if snapshot.retriever.needs.entities else None
    given = [QueryIn(entities=none) if texts is None else QueryIn(text=texts[at]) for at in range(count)]
    return asked, given, checked


def _time(parameters: dict[str, Any]) -> Any:
    """Return the time of a search; refuse what other searches take and this protocol does not."""
    other = next((name for name in parameters if name in _OF_SEARCHES), None)
    if other is not None:
        raise InputError(
            "unsupported",
            f"parameters.{other}",
            "{field} is given, and this protocol has no such parameter; allowed: {allowed}; POST /v1/search takes it",
            allowed=", ".join(_PARAMETERS),
        )
    return parameters.get("at")


def _whole(parameters: dict[str, Any], name: str, default: int) -> int:
    return check_whole(parameters.get(name, default), f"parameters.{name}", least=0)


def _tensors(asked: InferRequest, binary: bytes) -> dict[str, Any]:
    """Return the inputs by name: vectors as an array, texts as a list."""
    found: dict[str, Any] = {}
    at = 0
    for one in asked.inputs:
        if one.name not in ("vectors", "texts") or one.name in found:
            raise InputError(
                "choice", "inputs", "{field} have {given!r}; allowed, each once: vectors, texts", given=one.name[:50]
            )
        size = _whole(one.parameters, "binary_data_size", 0)
        if "binary_data_size" in one.parameters:
            if one.data is not None or at + size > len(binary):
                raise InputError(
                    "length",
                    f"inputs.{one.name}",
                    "{field} has both data and binary data, or the body ends before its binary data",
                )
            data: Any = binary[at : at + size]
            at += size
        else:
            data = one.data
        found[one.name] = _vectors(one, data) if one.name == "vectors" else _texts(one, data)
    if at != len(binary):
        raise InputError(
            "length",
            "inputs",
            "{field} have {given} bytes of binary data by their sizes, and the body has {allowed}",
            given=at,
            allowed=len(binary),
        )
    return found


def _vectors(one: TensorIn, data: Any) -> NDArray[Any]:
    if one.datatype not in FLOATS or len(one.shape) != 2 or min(one.shape) < 1:
        raise _wrong_tensor(one, "FP32 of shape [B, d]")
    count = one.shape[0] * one.shape[1]
    if isinstance(data, bytes):
        kind = FLOATS[one.datatype]
        if len(data) != count * kind.itemsize:
            raise _wrong_size(one, f"{len(data)} bytes", count * kind.itemsize)
        return np.frombuffer(data, kind).reshape(one.shape)
    try:
        values = np.array(data, np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise InputError("type", "inputs.vectors.data", "{field} is not a list of numbers") from None
    if len(values) != count:
        raise _wrong_size(one, f"{len(values)} numbers", count)
    return values.reshape(one.shape)


def _texts(one: TensorIn, data: Any) -> list[str]:
    if one.datatype != "BYTES" or len(one.shape) not in (1, 2) or (len(one.shape) == 2 and one.shape[1] != 1):
        raise _wrong_tensor(one, "BYTES of shape [B] or [B, 1]")
    if isinstance(data, bytes):
        texts: list[Any] = []
        at = 0
        try:
            while at < len(data):
                size = struct.unpack_from("<I", data, at)[0]
                part = data[at + 4 : at + 4 + size]
                if len(part) != size:
                    raise InputError("length", "inputs.texts", "{field} ends in the middle of a text")
                texts.append(part.decode("utf-8"))
                at += 4 + size
        except (struct.error, UnicodeDecodeError) as error:
            raise InputError(
                "syntax", "inputs.texts", "{field} is not a sequence of lengths and UTF-8 texts: {error}", error=error
            ) from None
    else:
        nested = data or []
        texts = [text for row in nested for text in (row if isinstance(row, list) else [row])]
    if not all(isinstance(text, str) for text in texts):
        raise InputError("type", "inputs.texts.data", "{field} is not a list of strings")
    if len(texts) != one.shape[0]:
        raise _wrong_size(one, f"{len(texts)} entries", one.shape[0])
    return texts


def _wrong_tensor(one: TensorIn, allowed: str) -> InputError:
    given = f"{one.datatype[:20]} {one.shape!r:.50}"
    return InputError(
        "dtype", f"inputs.{one.name}", "{field} is {given}; it must be {allowed}", given=given, allowed=allowed
    )


def _wrong_size(one: TensorIn, given: str, allowed: int) -> InputError:
    return InputError(
        "shape",
        f"inputs.{one.name}",
        "{field} has {given}; its shape {shape} needs {allowed}",
        given=given,
        shape=f"{one.shape!r:.50}",
        allowed=allowed,
    )


def _id_type(snapshot: IndexSnapshot) -> str:
    ids = snapshot.retriever.recipe.hit_ids(snapshot.index)
    return "INT64" if len(ids) > 0 and isinstance(ids[0], int) else "BYTES"


def _response(answer: SearchAnswer, asked: InferRequest) -> PartedResponse:
    """Return the rankings as tensors."""
    results = answer.results
    rankings = [result.hits for result in results]
    width = max(map(len, rankings))
    kind = _id_type(answer.snapshot)
    pad: Any = -1 if kind == "INT64" else ""
    ids = [one for hits in rankings for one in [*(hit.id for hit in hits), *[pad] * (width - len(hits))]]
    scores = [one for hits in rankings for one in [*(hit.score for hit in hits), *[-np.inf] * (width - len(hits))]]
    tensors: dict[str, tuple[str, list[int], Any]] = {
        "ids": (kind, [len(rankings), width], ids),
        "scores": ("FP32", [len(rankings), width], np.array(scores, "<f4")),
        "counts": ("INT64", [len(rankings)], np.array([len(hits) for hits in rankings], "<i8")),
    }
    wanted = asked.outputs if asked.outputs is not None else [OutputIn(name) for name in tensors]
    binary = bool(asked.parameters.get("binary_data_output", False))
    outputs, behind = [], []
    for one in wanted:
        check_names((one.name[:50],), "outputs", tensors)
        datatype, shape, values = tensors[one.name]
        output: dict[str, Any] = {"name": one.name, "datatype": datatype, "shape": shape}
        if one.parameters.get("binary_data", binary):
            part = _bytes(datatype, values)
            behind.append(part)
            output["parameters"] = {"binary_data_size": len(part)}
        else:
            # JSON has no -inf: padding is null.
            output["data"] = [None if value == -np.inf else value for value in np.asarray(values).tolist()]
        outputs.append(output)
    notes = [result.notes for result in results]
    about = {"notes": encode(notes).decode()} if any(notes) else {}
    head = encode(InferResponse(answer.snapshot.name, str(answer.snapshot.seq), outputs, asked.id, about))
    if not behind:
        return PartedResponse([head], JSON)
    return PartedResponse([head, *behind], "application/octet-stream", {HEADER: str(len(head))})


def _bytes(datatype: str, values: Any) -> bytes:
    if datatype != "BYTES":
        return np.asarray(values, {"INT64": "<i8", "FP32": "<f4"}[datatype]).tobytes()
    encoded = [str(value).encode() for value in values]
    return b"".join(struct.pack("<I", len(one)) + one for one in encoded)


def oip_error(error: HopfuseError) -> dict[str, Any]:
    """Return an error in the protocol's format, with its code and field."""
    return {"error": error.sentence(str), "code": error.code, "field": error.field}
