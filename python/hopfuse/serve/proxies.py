"""What proxies in front of the server say of a request: the client's address, and the scheme and host that it used.

Headers are believed only from the proxies that the configuration lists, and only those of the configured kind: a proxy
that sets X-Forwarded-For may pass on a client's own Forwarded.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from starlette.types import Scope

from .config import ProxyConfig

#: A pair of the header Forwarded (RFC 7239), whose value is a token or quoted.
_PAIR = re.compile(r"""([^\s=;,"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))""")
#: Most hops that are looked at.
HOPS = 32


class Proxies:
    """The proxies of a server.

    Parameters
    ----------
    config : ProxyConfig

    Examples
    --------
    >>> from hopfuse.serve import Proxies, ProxyConfig
    >>> proxies = Proxies(ProxyConfig(trusted=("127.0.0.1", "10.0.0.0/8")))
    >>> headers = [(b"host", b"backend"), (b"x-forwarded-for", b"7.7.7.7, 203.0.113.9, 10.1.2.3")]
    >>> scope = {"client": ("127.0.0.1", 5000), "scheme": "http", "headers": headers}
    >>> proxies.read(scope)
    >>> scope["client"]
    ('203.0.113.9', 0)
    """

    def __init__(self, config: ProxyConfig) -> None:
        self._networks = config.networks()
        self._fields = _forwarded if config.header == "forwarded" else _x_forwarded

    def trusts(self, address: str) -> bool:
        """Return whether an address belongs to one of the proxies."""
        if not self._networks:
            return False
        try:
            found = _address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def read(self, scope: Scope) -> None:
        """Put the client, scheme and host of a request into its scope, if a proxy sent it."""
        client = scope.get("client")
        if not (self._networks and client and self.trusts(client[0])):
            return
        headers: dict[bytes, str] = {}
        for name, value in scope["headers"]:
            text = value.decode("latin-1")
            headers[name] = f"{headers[name]},{text}" if name in headers else text
        hops, scheme, host = self._fields(headers)
        address = self._client(hops)
        if address is not None:
            scope["client"] = (address, 0)
        if scheme.lower() in ("http", "https"):
            scope["scheme"] = scheme.lower()
        if host:
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [*others, (b"host", host.encode("latin-1"))]

    def _client(self, hops: Iterator[str]) -> str | None:
        """Return the address of the last hop that is not a proxy, or else of the first; None if there is none."""
        found = None
        for hop, _ in zip(hops, range(HOPS), strict=False):
            try:
                found = str(_address(_without_port(hop)))
            except ValueError:  # "unknown", or a name that hides an address
                break
            if not self.trusts(found):
                break
        return found


def _x_forwarded(headers: dict[bytes, str]) -> tuple[Iterator[str], str, str]:
    """Return the hops, the last one first, and the scheme and host that the last proxy states."""
    hops = reversed(headers.get(b"x-forwarded-for", "").split(","))
    scheme, host = (headers.get(name, "").split(",")[-1] for name in (b"x-forwarded-proto", b"x-forwarded-host"))
    return (one.strip() for one in hops), scheme.strip(), host.strip()


def _forwarded(headers: dict[bytes, str]) -> tuple[Iterator[str], str, str]:
    text = headers.get(b"forwarded", "")
    elements: list[dict[str, str]] = [{}]
    end = 0
    for pair in _PAIR.finditer(text):
        if "," in text[end : pair.start()]:
            elements.append({})
        quoted = re.sub(r"\\(.)", r"\1", pair[2] or "")
        elements[-1][pair[1].lower()] = quoted or pair[3] or ""
        end = pair.end()
    last = elements[-1]
    return (one.get("for", "") for one in reversed(elements)), last.get("proto", ""), last.get("host", "")


def _without_port(hop: str) -> str:
    """Return the address of a hop, which may have a port, and brackets if it is one of IPv6."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _address(text: str) -> Any:
    """Return an address; one of IPv4 written as IPv6 is the former."""
    found = ipaddress.ip_address(text)
    return getattr(found, "ipv4_mapped", None) or found
