"""Requests with ever different recipes and options: bounded by key, made in turns, dropped if nobody waits."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import InputError
from hopfuse.serve import KeyConfig, RefusalError, Search, SearchQuery, Service
from refusals import refused
from serve.served import configured, within


@pytest.fixture
def making(monkeypatch):
    """The dampings of retrievers in the order in which they are made, each of which waits for ``go``."""
    found, variant = SimpleNamespace(order=[], go=threading.Event()), hf.Retriever.variant

    def held(self: hf.Retriever, recipe: Any = None, *, config: Any = None, **more: Any) -> hf.Retriever:
        if config:
            found.order.append(config["damping"])
            found.go.wait()
        return variant(self, recipe, config=config, **more)

    monkeypatch.setattr(hf.Retriever, "variant", held)
    yield found
    found.go.set()


@pytest.fixture
def serving(path):
    """A function that runs a coroutine function with a service."""

    def run(test: Any, option_sets: int) -> None:
        within(configured(path, f"[limits]\noption_sets = {option_sets}\n"), test)

    return run


def ask(service: Service, owner: str, damping: float, timeout_ms: int = 60_000) -> asyncio.Task[Any]:
    """Send a search with options of its own."""
    snapshot, options = service.snapshot("cities"), {"damping": damping}
    queries = [SearchQuery("What is far from Ankara?")]
    search = Search(snapshot=snapshot, queries=queries, options=options, owner=owner, timeout_ms=timeout_ms)
    return asyncio.ensure_future(service.search(search))


async def has_begun(making: Any, count: int = 1) -> None:
    """Wait until so many were begun."""
    while len(making.order) < count:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)  # and what else was asked has reached the cache


def test_retrievers_of_a_key_are_bounded_and_keys_take_turns(serving, making):
    async def test(service: Service) -> None:
        asked = [ask(service, "a", damping) for damping in (0.1, 0.2, 0.3)]
        await has_begun(making)
        with refused(RefusalError, "overloaded", "options", allowed=3, limit="limits.option_sets") as caught:
            await ask(service, "a", 0.4)
        assert caught.value.retry_after == 1
        asked += [ask(service, "b", 0.9), ask(service, "a", 0.2)]  # the last one is being made already
        await asyncio.sleep(0.01)
        making.go.set()
        assert all(one.results for one in await asyncio.gather(*asked))
        assert making.order == [0.1, 0.9, 0.2, 0.3]
        assert (await ask(service, "a", 0.5)).results

    serving(test, 3)


def test_what_nobody_waits_for_is_not_made(serving, making):
    async def test(service: Service) -> None:
        first, gone = ask(service, "a", 0.1), ask(service, "a", 0.2)
        await has_begun(making)
        with refused(RefusalError, "overloaded", "options"):
            await ask(service, "a", 0.3)
        gone.cancel()
        await asyncio.wait([gone])
        with refused(RefusalError, "timeout", "timeout_ms"):
            await ask(service, "a", 0.4, timeout_ms=20)
        last = ask(service, "a", 0.5)
        await asyncio.sleep(0.01)
        making.go.set()
        assert (await first).results
        assert (await last).results
        assert making.order == [0.1, 0.5]

    serving(test, 2)


def test_what_has_begun_is_made_although_its_client_leaves(serving, making):
    async def test(service: Service) -> None:
        gone = ask(service, "a", 0.1)
        await has_begun(making)
        gone.cancel()
        await asyncio.wait([gone])
        making.go.set()
        assert (await ask(service, "b", 0.1)).results
        assert making.order == [0.1]

    serving(test, 2)


def test_options_of_one_key_displace_its_own(serving, making):
    async def test(service: Service) -> None:
        making.go.set()
        await ask(service, "b", 0.9)
        for at in range(8):
            await ask(service, "a", 0.1 + at / 100)
        await ask(service, "b", 0.9)
        assert making.order.count(0.9) == 1

    serving(test, 3)


def test_keys_are_checked_while_retrievers_are_made(serving, making):
    async def test(service: Service) -> None:
        asked = [ask(service, "a", damping) for damping in (0.1, 0.2)]
        await has_begun(making)
        await service.check_keys({"k": KeyConfig(sha256="0" * 64, filter={"tenant": "a"})})
        with refused(InputError, "unknown", "keys.k.filter.nope"):
            await service.check_keys({"k": KeyConfig(sha256="0" * 64, filter={"nope": "a"})})
        assert not any(one.done() for one in asked)
        making.go.set()
        await asyncio.gather(*asked)

    serving(test, 4)


def test_a_service_that_stops_refuses_what_is_not_made(serving, making):
    async def test(service: Service) -> None:
        asked = [ask(service, "a", 0.1), ask(service, "a", 0.2), ask(service, "b", 0.9)]
        await has_begun(making)
        stopping = asyncio.ensure_future(service.stop())
        await asyncio.wait([asked[2]])  # the others of its key wait for the first
        making.go.set()
        for one in asked:
            with refused(RefusalError, "unavailable"):
                await one
        await stopping
        assert making.order == [0.1]

    serving(test, 4)
