"""The queue before the kernels: batches, turns, deadlines and bounds; the worker is held where order matters."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hopfuse import backend_info
from hopfuse.serve import Batcher, BatchTimes, Load, RefusalError, status_of
from hypothesis import given
from hypothesis import strategies as st

FAR = 3600.0


class Held:
    """A worker that waits in its first batch until it is let go, and keeps what it ran."""

    def __init__(self, **options: Any) -> None:
        self.go, self.begun, self.ran = threading.Event(), threading.Event(), list[tuple[Any, list[Any]]]()
        self.batcher = Batcher(self._run, **{"limit": 4, "max_requests": 100, **options})

    def _run(self, group: Any, payloads: list[Any]) -> list[Any]:
        self.ran.append((group, payloads))
        self.begun.set()
        self.go.wait()
        return [("done", payload) for payload in payloads]

    def add(
        self,
        payload: Any,
        group: str = "g",
        size: int = 1,
        owner: str = "a",
        within: float = FAR,
        **more: Any,
    ):
        deadline = time.monotonic() + within
        return self.batcher.submit(group, payload, size=size, owner=owner, deadline=deadline, **more)


class Counting(Held):
    """Counts the threads that a call of each batch may use."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.threads = list[int]()

    def _run(self, group: Any, payloads: list[Any]) -> list[Any]:
        self.threads.append(backend_info()["backends"]["cpu"]["threads"])
        return super()._run(group, payloads)


def held(test: Callable[[Any], Awaitable[None]], worker: type[Held] = Held, **options: Any) -> Any:
    """Run a test while the worker is busy with one first batch."""

    async def run() -> Held:
        one = worker(**options)
        one.batcher.start()
        first = one.add("first", group="first")
        await asyncio.to_thread(one.begun.wait)
        try:
            await test(one)
        finally:
            one.go.set()
            await first.future
            await asyncio.to_thread(one.batcher.close)
        return one

    return asyncio.run(run())


def test_waiting_requests_form_one_batch_up_to_the_limit():
    async def test(one: Held) -> None:
        works = [one.add(at) for at in range(6)]
        one.go.set()
        assert [await work.future for work in works] == [("done", at) for at in range(6)]
        assert [work.batch for work in works] == [4, 4, 4, 4, 2, 2]
        assert one.batcher.requests == one.batcher.queries == 0

    assert held(test).ran == [("first", ["first"]), ("g", [0, 1, 2, 3]), ("g", [4, 5])]


def test_requests_read_in_one_turn_of_the_loop_form_one_batch():
    async def test() -> None:
        one = Held()
        one.batcher.start()
        one.go.set()
        for _ in range(20):
            while len(one.batcher._ready._waiters) < 1:
                await asyncio.sleep(0)
            assert await asyncio.gather(*(one.add(at).future for at in range(3)))
        one.batcher.close()
        assert [payloads for _, payloads in one.ran] == [[0, 1, 2]] * 20

    asyncio.run(test())


def test_a_second_worker_takes_what_comes_during_a_batch_and_both_divide_the_threads(monkeypatch):
    monkeypatch.setenv("HOPFUSE_NUM_THREADS", "8")

    async def test(one: Held) -> None:
        works = [one.add(at) for at in range(3)]
        while len(one.ran) < 2:
            await asyncio.sleep(0)
        works += [one.add(at) for at in range(3, 8)]
        await asyncio.sleep(0.02)
        assert len(one.ran) == 2
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    one = held(test, Counting, workers=2)
    ran = [payloads for _, payloads in one.ran]
    assert ran[:2] == [["first"], [0, 1, 2]]
    assert sorted(at for payloads in ran[2:] for at in payloads) == [3, 4, 5, 6, 7]
    assert one.threads[:2] == [8, 4]


@pytest.mark.parametrize(("waiting", "sizes"), [(16, [16]), (21, [16, 5]), (31, [16, 15]), (40, [32, 8]), (64, [64])])
def test_many_queries_fill_the_lanes_of_a_walk(waiting, sizes):
    async def test(one: Held) -> None:
        works = [one.add(at) for at in range(waiting)]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    assert [len(payloads) for _, payloads in held(test, limit=64).ran[1:]] == sizes


def test_batches_that_run_together_share_the_time():
    async def test(one: Held) -> None:
        works = [one.add(at) for at in range(4)]
        while len(one.ran) < 2:
            await asyncio.sleep(0)
        begun = time.monotonic()
        await asyncio.sleep(0.1)
        one.go.set()
        await asyncio.gather(*(work.future for work in works))
        took = time.monotonic() - begun
        assert 0.04 < one.batcher.costs.plain.of(4) < 0.75 * took
        assert works[0].took > 0.1

    held(test, workers=2)


def test_a_batch_takes_no_more_work_once_it_has_gathered_enough():
    async def test(one: Held) -> None:
        works = [one.add(at, size=size) for at, size in enumerate((1, 1, 1, 3, 4))]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))
        assert [work.batch for work in works] == [2, 2, 4, 4, 4]

    assert held(test, gather=2).ran[1:] == [("g", [0, 1]), ("g", [2, 3]), ("g", [4])]


def test_groups_do_not_mix_and_the_oldest_goes_first():
    async def test(one: Held) -> None:
        works = [one.add(at, group="xyx"[at % 3]) for at in range(5)]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    assert held(test).ran[1:] == [("x", [0, 2, 3]), ("y", [1, 4])]


def test_a_request_that_does_not_fit_waits_for_the_next_batch():
    async def test(one: Held) -> None:
        works = [one.add(size, size=size) for size in (3, 2, 1)]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))
        assert [work.batch for work in works] == [3, 3, 3]

    assert held(test).ran[1:] == [("g", [3]), ("g", [2, 1])]


def test_owners_take_turns():
    async def test(one: Held) -> None:
        one.batcher.costs.plain.add(4, 40.0)  # else a query of b is estimated to take as long as the batch of a
        works = [one.add(f"a{at}", owner="a") for at in range(9)] + [one.add(f"b{at}", owner="b") for at in range(2)]
        works += [one.add("c", owner="c", size=2)]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    ran = [payload for _, payloads in held(test).ran[1:] for payload in payloads]
    assert ran[:3] == ["b0", "c", "a0"]  # a batch of a runs
    assert ran.index("b1") < 6
    assert [one for one in ran if one[0] == "a"] == [f"a{at}" for at in range(9)]


def test_one_whose_deadline_passes_in_the_queue_is_never_run():
    async def test(one: Held) -> None:
        late, fine = one.add("late", within=0.02), one.add("fine")
        await asyncio.sleep(0.03)
        one.go.set()
        assert await fine.future == ("done", "fine")
        with pytest.raises(RefusalError) as refused:
            await late.future
        assert (status_of(refused.value), refused.value.code) == (504, "timeout")

    assert all("late" not in payloads for _, payloads in held(test).ran)


def test_a_deadline_that_cannot_be_met_is_refused_at_the_door():
    async def test(one: Held) -> None:
        one.batcher.costs.plain.add(4, 10.0)
        for _ in range(4):
            one.add("waits", size=1)
        with pytest.raises(RefusalError) as refused:
            one.add("hopeless", within=5.0)
        assert status_of(refused.value) == 429
        assert refused.value.retry_after > 1
        with pytest.raises(RefusalError) as passed:
            one.add("passed", within=-1.0)
        assert status_of(passed.value) == 504
        with pytest.raises(RefusalError) as hopeful:
            one.add("hopeful", within=32.0)
        assert round(hopeful.value.values["wait"], -2) in (37400, 37500)  # three batches, and a quarter
        assert one.add("patient", within=60.0).waits

    held(test)


def test_other_waiting_requests_do_not_make_one_hopeless():
    async def test(one: Held) -> None:
        one.batcher.costs.plain.add(4, 1.0)
        for _ in range(40):
            one.add("many", owner="greedy")
        assert one.batcher.wait_of("greedy", 1) >= 10
        assert one.batcher.wait_of("modest", 1) < 3

    held(test)


def test_the_queue_is_bounded():
    async def test(one: Held) -> None:
        for _ in range(3):
            one.add("waits")
        with pytest.raises(RefusalError) as refused:
            one.add("more")
        assert (status_of(refused.value), refused.value.code) == (429, "overloaded")

    held(test, max_requests=3)


def test_withdrawn_work_leaves_the_queue():
    async def test(one: Held) -> None:
        gone, stays = one.add("gone"), one.add("stays")
        one.batcher.withdraw(gone, RefusalError("gone", None, "gone"))
        assert (one.batcher.requests, one.batcher.queries) == (1, 1)
        one.go.set()
        await stays.future
        with pytest.raises(RefusalError):
            await gone.future
        one.batcher.withdraw(stays, RefusalError("gone", None, "gone"))
        assert stays.future.result() == ("done", "stays")

    assert held(test).ran[1:] == [("g", ["stays"])]


def test_an_error_of_a_batch_reaches_its_callers_and_the_worker_goes_on():
    def run(group: str, payloads: list[int]) -> list[int]:
        return [10 // one for one in payloads]

    async def test() -> None:
        batcher = Batcher(run, limit=4, max_requests=9)
        batcher.start()
        given = {"size": 1, "owner": "a", "deadline": time.monotonic() + FAR}
        with pytest.raises(ZeroDivisionError):
            await batcher.submit("g", 0, **given).future
        assert await batcher.submit("g", 5, **given).future == 2
        batcher.close()

    asyncio.run(test())


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_a_thread_that_dies_is_replaced_and_its_work_gets_an_error(error):
    died = list[int]()

    def run(group: str, payloads: list[int]) -> list[int]:
        if 0 in payloads:
            raise error
        return payloads

    async def test() -> None:
        batcher = Batcher(run, limit=4, max_requests=9, died=lambda: died.append(1))
        batcher.start()
        given = {"size": 1, "owner": "a", "deadline": time.monotonic() + FAR}
        for _ in range(5):  # more than there are threads
            with pytest.raises(RuntimeError):
                await batcher.submit("g", 0, **given).future
            assert await batcher.submit("g", 7, **given).future == 7
        assert not batcher.is_busy
        assert batcher.close()
        assert len(died) == (0 if issubclass(error, Exception) else 5)

    asyncio.run(test())


def test_what_waits_outside_gives_its_place_to_what_does_not():
    go, begun, ran = threading.Event(), list[str](), list[str]()

    def run(group: str, payloads: list[str]) -> list[str]:
        begun.extend(payloads)
        if group == "outside":
            with batcher.away("call") as lend:
                lend()
                go.wait()
        ran.extend(payloads)
        return payloads

    batcher = Batcher(run, limit=1, max_requests=99, workers=2, outside=lambda group: group == "outside")

    async def test() -> None:
        batcher.start()
        given = {"size": 1, "owner": "a", "deadline": time.monotonic() + FAR}
        waiting = [batcher.submit("outside", f"o{at}", **given) for at in range(4)]
        inside = [batcher.submit("inside", f"i{at}", **given) for at in range(4)]
        assert await asyncio.gather(*(one.future for one in inside)) == ["i0", "i1", "i2", "i3"]
        assert [one for one in begun if one[0] == "o"] == ["o0", "o1"]
        assert sorted(ran) == ["i0", "i1", "i2", "i3"]
        assert batcher.requests == 2
        go.set()
        assert await asyncio.gather(*(one.future for one in waiting)) == ["o0", "o1", "o2", "o3"]
        assert batcher.close()

    asyncio.run(test())


class Outside:
    """Batches of the group "outside" are away, at ``at``, until they are let go, unless they are quick.

    Time passes as the test says, and by ``seconds`` in each batch.
    """

    SECONDS = 0.01
    at = "call"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, quick: bool = False, **options: Any) -> None:
        self.now, self.quick, self.seconds = time.monotonic(), quick, self.SECONDS
        self.go, self.waiting = threading.Semaphore(0), threading.Semaphore(0)
        monkeypatch.setattr("hopfuse.serve.batcher.time", SimpleNamespace(monotonic=lambda: self.now))
        given = {"limit": 1, "max_requests": 100, "outside": lambda group: group == "outside", **options}
        self.batcher = Batcher(self._run, **given)

    def _run(self, group: str, payloads: list[Any]) -> list[Any]:
        if group == "held" or (group == "outside" and not self.quick):
            with self.batcher.away(self.at) if group == "outside" else nullcontext(lambda: None) as lend:
                lend()
                self.waiting.release()
                self.go.acquire()
        self.now += self.seconds
        return payloads

    def add(self, payload: Any, group: str = "inside", owner: str = "a", within: float = FAR, **more: Any):
        more = {"size": 1, "owner": owner, "deadline": self.now + within, **more}
        return self.batcher.submit(group, payload, **more)

    async def waits(self, payload: Any, seconds: float, **more: Any) -> None:
        """Run a batch that waits so long outside."""
        work = self.add(payload, "outside", **more)
        await asyncio.to_thread(self.waiting.acquire)
        self.now += seconds
        self.go.release()
        await work.future

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            self.batcher.start()
            try:
                await test()
            finally:
                self.batcher.refuse()
                self.go.release(100)
                await asyncio.to_thread(self.batcher.close)

        asyncio.run(run())


@pytest.mark.parametrize("workers", [1, 2])
def test_what_waits_outside_makes_no_other_work_hopeless(monkeypatch, workers):
    one = Outside(monkeypatch, workers=workers)

    async def test() -> None:
        for at in range(3):
            await one.waits(at, 30.0)
        # This says little about the part.
        one.batcher.costs.add(Load(outside=1, parts=1, outside_parts=1), 2.0, 30.0, began=one.now, ended=one.now)
        await one.add("inside").future
        waiting = [one.add(f"o{at}", "outside", parts=at) for at in range(20)]
        for _ in range(workers):
            await asyncio.to_thread(one.waiting.acquire)
        one.now += 5.0
        for at in range(40):  # few of them find an empty queue
            beside = [one.add(f"i{at}", within=1.0), one.add(f"j{at}", within=1.0, parts=at % 2)]
            await asyncio.gather(*(work.future for work in beside))
        assert not any(work.future.done() for work in waiting)
        # What waits outside itself is told how long that takes.
        assert 19 * 30 < one.batcher.wait_of("a", 1, outside=True) < 22 * 31
        assert one.batcher.wait_of("a", 1) < 1.0
        with pytest.raises(RefusalError) as refused:
            one.add("hopeless", "outside", within=100.0)
        assert refused.value.code == "overloaded"
        one.go.release(len(waiting))
        await asyncio.gather(*(work.future for work in waiting))

    one.run(test)


def test_what_is_quick_outside_counts_for_all_work_behind_it(monkeypatch):
    """It does not give its place to others."""
    one = Outside(monkeypatch, quick=True)

    async def test() -> None:
        for at in range(3):
            await one.add(at, "outside").future
            await one.add(at).future
        works = [one.add("held", "held")]
        await asyncio.to_thread(one.waiting.acquire)
        works += [one.add(at, "outside") for at in range(20)]
        for outside in (False, True):
            assert one.batcher.wait_of("a", 1, outside=outside) == pytest.approx(22 * one.SECONDS)
        with pytest.raises(RefusalError) as refused:
            one.add("hopeless", within=0.2)
        assert refused.value.code == "overloaded"
        one.go.release()
        await asyncio.gather(*(work.future for work in works))

    one.run(test)


@pytest.mark.parametrize("at", ["turn", "call"])
def test_a_call_is_charged_to_who_makes_it_and_waiting_for_a_turn_to_nobody(monkeypatch, at):
    one = Outside(monkeypatch)
    one.at = at

    async def test() -> None:
        await one.waits("first", 30.0)
        works = [one.add(at, "outside", owner=owner) for at, owner in enumerate(("waits", "waits", "searches"))]
        await asyncio.to_thread(one.waiting.acquire)
        before = one.batcher._turns["waits"] - works[0].charged, one.batcher._turns["searches"]
        for number in range(16):
            one.now += 30.0
            await one.add(number, owner="searches").future
        one.go.release()
        await works[0].future
        await asyncio.to_thread(one.waiting.acquire)
        spent = {owner: one.batcher._turns[owner] for owner in ("waits", "searches")}
        taken = next(work for work in works[1:] if not work.waits)
        spent[taken.owner] -= taken.charged  # an estimate, until it is known
        assert taken.owner == ("searches" if at == "call" else "waits")
        assert spent["searches"] - before[1] == pytest.approx(16 * one.SECONDS)
        called = 16 * (30.0 + one.SECONDS) if at == "call" else 0.0
        assert spent["waits"] - before[0] == pytest.approx(called + one.SECONDS)
        one.go.release(2)
        await asyncio.gather(*(work.future for work in works))

    one.run(test)


def test_an_owner_calls_outside_for_one_batch_at_a_time_while_others_do(monkeypatch):
    """Others wait for one call of it at most, and their call has none of its queries."""
    one = Outside(monkeypatch, workers=2, limit=4)

    async def test() -> None:
        first = one.add("b0", "outside", owner="b")
        await asyncio.to_thread(one.waiting.acquire)
        one.go.release()
        await first.future
        works = [one.add(f"a{at}", "outside", owner="a", size=4) for at in range(2)]
        await asyncio.to_thread(one.waiting.acquire)
        works += [one.add(f"a{at}", "outside", owner="a") for at in range(2, 4)]
        # A search by vector of its own is not held up.
        assert await one.add("inside", owner="a").future == "inside"
        assert [work.waits for work in works] == [False, True, True, True]
        works.append(one.add("b1", "outside", owner="b"))
        await asyncio.to_thread(one.waiting.acquire)
        assert [work.waits for work in works] == [False, True, True, True, False]
        one.go.release(8)
        await asyncio.gather(*(work.future for work in works))
        assert works[-1].batch == 1

    one.run(test)


def test_a_batch_whose_call_is_over_leaves_the_next_one_to_its_owner():
    go, called = threading.Semaphore(0), threading.Semaphore(0)

    def run(group: str, payloads: list[str]) -> list[str]:
        with batcher.away("call"):
            called.release()
        go.acquire()
        return payloads

    batcher = Batcher(run, limit=1, max_requests=99, workers=2, outside=lambda group: True)

    async def test() -> None:
        batcher.start()
        given = {"size": 1, "deadline": time.monotonic() + FAR}
        go.release()
        await batcher.submit("texts", "b", owner="b", **given).future
        works = [batcher.submit("texts", at, owner="a", **given) for at in range(2)]
        for _ in range(3):  # both of them, while neither has ended
            await asyncio.to_thread(called.acquire)
        go.release(2)
        await asyncio.gather(*(work.future for work in works))
        assert batcher.close()

    asyncio.run(test())


#: Work of each kind of estimate, and work that is none of it.
KINDS = [
    pytest.param({"group": "outside"}, {}, id="outside"),
    pytest.param({}, {"parts": 0}, id="plain"),
    pytest.param({"parts": 0}, {}, id="filtered"),
    pytest.param({"parts": 1}, {"parts": 0}, id="parts"),
]


@pytest.mark.parametrize(("slow", "beside"), KINDS)
def test_what_was_slow_is_searched_again_beside_other_traffic(monkeypatch, slow, beside):
    one = Outside(monkeypatch, quick=True, workers=2)

    async def took(seconds: float, **more: Any) -> int:
        """Return 1 if it is answered, 0 if it is refused."""
        one.seconds = seconds
        try:
            await one.add("work", within=5.0, **more).future
        except RefusalError as refusal:
            return 0 if refusal.code == "overloaded" else -1000
        return 1

    async def test() -> None:
        for _ in range(3):
            assert await took(0.01, owner="b", **beside)
            assert await took(0.01, **slow)
        assert 0 < sum([await took(6.0, **slow) for _ in range(100)]) < 100
        answers = []
        for _ in range(20):
            assert await took(0.01, owner="b", **beside)
            one.now += 0.5
            answers.append(await took(0.01, **slow))
        assert sum(answers[:3]) > 0
        assert sum(answers[3:]) == 17

    one.run(test)


def test_one_request_at_a_time_finds_out_whether_its_kind_is_still_slow(monkeypatch):
    one = Outside(monkeypatch, limit=2)

    async def test() -> None:
        one.batcher.costs.add(Load(filtered=1), 60.0, ended=one.now)
        one.batcher.costs.add(Load(filtered=2), 60.0, ended=one.now)
        first = one.add("held", "held")
        await asyncio.to_thread(one.waiting.acquire)

        def refused(**more: Any) -> None:
            with pytest.raises(RefusalError) as error:
                one.add("more", parts=0, within=5.0, **more)
            assert error.value.code == "overloaded"

        refused()
        one.now += 1.5
        gone = one.add("gone", parts=0, within=5.0)
        refused(owner="b")
        one.batcher.withdraw(gone, RefusalError("gone", None, "gone"))
        request = object()  # all of its pieces are let pass
        pieces = [one.add(at, parts=0, size=2, within=5.0, request=request) for at in range(3)]
        refused(size=2)
        one.go.release()
        await asyncio.gather(first.future, *(work.future for work in pieces))
        assert await one.add("known", parts=0, size=2, within=5.0).future == "known"
        with pytest.raises(RefusalError):
            await gone.future

    one.run(test)


def test_a_size_that_was_never_seen_is_not_refused_because_of_another_one(monkeypatch):
    one = Outside(monkeypatch, limit=64)

    async def test() -> None:
        one.batcher.costs.add(Load(plain=1), 1.0, ended=one.now)
        assert await one.add("many", size=64, within=5.0).future == "many"

    one.run(test)


def test_parts_that_are_made_beside_a_call_count_once(monkeypatch):
    one = Outside(monkeypatch)
    costs, both = one.batcher.costs, Load(outside=1, parts=4, outside_parts=4)
    costs.add(Load(outside=1), 0.5, 3.5)
    costs.add(both, 2.5)
    assert costs.of(both, outside=True) == pytest.approx(5.5)
    for _ in range(50):
        costs.add(both, 2.5, 5.5)
    assert costs.of(both) == pytest.approx(2.5)
    assert costs.of(both, outside=True) == pytest.approx(5.5)


def test_what_waits_outside_keeps_nobody_from_making_parts(monkeypatch):
    one = Outside(monkeypatch, workers=2)

    async def test() -> None:
        waits = one.add("waits", "outside", owner="a", parts=1)
        await asyncio.to_thread(one.waiting.acquire)
        makes, last = one.add("makes", owner="b", parts=1), one.add("last", "other", owner="b")
        await last.future
        assert not makes.waits
        assert await makes.future == "makes"
        assert not waits.future.done()
        one.go.release()
        await waits.future

    one.run(test)


def test_a_batch_that_hangs_at_closing_is_left_behind_and_its_work_refused():
    async def test() -> None:
        one = Held()
        one.batcher.start()
        first = one.add("first")
        await asyncio.to_thread(one.begun.wait)
        assert not one.batcher.close(0.0)
        with pytest.raises(RefusalError) as refused:
            await first.future
        assert status_of(refused.value) == 503
        one.go.set()
        assert one.batcher.close()

    asyncio.run(test())


def test_the_time_of_unusual_work_does_not_count_for_other_requests():
    async def test() -> None:
        batcher = Batcher(lambda group, payloads: payloads, limit=4, max_requests=9)
        batcher.start()
        given = {"size": 1, "owner": "a", "deadline": time.monotonic() + FAR}
        assert await batcher.submit("g", 1, **given, usual=False).future == 1
        assert batcher.costs.plain.of(1) == 0
        assert await batcher.submit("g", 2, **given).future == 2
        assert batcher.costs.plain.of(1) > 0
        batcher.close()

    asyncio.run(test())


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_one_batch_of_a_suspended_machine_does_not_lock_an_idle_server(first):
    async def test() -> None:
        batcher = Batcher(lambda group, payloads: payloads, limit=4, max_requests=9)
        batcher.start()

        async def ask() -> int:
            deadline = time.monotonic() + 5.0
            return await batcher.submit("g", 1, size=1, owner="a", deadline=deadline).future

        assert await ask() == 1
        if first:
            batcher.costs.plain = BatchTimes(4)
        batcher.costs.plain.add(1, 3600.0)
        if first:
            with pytest.raises(RefusalError) as refused:
                await ask()
            assert refused.value.retry_after == 1.0
            await asyncio.sleep(1.1)  # the times of batches are out of date
        for _ in range(3):
            assert await ask() == 1
        assert batcher.costs.plain.of(1) < 1.0
        batcher.close()

    asyncio.run(test())


def test_requests_that_wait_at_closing_are_refused():
    async def test() -> None:
        one = Held()
        one.batcher.start()
        first = one.add("first")
        await asyncio.to_thread(one.begun.wait)
        waits = one.add("waits", group="other")
        closing = threading.Thread(target=one.go.set)
        closing.start()
        one.batcher.close()
        closing.join()
        assert await first.future == ("done", "first")
        if not waits.future.done() or waits.future.exception() is not None:
            with pytest.raises(RefusalError) as refused:
                await waits.future
            assert status_of(refused.value) == 503
        with pytest.raises(RefusalError) as closed:
            one.add("after")
        assert status_of(closed.value) == 503

    asyncio.run(test())


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(1, 4), st.booleans()), max_size=25)
)
def test_all_that_is_queued_runs_once_in_whole_batches(drawn):
    async def test(one: Held) -> None:
        works = [one.add(at, owner=o, group=g, size=size) for at, (o, g, size, _) in enumerate(drawn)]
        for work, (*_, leaves) in zip(works, drawn, strict=True):
            if leaves:
                one.batcher.withdraw(work, RefusalError("gone", None, "gone"))
        one.go.set()
        await asyncio.gather(*(work.future for work in works), return_exceptions=True)
        kept = [at for at, (*_, leaves) in enumerate(drawn) if not leaves]
        ran = one.ran[1:]
        assert sorted(at for _, payloads in ran for at in payloads) == kept
        for group, payloads in ran:
            assert {drawn[at][1] for at in payloads} == {group}
            assert sum(drawn[at][2] for at in payloads) <= 4
        assert not one.batcher._queues
        assert one.batcher.queries == 0

    batcher = held(test).batcher
    assert not batcher._turns
    assert not batcher._serving
    assert not batcher._pieces
    assert batcher._waiting == {}


class Slow(Held):
    """Searches of the group "slow" take a while, others none."""

    def _run(self, group: Any, payloads: list[Any]) -> list[Any]:
        if group == "slow":
            time.sleep(0.1)
        return super()._run(group, payloads)


def test_turns_are_charged_by_seconds_not_by_queries():
    async def test(one: Held) -> None:
        works = [one.add(f"slow{at}", group="slow", owner="slow") for at in range(4)]
        works += [one.add(f"quick{at}", owner="quick") for at in range(12)]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    ran = [payload for _, payloads in held(test, Slow, limit=1).ran[1:] for payload in payloads]
    assert ran.index("slow1") > ran.index("quick11")  # twelve quick ones take less than the first slow one


def test_the_owners_of_a_batch_are_charged_what_each_caused():
    async def test(one: Held) -> None:
        one.batcher.costs.add(Load(filtered=1), 0.01)
        one.batcher.costs.add(Load(filtered=1, parts=1), 0.03)
        works = [
            one.add("part", owner="makes", size=1, parts=1),
            one.add("one", owner="one", size=1, parts=0),
            one.add("two", owner="two", size=2, parts=0),
            *(one.add("later", group="later", owner=owner) for owner in ("makes", "one", "two")),
        ]
        batch = works[:3]
        for work in batch:  # as when they are taken
            one.batcher._turns[work.owner] += work.charged
            one.batcher._serving[work.owner] = one.batcher._serving.get(work.owner, 0) + 1
        before = dict(one.batcher._turns)
        one.batcher._charge(batch, 1.2)
        spent = {owner: one.batcher._turns[owner] - before[owner] for owner in before}
        assert sum(spent.values()) == pytest.approx(1.2)
        assert spent["two"] == pytest.approx(2 * spent["one"])
        per_query = one.batcher.costs.share(Load(filtered=1))
        expected = (per_query + 0.02) / per_query
        assert spent["makes"] == pytest.approx(expected * spent["one"])
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    held(test)


def test_a_batch_makes_few_parts_and_other_owners_get_their_turn_between():
    async def test(one: Held) -> None:
        request = object()
        works = [one.add(f"a{at}", group="makes", owner="a", parts=1, request=request) for at in range(6)]
        assert one.batcher.requests == 1
        one.go.set()
        await works[0].future
        works.append(one.add("b", owner="b"))
        await asyncio.gather(*(work.future for work in works))
        assert works[-1].started <= works[5].started

    async def cheap(one: Held) -> None:
        one.batcher.costs.add(Load(filtered=1, parts=1), 0.005)
        works = [one.add(f"a{at}", group="makes", owner="a", parts=1) for at in range(8)]
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    assert all(len(payloads) == 1 for group, payloads in held(test, Slower).ran[1:] if group == "makes")
    assert next(len(payloads) for _, payloads in held(cheap, limit=64).ran[1:]) == 5


class Slower(Held):
    """A part takes so long that a batch makes one."""

    def _run(self, group: Any, payloads: list[Any]) -> list[Any]:
        if group == "makes":
            time.sleep(0.05)
        return super()._run(group, payloads)


@pytest.mark.parametrize("others", [True, False])
def test_a_worker_is_left_to_other_owners_while_parts_are_made(others):
    async def test(one: Held) -> None:
        works = [one.add(at, group="makes", owner="a", parts=1) for at in range(3)]
        if others:
            works.append(one.add("b", owner="b"))
        while len(one.ran) < (3 if others else 2):
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        running = sum(group == "makes" for group, _ in one.ran)
        if others:
            assert running == 1  # beside those of b and of the first
        one.go.set()
        await asyncio.gather(*(work.future for work in works))

    assert sorted(
        at for group, payloads in held(test, workers=3 if others else 2).ran if group == "makes" for at in payloads
    ) == [0, 1, 2]


def test_pieces_of_a_request_count_as_one_and_are_not_refused_for_each_other():
    async def test(one: Held) -> None:
        request = object()
        works = [one.add(at, group="makes", parts=1, request=request) for at in range(8)]
        assert (one.batcher.requests, one.batcher.queries) == (1, 8)
        one.add("more")
        with pytest.raises(RefusalError) as refused:
            one.add("full")
        assert refused.value.code == "overloaded"
        for work in works:
            one.batcher.withdraw(work, RefusalError("gone", None, "gone"))
        assert one.batcher.requests == 1
        one.go.set()

    held(test, max_requests=2)


def test_filtered_work_has_its_own_estimates():
    async def test(one: Held) -> None:
        one.batcher.costs.add(Load(plain=1), 0.01)
        assert one.batcher.wait_of("b", 1, 0) == pytest.approx(
            one.batcher.wait_of("b", 1), rel=0.1
        )  # until one was seen
        one.batcher.costs.add(Load(filtered=1), 0.5)
        one.batcher.costs.add(Load(filtered=1, parts=1), 2.5)
        plain, known, new = (one.batcher.wait_of("b", 1, parts) for parts in (None, 0, 1))
        assert plain < known < new
        assert new - known == pytest.approx(2.0, rel=0.1)
        for at in range(4):
            one.add(at, group="makes", owner="a", parts=1)
        assert one.batcher.wait_of("a", 1, 1) > 4 * 2.4
        assert one.batcher.wait_of("b", 1) < 1  # its turn comes first
        with pytest.raises(RefusalError) as refused:
            one.add("hopeless", group="makes", owner="a", parts=1, within=9.0)
        assert refused.value.code == "overloaded"
        one.go.set()

    held(test)


def test_times_of_sizes_that_were_never_seen():
    times = BatchTimes(32)
    assert times.of(5) == 0
    times.add(1, 0.001)
    assert times.of(8) == pytest.approx(0.008)
    times.add(32, 0.01)
    assert times.of(8) == times.of(32) == pytest.approx(0.01)
    assert times.of(70) == pytest.approx(0.03)
    times.add(64, 0.02)
    assert times.of(32) == pytest.approx(0.01)
