"""Behind a proxy: who is believed, and the example configurations of nginx and Caddy."""

from __future__ import annotations

import contextlib
import json
import subprocess

import httpx
import pytest
from hopfuse.errors import InputError
from hopfuse.serve import Proxies, ProxyConfig, new_key
from refusals import refused
from serve.nginx import NAME, SITE, free_port, nginx, program
from serve.raw import Raw
from serve.served import configured, running

SEARCH = {"queries": ["What is far from Ankara?"]}
KEY, DIGEST = new_key()
KEYS = {"team": {"sha256": DIGEST}}
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
TRUSTED = ("127.0.0.1", "10.0.0.0/8", "fd00::/8")


# ---- Who is believed -------------------------------------------------------------------------------------------------


def read(headers, *, client="127.0.0.1", header="x-forwarded", trusted=TRUSTED):
    """The client, scheme and host of a request after its headers were read."""
    scope = {
        "client": (client, 5000),
        "scheme": "http",
        "headers": [(b"host", b"backend:8080"), *((name.encode(), value.encode()) for name, value in headers)],
    }
    Proxies(ProxyConfig(trusted=trusted, header=header)).read(scope)
    (host,) = [value.decode() for name, value in scope["headers"] if name == b"host"]
    return scope["client"][0], scope["scheme"], host


@pytest.mark.parametrize(
    ("given", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("7.7.7.7, 203.0.113.9", "203.0.113.9"),  # the first is what the client sent itself
        ("7.7.7.7,203.0.113.9,10.1.2.3 , 10.0.0.1", "203.0.113.9"),
        ("10.1.2.3, 10.0.0.1", "10.1.2.3"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1, fd00::5", "2001:db8::1"),
        ("203.0.113.9, unknown", "127.0.0.1"),
        ("203.0.113.9, unknown, 10.0.0.1", "10.0.0.1"),
        ("", "127.0.0.1"),
        (",,,", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("7.7.7.7" + ", 10.0.0.1" * 5000, "10.0.0.1"),
    ],
)
def test_the_last_hop_that_is_no_proxy_is_the_client(given, client):
    assert read([("x-forwarded-for", given)])[0] == client


def test_headers_of_others_are_not_believed():
    all_of = [("x-forwarded-for", "7.7.7.7"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "evil.example")]
    ignored = ("http", "backend:8080")
    for client in ("203.0.113.9", "11.0.0.1", "::1", "testclient"):
        assert read(all_of, client=client) == (client, *ignored)
    assert read(all_of, trusted=()) == ("127.0.0.1", *ignored)
    assert read(all_of, client="::ffff:10.0.0.7") == ("7.7.7.7", "https", "evil.example")
    # A proxy that sets one kind may pass on the other kind from a client.
    assert read([("forwarded", "for=7.7.7.7;proto=https;host=evil.example")]) == ("127.0.0.1", *ignored)
    assert read(all_of, header="forwarded") == ("127.0.0.1", *ignored)


def test_several_headers_are_one_and_the_nearest_proxy_says_scheme_and_host():
    given = [("x-forwarded-for", "7.7.7.7"), ("x-forwarded-for", "203.0.113.9"), ("x-forwarded-proto", "http, https")]
    assert read([*given, ("x-forwarded-host", "evil.example, search.example")]) == (
        "203.0.113.9",
        "https",
        "search.example",
    )
    assert read([("x-forwarded-proto", "javascript")])[1] == "http"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("for=203.0.113.9;proto=https;host=search.example", ("203.0.113.9", "https", "search.example")),
        ('For="[2001:db8::1]:4711";Proto=HTTPS;Host="a.example:444"', ("2001:db8::1", "https", "a.example:444")),
        ("for=7.7.7.7;host=evil.example, for=203.0.113.9;host=a.example", ("203.0.113.9", "http", "a.example")),
        ("for=203.0.113.9, for=10.0.0.1;proto=https", ("203.0.113.9", "https", "backend:8080")),
        ('for="a,b";for=203.0.113.9', ("203.0.113.9", "http", "backend:8080")),
        ("for=_hidden, for=unknown", ("127.0.0.1", "http", "backend:8080")),
        ("=;=;,,;for", ("127.0.0.1", "http", "backend:8080")),
    ],
)
def test_forwarded(given, expected):
    assert read([("forwarded", given)], header="forwarded") == expected


def test_configurations_that_are_refused(path):
    for wrong in ("proxy.example", "10.0.0.1/8", "10.0.0.0/33", ""):
        with refused(InputError, "syntax", "proxies.trusted[1]", given=wrong):
            configured(path, proxies={"trusted": ["127.0.0.1", wrong]}, keys=KEYS)
    with refused(InputError, "forbidden", "host", other="remove proxies.trusted"):  # others reach it through the proxy
        configured(path, proxies={"trusted": ["127.0.0.1"]})


def test_the_origin_check_behind_a_proxy(path):
    """A browser's POST from the page: with what the proxy says, and behind one that replaces Host and says nothing."""
    page = {"Origin": "https://search.example", "X-Forwarded-Host": "search.example", "X-Forwarded-Proto": "https"}
    plain = {"Origin": "https://search.example", "Sec-Fetch-Site": "same-origin"}
    evil = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}

    def statuses(url, *all_of):
        answers = [httpx.post(f"{url}/v1/search", json=SEARCH, headers=AUTHORIZED | one) for one in all_of]
        return [one.status_code for one in answers]

    with running(configured(path, keys=KEYS, proxies={"trusted": ["127.0.0.1"]})) as url:
        assert statuses(url, page, plain, evil, page | {"Origin": "https://evil.example"}) == [200, 200, 403, 403]
    with running(configured(path, keys=KEYS)) as url:
        assert statuses(url, page, plain, evil) == [403, 200, 403]
    with running(configured(path)) as url:  # without keys, a name may have been resolved to this machine
        assert statuses(url, plain, evil) == [403, 403]


@pytest.mark.parametrize(("trusted", "status"), [((), 429), (("127.0.0.0/8",), 200)])
def test_connections_of_a_proxy_are_those_of_many_clients(path, trusted, status):
    given = {"keys": KEYS, "proxies": {"trusted": trusted}, "limits": {"address_connections": 1}}
    begun = f"POST /v1/search HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nExpect: 100-continue\r\n"
    with running(configured(path, **given)) as url, Raw(url) as open_one:
        open_one.send(f"{begun}Content-Length: 9\r\n\r\n".encode())
        assert open_one.socket.recv(12) == b"HTTP/1.1 100"  # it is counted, and waits for its body
        assert httpx.post(f"{url}/v1/search", json=SEARCH, headers=AUTHORIZED, timeout=60).status_code == status


def test_no_route_redirects(path):
    with running(configured(path, keys=KEYS)) as url:
        for route in ("/v1/indexes/", "/v1/search/", "/health/live/", "/v2/", "//v1/indexes"):
            answer = httpx.get(f"{url}{route}", headers=AUTHORIZED)
            error = answer.json() if route == "/v2/" else answer.json()["error"]
            assert (answer.status_code, error["code"]) == (404, "unknown")
            assert "location" not in answer.headers


# ---- nginx -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log():
    """The lines of requests."""
    import logging

    lines = []

    class Kept(logging.Handler):
        def emit(self, record):
            lines.append(getattr(record, "request", None))

    handler, logger = Kept(), logging.getLogger("hopfuse.serve.requests")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture(scope="module")
def proxied(path, log, tmp_path_factory):
    """A client of the site that nginx serves from a server and from one that is not there, and the plain port."""
    text = "[limits]\nbody_bytes = 100000\n[log]\nrequests = true\n"
    proxies = {"trusted": ["127.0.0.1"]}
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(running(configured(path, text, keys=KEYS, proxies=proxies)))
        ports = [int(url.rpartition(":")[2]), free_port()]
        tls, plain, trust = stack.enter_context(nginx(tmp_path_factory.mktemp("nginx"), ports))
        yield stack.enter_context(httpx.Client(base_url=f"https://localhost:{tls}", verify=trust, timeout=60)), plain


def test_the_page_works_behind_nginx_with_tls(proxied, log):
    client, plain = proxied
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["strict-transport-security"]
    origin = str(client.base_url).rstrip("/")
    for address in ("127.0.0.1", "127.0.0.7"):  # of a client
        transport = httpx.HTTPTransport(local_address=address, verify=client._transport._pool._ssl_context)
        with httpx.Client(base_url=origin, transport=transport, timeout=60) as browser:
            headers = AUTHORIZED | {"Origin": origin, "X-Forwarded-For": "7.7.7.7", "X-Forwarded-Host": "evil.example"}
            assert browser.post("/v1/search", json=SEARCH, headers=headers).status_code == 200
            assert log[-1]["client"] == address
            evil = browser.post("/v1/search", json=SEARCH, headers=headers | {"Origin": "https://evil.example"})
            assert (evil.status_code, evil.json()["error"]["code"]) == (403, "forbidden")
    moved = httpx.get(f"http://127.0.0.1:{plain}/v1/indexes?a=b", headers={"Host": NAME})
    assert (moved.status_code, moved.headers["location"]) == (308, f"https://{NAME}/v1/indexes?a=b")


def test_every_refusal_behind_nginx_is_the_servers(proxied):
    client, _ = proxied

    def refusal(answer):
        return answer.status_code, answer.json()["error"]["code"]

    assert refusal(client.post("/v1/search", json=SEARCH)) == (401, "unauthorized")
    for size in (200_000, 17 * 2**20):  # beyond the server's limit, and beyond nginx's
        body = json.dumps({"queries": ["x" * size]})
        assert refusal(client.post("/v1/search", content=body, headers=AUTHORIZED)) == (413, "too_large")
    for headers in ({"X-Long": "x" * 20_000}, {f"X-{at}": "x" * 10_000 for at in range(8)}):
        assert refusal(client.get("/v1/indexes", headers=headers)) == (431, "head_too_large")
    assert refusal(client.get("/v1/indexes/", headers=AUTHORIZED)) == (404, "unknown")
    late = client.post("/v1/search", json=SEARCH | {"at_least": 10**9, "timeout_ms": 1000}, headers=AUTHORIZED)
    assert refusal(late) == (504, "timeout")


def test_without_a_server_nginx_answers_503_in_the_servers_form(tmp_path):
    with nginx(tmp_path / "nginx", [free_port(), free_port()]) as (tls, _, trust):
        for method, route in (("GET", "/health/ready"), ("POST", "/v1/search"), ("POST", "/v1/passages")):
            answer = httpx.request(method, f"https://localhost:{tls}{route}", verify=trust)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert answer.headers["retry-after"] == "1"


def test_caddy_takes_its_configuration(tmp_path):
    file = SITE.with_name("Caddyfile")
    command = [program("caddy", "caddy"), "validate", "--adapter", "caddyfile", "--config", str(file)]
    environment = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert '"level":"warn"' not in done.stderr.replace(" ", "")
