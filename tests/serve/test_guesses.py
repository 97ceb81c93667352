"""Wrong keys are slowed down, right ones are not, and what is remembered of clients is bounded."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest
from hopfuse.serve import Guesses, Limits, RefusalError, new_key
from serve.served import configured, running

KEY, DIGEST = new_key()
RIGHT, WRONG = {"Authorization": f"Bearer {KEY}"}, {"Authorization": "Bearer hopfuse_wrong"}


def delayed(url):
    page = httpx.get(f"{url}/metrics", headers=RIGHT).raise_for_status().text
    return float(re.search(r"^hopfuse_wrong_keys_delayed_total (.*)$", page, re.M)[1])


def test_further_wrong_keys_of_an_address_wait_and_right_ones_do_not(path):
    keys = {"team": {"sha256": DIGEST, "rights": ["admin"]}}
    proxies = {"trusted": ["127.0.0.1"]}
    with running(configured(path, "[limits]\nwrong_keys = 3\n", keys=keys, proxies=proxies)) as url:

        def statuses(count, headers, address="203.0.113.9"):
            all_of = {**headers, "X-Forwarded-For": address}
            return [httpx.get(f"{url}/v1/indexes", headers=all_of).status_code for _ in range(count)]

        assert statuses(3, WRONG) == [401] * 3
        assert statuses(5, {}) == [401] * 5  # no key is no guess
        assert delayed(url) == 0
        assert statuses(1, WRONG) == [401]
        assert delayed(url) == 1
        assert statuses(3, RIGHT) == [200] * 3
        assert statuses(3, WRONG, "203.0.113.10") == [401] * 3
        assert delayed(url) == 1
        assert statuses(3, WRONG, "2001:db8::1") == [401] * 3
        assert statuses(1, WRONG, "2001:db8::ffff:2") == [401]  # an address of the same network
        assert delayed(url) == 2


class Peer:
    """A request from an address."""

    def __init__(self, host):
        self.client = type("Client", (), {"host": host})


def test_what_is_remembered_and_what_waits_is_bounded():
    now = [0.0]
    guesses = Guesses(Limits(wrong_keys=1), clock=lambda: now[0])

    async def together(count):
        return await asyncio.gather(*(guesses.delay(Peer("192.0.2.1")) for _ in range(count)), return_exceptions=True)

    async def guess():
        outcomes = await together(101)
        refused = [one for one in outcomes if one is not None]
        assert [one.code for one in refused] == ["overloaded"] * 36
        assert outcomes[0] is None
        for at in range(20_000):
            await guesses.delay(Peer(f"10.{at // 65536}.{at // 256 % 256}.{at % 256}"))
        assert len(guesses) == 4096
        now[0] = 61.0
        await guesses.delay(Peer("192.0.2.1"))

    asyncio.run(guess())


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "fe80::1%eth0", "testclient", ""])
def test_addresses_of_every_form_are_counted(address):
    guesses = Guesses(Limits(wrong_keys=1), clock=lambda: 0.0)
    asyncio.run(guesses.delay(Peer(address)))
    assert len(guesses) == 1
    with pytest.raises(RefusalError):
        asyncio.run(flood(guesses, address))


async def flood(guesses, address):
    await asyncio.gather(*(guesses.delay(Peer(address)) for _ in range(65)))
