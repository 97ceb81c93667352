"""Requests with many different filters: each part is made once, answers are the library's, others get their turn."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.index import where
from hopfuse.serve import Search, SearchQuery, Service, new_key
from serve.served import CITIES, DIM, Letters, configured, running, save, within

TEXTS = [f"What is far from {city}?" for city in CITIES]


@pytest.fixture
def service(path):
    """A service that has started, and a function that runs a coroutine function with it."""

    def run(test: Any, text: str = "") -> None:
        within(configured(path, text), test)

    return run


def search(service: Service, asked: list[tuple[str, dict[str, Any] | None]], **more: Any) -> Search:
    snapshot = service.snapshot("cities")
    rows = {
        str(allow): None if allow is None else np.flatnonzero(snapshot.index.mask(where(**allow))) for _, allow in asked
    }
    return Search(
        snapshot=snapshot, queries=[SearchQuery(text, allow=rows[str(allow)]) for text, allow in asked], k=5, **more
    )


def found(answer: Any) -> list[list[tuple[Any, float]]]:
    return [[(hit.id, hit.score) for hit in result.hits] for result in answer.results]


def test_a_part_is_made_once_for_all_queries_requests_and_recipes_that_use_it(service):
    async def test(service: Service) -> None:
        parts = service.snapshot("cities").index.parts
        asked = [(text, {"number__ge": at}) for text in TEXTS[:3] for at in range(12)]
        await service.search(search(service, asked))
        assert (parts.made, len(parts)) == (12, 12)
        await asyncio.gather(*(service.search(search(service, asked[at:])) for at in range(0, 36, 5)))
        await service.search(search(service, asked, recipe="hybrid-rrf"))
        assert parts.made == 12

    service(test)


def test_answers_of_pieces_are_those_of_the_library_in_every_bit(service, path):
    index = hf.Index.open(path)
    alone = hf.Retriever(index, encoder=Letters(), threads=1)
    asked = [
        (text, [None, {"number__ge": at}, {"tenant": "a"}, {"number__lt": 9 - at % 5}][at % 4])
        for at, text in enumerate(TEXTS * 3)
    ]
    expected = []
    for text, allow in asked:
        hits = alone.search([text], k=5, allow=None if allow is None else where(**allow)).hits
        expected.append([(index.passage_ids[row], score) for row, score in hits.row(0)])

    async def test(service: Service) -> None:
        for some in (asked, asked[::-1], asked[5:], asked):
            answer = await service.search(search(service, some))
            wanted = {asked.index(one): expected[asked.index(one)] for one in some}
            assert found(answer) == [wanted[asked.index(one)] for one in some]

    for limit in ("", "[limits]\nbatch = 1\n", "[limits]\nbatch = 7\n"):
        service(test, limit)


def test_the_pieces_of_a_request_wait_as_one_request(service):
    async def test(service: Service) -> None:
        asked = [(TEXTS[0], {"number__ge": at}) for at in range(12)]
        assert len(found(await service.search(search(service, asked)))) == 12
        assert service.batcher.requests == service.batcher.queries == 0

    service(test, "[limits]\nqueue_requests = 1\n")


def test_questions_with_vectors_and_with_texts_share_a_part_and_no_batch(service):
    async def test(service: Service) -> None:
        snapshot, vectors = service.snapshot("cities"), Letters().encode_queries(TEXTS)
        rows = np.flatnonzero(snapshot.index.mask(where(number__ge=3)))
        queries = [
            SearchQuery(TEXTS[0], allow=rows),
            SearchQuery(vector=vectors[1], entities=[], allow=rows),
            SearchQuery(TEXTS[2]),
        ]
        together = await service.search(Search(snapshot=snapshot, queries=queries, k=5))
        assert (snapshot.index.parts.made, together.timings.batch) == (1, 1)
        alone = [await service.search(Search(snapshot=snapshot, queries=[one], k=5)) for one in queries]
        assert found(together) == [found(one)[0] for one in alone]

    service(test)


def test_a_snapshot_whose_parts_do_not_fit_makes_them_again_with_the_same_answers(service):
    async def test(service: Service) -> None:
        index = service.snapshot("cities").index
        asked = [(text, {"number__ge": at}) for at, text in enumerate(TEXTS)]
        first = found(await service.search(search(service, asked)))
        assert len(index.parts) == 1
        assert found(await service.search(search(service, asked))) == first
        assert len(index.parts) == 1
        assert index.parts.made > 20

    service(test, "[limits]\npart_bytes = 1\n")


class Gated(Letters):
    """An encoder that waits with the texts of one client until the test lets one more through."""

    def __init__(self) -> None:
        self.gate, self.waiting, self.pieces = threading.Semaphore(0), threading.Semaphore(0), list[list[str]]()

    def encode_queries(self, texts):
        if any(text.startswith("slowly") and text.split()[-1] in CITIES for text in texts):  # not one without its name
            self.pieces.append(texts)
            self.waiting.release()
            self.gate.acquire()
        return super().encode_queries(texts)


def test_another_key_is_answered_between_the_pieces_of_a_request(tmp_path):
    keys, encoder = {name: new_key() for name in ("many", "other")}, Gated()
    known = {name: {"sha256": key[1], "rights": ["admin"]} for name, key in keys.items()}
    with (
        running(configured(save(tmp_path / "index"), keys=known), {"cities": encoder}) as url,
        ThreadPoolExecutor(2) as pool,
    ):

        def bearer(name: str) -> dict[str, str]:
            return {"Authorization": f"Bearer {keys[name][0]}"}

        def post(name: str, queries: list[Any]) -> int:
            body = {"queries": queries, "timeout_ms": 60_000}
            return httpx.post(f"{url}/v1/search", json=body, headers=bearer(name), timeout=600).status_code

        many = [{"text": f"slowly from {CITIES[at]}", "allow": {"number__ge": at}} for at in range(8)]
        attack = pool.submit(post, "many", many)
        try:
            encoder.waiting.acquire()  # its first piece is searched
            # The threads take turns at an encoder, which this query does not need.
            other = pool.submit(post, "other", [{"vector": [1.0] * DIM, "entities": ["Lima"]}])
            while not other.done():  # at once if a worker is free, else when it is in the queue
                if "hopfuse_queue_requests 2.0" in httpx.get(f"{url}/metrics", headers=bearer("other")).text:
                    break
            for _ in many[:-1]:
                encoder.gate.release()  # one more piece
                while not (other.done() or encoder.waiting.acquire(timeout=0.005)):
                    pass
                if other.done():
                    break
            assert other.result() == 200
            assert not attack.done()
        finally:
            for _ in many:
                encoder.gate.release()
        assert attack.result() == 200
        assert encoder.pieces[0] == [many[0]["text"]]  # what a part costs was not known
        assert sorted(text for texts in encoder.pieces for text in texts) == sorted(one["text"] for one in many)
