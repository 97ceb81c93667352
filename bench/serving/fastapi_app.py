"""The same recipe in a plain FastAPI application: one request at a time."""

from __future__ import annotations

import sys

import hopfuse as hf
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from .inputs import K


class Query(BaseModel):
    """A question."""

    vector: list[float]
    entities: list[str]


class Request(BaseModel):
    """The fields of ``/v1/search`` that the bench sends."""

    queries: list[Query]
    k: int = K


class HitOut(BaseModel):
    """A passage."""

    id: str | int
    score: float
    title: str
    text: str


def make(recipe: hf.recipes.PhaseGraph) -> FastAPI:
    """Return the application."""
    app = FastAPI()

    @app.get("/health/ready")
    async def ready() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/search")
    async def search(request: Request) -> list[list[HitOut]]:
        vectors = np.array([query.vector for query in request.queries], np.float32)
        found = recipe.search(vectors=vectors, entities=[query.entities for query in request.queries], k=request.k)
        return [[HitOut(id=hit.id, score=hit.score, title=hit.title, text=hit.text) for hit in hits] for hits in found]

    return app


def main(index: str, port: str) -> None:
    """Serve on loopback."""
    app = make(hf.recipes.PhaseGraph(hf.Index.open(index)))
    uvicorn.run(app, port=int(port), log_level="error", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
