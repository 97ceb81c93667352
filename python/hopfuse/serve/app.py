"""The HTTP interface: Starlette's routes over a :class:`Service`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..errors import FormatError, HopfuseError
from .answers import respond, search_response
from .arrow import ARROW, arrow_response, read_arrow
from .batcher import stopping
from .compression import CompressedSend, accepted
from .decoding import read_change, read_deletion, read_search
from .dify import RetrievalRequest, RetrievalResponse, dify_error, retrieval
from .errors import RefusalError, damaged, without_frames
from .http import JSON, NOSNIFF, BodyReader, check_content_type, check_origin, json_response, owner_of, refused
from .keys import Principal, lacks_right
from .mcp import OverHttp
from .metrics import Metrics
from .oip import (
    InferRequest,
    InferResponse,
    RepositoryRequest,
    infer,
    model_config,
    model_metadata,
    model_of,
    model_statistics,
    oip_error,
    read_repository,
    server_metadata,
)
from .openapi import WITH_BODY, Endpoint, document, page
from .passages import PassageReader, whole
from .proxies import Proxies
from .schema import (
    AtLeast,
    ChangeResponse,
    DeletionRequest,
    DeletionResponse,
    Health,
    IndexesResponse,
    IndexOut,
    PassageOut,
    PassagesPage,
    PassagesRequest,
    SearchRequest,
    SearchResponse,
)
from .service import Service
from .snapshots import IndexSnapshot

log = logging.getLogger("hopfuse.serve")


def make_app(service: Service, *, start_first: bool = False) -> Starlette:
    """Return the ASGI application, for any ASGI server; it starts and stops the service.

    Parameters
    ----------
    service : Service
    start_first : bool
        Listen only when the indexes are ready. By default the server listens at once, and ``/health/ready`` reports the
        state.

    Examples
    --------
    >>> from hopfuse.serve import ServeConfig, Service, make_app
    >>> config = ServeConfig.read("", {"indexes": {"wiki": {"path": "wiki-index"}}})
    >>> app = make_app(Service(config))
    >>> [route.path for route in app.routes][:1]
    ['/v1/search']
    """
    routes = Routes(service)
    endpoints = [*routes.endpoints(), *dialects(service)]
    routes.document = document(endpoints, keys=bool(service.config.keys))
    tools = OverHttp(service) if service.config.mcp else None
    if tools is not None:  # not in the OpenAPI document: MCP describes its tools itself
        endpoints.append(Endpoint(method="POST", path="/mcp", summary="The tools, by MCP.", handler=tools.answer))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.nullcontext() if tools is None else tools.running():
            starting = asyncio.create_task(_start(service))  # /health is answered meanwhile
            try:
                if start_first:
                    await starting
                    if service.status != "ok":
                        raise RuntimeError("the server could not start; see its log")
                yield
            finally:
                starting.cancel()
                await service.stop()

    origins = service.config.origins
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["*"],
        allow_headers=["authorization", "content-type"],
        expose_headers=["retry-after"],
    )
    return _Application(
        middleware=[cors] if origins else [],
        routes=[Route(one.path, GuardedEndpoint(service, one), methods=[one.method]) for one in endpoints],
        lifespan=lifespan,
        proxies=Proxies(service.config.proxies),
        exception_handlers={404: _no_route, 405: _no_method},
    )


class _Application(Starlette):
    """Starlette, except that requests go directly to a route whose path and method they have, if no middleware is set.

    What a proxy says of a request is read first. A path with a further slash is not found: a redirect would need the
    client's scheme and host. The handlers of errors that Starlette puts before the routes have nothing to do there: an
    endpoint answers all of its own.
    """

    def __init__(self, *, middleware: list[Middleware], routes: list[Route], proxies: Proxies, **more: Any) -> None:
        super().__init__(middleware=middleware, routes=routes, **more)
        self.router.redirect_slashes = False
        self._proxies = proxies
        fixed = [] if middleware else [route for route in routes if "{" not in route.path]
        self._direct = {(method, route.path): route.endpoint for route in fixed for method in route.methods or ()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._proxies.read(scope)
            endpoint = self._direct.get((scope["method"], scope["path"]))
            if endpoint is not None and not scope.get("root_path"):
                await endpoint(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


async def _start(service: Service) -> None:
    try:
        await service.start()
    except Exception:
        service.status = "failed"
        log.exception("the server could not start")


class Routes:
    """Handlers of the server's own routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._page = page()
        self._passages = PassageReader(service)
        self.document: dict[str, Any] = {}

    def endpoints(self) -> list[Endpoint]:
        """Return every route."""
        return [
            Endpoint(
                method="POST",
                path="/v1/search",
                summary="Rank the passages for a batch of questions.",
                handler=self.search,
                request=SearchRequest,
                response=SearchResponse,
                also=(ARROW,),
                errors=WITH_BODY,
                right="read",
            ),
            Endpoint(
                method="POST",
                path="/v1/passages",
                summary="Add or replace passages, entities, edges and facts.",
                handler=self.add,
                request=PassagesRequest,
                response=ChangeResponse,
                errors=(*WITH_BODY, 409),
                right="write",
            ),
            Endpoint(
                method="GET",
                path="/v1/passages",
                summary="Read passages page by page, in ascending order of their ids.",
                handler=self.read_page,
                response=PassagesPage,
                query={"index": str, "after": str, "limit": int, "at_least": AtLeast, "timeout_ms": int},
                errors=(400, 404, 503, 504),
                right="read",
            ),
            Endpoint(
                method="GET",
                path="/v1/passages/{id:path}",
                summary="Read a passage.",
                handler=self.read_passage,
                response=PassageOut,
                query={"index": str, "at_least": AtLeast, "timeout_ms": int},
                errors=(400, 404, 503, 504),
                right="read",
            ),
            Endpoint(
                method="DELETE",
                path="/v1/passages/{id:path}",
                summary="Delete a passage, with its edges and facts.",
                handler=self.delete,
                response=ChangeResponse,
                query={"index": str, "timeout_ms": int},
                errors=(400, 404, 409, 429, 503, 504),
                right="write",
            ),
            Endpoint(
                method="POST",
                path="/v1/passages/delete",
                summary="Delete passages by ids, conditions or document, or count what that would delete.",
                handler=self.delete_some,
                request=DeletionRequest,
                response=DeletionResponse,
                errors=(*WITH_BODY, 409),
                right="write",
            ),
            Endpoint(
                method="GET",
                path="/v1/indexes",
                summary="List the indexes.",
                handler=self.indexes,
                response=IndexesResponse,
                errors=(503,),
                right="read",
            ),
            Endpoint(
                method="GET",
                path="/health/live",
                summary="Answer 200 while the process runs.",
                handler=self.live,
                response=Health,
            ),
            Endpoint(
                method="GET",
                path="/health/ready",
                summary="Answer 200 while searches are answered.",
                handler=self.ready,
                response=Health,
                errors=(503,),
            ),
            Endpoint(
                method="GET",
                path="/metrics",
                summary="Counters for Prometheus.",
                handler=self.metrics,
                media="text/plain",
                right="admin",
            ),
            Endpoint(
                method="GET",
                path="/openapi.json",
                summary="This description.",
                handler=self.openapi,
                response=dict[str, Any],
            ),
            Endpoint(method="GET", path="/", summary="A page to search from.", handler=self.page, media="text/html"),
        ]

    async def search(self, request: Request) -> Response:
        service, arrived = self._service, time.perf_counter()
        kind = check_content_type(request, (JSON, ARROW))
        read, most = (read_search, "json_bytes") if kind == JSON else (read_arrow, "body_bytes")
        async with self._body(request, most, service.batcher.check_full) as body:
            held, stages = request.state.held, service.metrics.stages
            search = await read(service, body, request.state.principal, held)
            stages["read"].observe(time.perf_counter() - arrived)
            request.state.search = search
            request.state.answer = answer = await service.search(search)
            wants = request.headers.get("accept", "")
            as_arrow = ARROW in wants or (kind == ARROW and JSON not in wants)
            write = partial(arrow_response, fields=search.fields) if as_arrow else search_response
            response = await respond(service, held, answer, write)
        stages["total"].observe(time.perf_counter() - arrived)
        return response

    def _body(self, request: Request, most: str = "json_bytes", admit: Callable[[], None] = lambda: None) -> BodyReader:
        return BodyReader(request, self._service.budget, self._service.config.limits, most, admit)

    async def add(self, request: Request) -> Response:
        check_content_type(request)
        async with self._body(request) as body:
            held = request.state.held
            asked = await read_change(self._service, body, held)
            return json_response(ChangeResponse(await self._service.add(asked, request.state.principal, held)))

    async def read_page(self, request: Request) -> Response:
        async with self._body(request):
            return await self._passages.page(request.query_params, request.state.principal, request.state.held)

    async def read_passage(self, request: Request) -> Response:
        id, given, principal = request.path_params["id"], request.query_params, request.state.principal
        async with self._body(request):
            return await self._passages.one(id, given, principal, request.state.held)

    async def delete(self, request: Request) -> Response:
        given = request.query_params
        timeout_ms = whole(given, "timeout_ms", None)
        async with self._body(request):
            seq = await self._service.delete(
                request.path_params["id"], given.get("index"), request.state.principal, timeout_ms
            )
        return json_response(ChangeResponse(seq))

    async def delete_some(self, request: Request) -> Response:
        check_content_type(request)
        async with self._body(request) as body:
            held = request.state.held
            asked = await read_deletion(self._service, body, held)
            return json_response(await self._service.delete_some(asked, request.state.principal, held))

    async def indexes(self, request: Request) -> Response:
        principal = request.state.principal
        seen = self._service.snapshots_for(principal)
        return json_response(
            IndexesResponse(
                [about(one, principal, self._service.changes.accepts_writes(one.name)) for one in seen.values()]
            )
        )

    async def live(self, request: Request) -> Response:
        return json_response(Health("ok", self._service.worker))

    async def ready(self, request: Request) -> Response:
        self._service.check_ready()
        return json_response(Health("ok", self._service.worker))

    async def metrics(self, request: Request) -> Response:
        return Response(await self._service.counters(), headers={"content-type": Metrics.content_type})

    async def openapi(self, request: Request) -> Response:
        return json_response(self.document)

    async def page(self, request: Request) -> Response:
        return self._page


def dialects(service: Service) -> list[Endpoint]:
    """Return the routes of other systems' protocols."""

    def model(request: Request) -> IndexSnapshot:
        return model_of(service, request)

    async def dify(request: Request) -> Response:
        return await retrieval(service, request)

    async def run_infer(request: Request) -> Response:
        return await infer(service, request)

    async def server(request: Request) -> Response:
        return json_response(server_metadata())

    async def live(request: Request) -> Response:
        return json_response({"live": True})

    async def ready(request: Request) -> Response:
        service.check_ready()
        return json_response({"ready": True})

    async def model_ready(request: Request) -> Response:
        return json_response({"name": model(request).name, "ready": True})

    async def model_about(request: Request) -> Response:
        return json_response(model_metadata(model(request)))

    async def config(request: Request) -> Response:
        return json_response(model_config(model(request)))

    async def stats(request: Request) -> Response:
        return json_response(model_statistics(service, [model(request)]))

    async def all_stats(request: Request) -> Response:
        seen = service.snapshots_for(request.state.principal)
        return json_response(model_statistics(service, list(seen.values())))

    async def repository(request: Request) -> Response:
        return json_response(await read_repository(service, request))

    shown: dict[str, Any] = {"response": dict[str, Any], "error": oip_error}
    named: dict[str, Any] = {**shown, "right": "read", "errors": (404, 503)}
    counted: dict[str, Any] = {**named, "right": "admin"}  # they tell of all keys' requests, as /metrics does
    models = []
    for name in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
        models += [
            Endpoint(method="GET", path=name, summary="An index as a model.", handler=model_about, **named),
            Endpoint(
                method="GET", path=f"{name}/ready", summary="Whether the model is ready.", handler=model_ready, **named
            ),
            Endpoint(
                method="GET", path=f"{name}/config", summary="The model's configuration.", handler=config, **named
            ),
            Endpoint(
                method="GET", path=f"{name}/stats", summary="Counts of requests to infer.", handler=stats, **counted
            ),
            Endpoint(
                method="POST",
                path=f"{name}/infer",
                summary="Search by vectors or texts.",
                handler=run_infer,
                request=InferRequest,
                response=InferResponse,
                also=("application/octet-stream",),
                errors=WITH_BODY,
                right="read",
                error=oip_error,
            ),
        ]
    return [
        Endpoint(
            method="POST",
            path="/retrieval",
            summary="Dify's external knowledge.",
            handler=dify,
            request=RetrievalRequest,
            response=RetrievalResponse,
            errors=WITH_BODY,
            right="read",
            error=dify_error,
        ),
        Endpoint(method="GET", path="/v2", summary="The server, in the inference protocol.", handler=server, **shown),
        Endpoint(method="GET", path="/v2/health/live", summary="Same as /health/live.", handler=live, **shown),
        Endpoint(
            method="GET",
            path="/v2/health/ready",
            summary="Same as /health/ready.",
            handler=ready,
            errors=(503,),
            **shown,
        ),
        Endpoint(method="GET", path="/v2/models/stats", summary="Counts of all models.", handler=all_stats, **counted),
        Endpoint(
            method="POST",
            path="/v2/repository/index",
            summary="List the indexes as models.",
            handler=repository,
            request=RepositoryRequest,
            response=list[dict[str, Any]],
            errors=WITH_BODY,
            right="read",
            error=oip_error,
        ),
        *models,
    ]


def about(snapshot: IndexSnapshot, principal: Principal, writable: bool) -> IndexOut:
    """Return an index's entry in ``/v1/indexes``; counts include only what the key sees."""
    index, retriever = snapshot.index, snapshot.retriever
    encoder, seen = retriever.encoder, snapshot.visible(principal)
    return IndexOut(
        name=snapshot.name,
        passages=index.num_passages if seen is None else int(seen.sum()),
        entities=index.num_entities if seen is None else None,
        dim=retriever.dim,
        recipe=retriever.recipe.name,
        recipes=snapshot.recipes,
        encoder=None if encoder is None else encoder.name,
        reads_texts=snapshot.reads_texts,
        writable=writable,
        seq=snapshot.seq,
    )


class GuardedEndpoint:
    """An endpoint as an ASGI application: it checks keys, answers refusals and counts; other errors become a 500.

    Starlette would wrap a plain function once more, to catch the exceptions that are caught here.

    Parameters
    ----------
    service : Service
    endpoint : Endpoint
    """

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self._service, self._endpoint = service, endpoint
        self._local = not service.config.keys and service.config.is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, task = Request(scope, receive, send), asyncio.current_task()
        assert task is not None
        least = self._service.config.compress_bytes
        self._service.unanswered.add(task)
        try:
            try:
                response = await self._answer(request)
            finally:
                self._service.unanswered.discard(task)
                request.state.search = request.state.answer = None  # only what is counted waits for slow clients
            if NOSNIFF not in response.raw_headers:
                response.raw_headers.append(NOSNIFF)
            least = self._service.config.compress_bytes
            if least is not None:
                encoding = accepted(request.headers.get("accept-encoding", ""))
                send = CompressedSend(send, encoding, least, partial(self._service.desk.run, owner_of(request)))
            await response(scope, receive, send)
        finally:
            self._service.requests.end(request)

    async def _answer(self, request: Request) -> Response:
        service, endpoint, code, arrived = self._service, self._endpoint, None, time.perf_counter()
        try:
            check_origin(request, service.config.origins, local=self._local, keyed=bool(service.config.keys))
            if endpoint.right is not None:
                await _check_key(service, request, endpoint.right)
                service.requests.begin(request)
            response: Response = await endpoint.handler(request)
        except FormatError:
            log.exception("a file of an index is damaged")
            refusal = damaged()
            response, code = refused(refusal, endpoint.error and endpoint.error(refusal)), refusal.code
        except HopfuseError as error:
            response, code = refused(error, endpoint.error and endpoint.error(error)), error.code
            without_frames(error)
        except asyncio.CancelledError:
            if not service.is_over:
                raise
            refusal = ended(endpoint.right == "write" or endpoint.path == "/mcp")
            response, code = refused(refusal, endpoint.error and endpoint.error(refusal)), refusal.code
        except Exception as error:
            log.exception("a request to %s failed", endpoint.path)
            without_frames(error)
            code = "failed"
            failure = RefusalError("failed", None, "the request failed; the server's log says why")
            response = refused(failure, endpoint.error and endpoint.error(failure))
        service.metrics.answered(endpoint.path, response.status_code, code)
        service.log_request(
            request,
            endpoint.path,
            status=response.status_code,
            seconds=time.perf_counter() - arrived,
            code=code,
        )
        return response


def ended(changes: bool) -> RefusalError:
    """Return the refusal of a request that is not answered when the time of a stopping server has passed."""
    if not changes:
        return stopping()
    return RefusalError(
        "unavailable",
        None,
        "the server is stopping, and the change may still be committed: send the request again with replace",
    ).after(1)


async def _check_key(service: Service, request: Request, right: str) -> None:
    """Set ``request.state.principal`` by the request's key, and refuse a key without the right."""
    principal = await service.principal_of(request)
    request.state.principal = principal  # before the refusal: the log names the key
    if not principal.may(right):
        raise lacks_right(principal, right)


def _refused_route(request: Request, refusal: RefusalError) -> Response:
    """Return a refusal in the form of the protocol whose path it is."""
    is_oip = request.url.path.startswith("/v2/")
    return refused(refusal, oip_error(refusal) if is_oip else None)


async def _no_route(request: Request, error: Exception) -> Response:
    return _refused_route(
        request, RefusalError("unknown", None, "there is no such route; /openapi.json lists the routes")
    )


async def _no_method(request: Request, error: Exception) -> Response:
    response = _refused_route(
        request,
        RefusalError("method", None, "{given} is not a method of this route; see /openapi.json", given=request.method),
    )
    response.headers.update(getattr(error, "headers", None) or {})
    return response
