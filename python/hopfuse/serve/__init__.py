"""A server of indexes over HTTP and MCP, which searches the queries of many callers together.

The package imports the public API, Starlette, msgspec and uvicorn (extra ``serve``). Answers equal those of the
library. ``hopfuse serve INDEX`` runs it; see docs/serving.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._lazy import ONE_AT_A_TIME
from ..errors import MissingExtraError

if TYPE_CHECKING:
    from .app import make_app
    from .batcher import Batcher
    from .config import IndexConfig, KeyConfig, Limits, LogConfig, ProxyConfig, ServeConfig
    from .costs import BatchTimes, Load
    from .errors import RefusalError, status_of
    from .keys import Guesses, new_key
    from .logs import start_logging
    from .metrics import merge_metrics
    from .proxies import Proxies
    from .searches import Search
    from .server import make_server, run, run_stdio
    from .service import Service
    from .snapshots import SearchQuery
    from .workers import cards_of

__all__ = [
    "BatchTimes",
    "Batcher",
    "Guesses",
    "IndexConfig",
    "KeyConfig",
    "Limits",
    "Load",
    "LogConfig",
    "Proxies",
    "ProxyConfig",
    "RefusalError",
    "Search",
    "SearchQuery",
    "ServeConfig",
    "Service",
    "cards_of",
    "make_app",
    "make_server",
    "merge_metrics",
    "new_key",
    "run",
    "run_stdio",
    "start_logging",
    "status_of",
]

_HOMES = {
    **dict.fromkeys(("IndexConfig", "KeyConfig", "Limits", "LogConfig", "ProxyConfig", "ServeConfig"), "config"),
    **dict.fromkeys(("BatchTimes", "Load"), "costs"),
    "Batcher": "batcher",
    **dict.fromkeys(("RefusalError", "status_of"), "errors"),
    **dict.fromkeys(("make_server", "run", "run_stdio"), "server"),
    "SearchQuery": "snapshots",
    "Search": "searches",
    "Service": "service",
    "cards_of": "workers",
    "make_app": "app",
    "merge_metrics": "metrics",
    "Proxies": "proxies",
    **dict.fromkeys(("Guesses", "new_key"), "keys"),
    "start_logging": "logs",
}
_NEEDED = ("httptools", "msgspec", "prometheus_client", "starlette", "uvicorn")


def __getattr__(name: str) -> Any:
    """Load a name at its first use (PEP 562); a missing package is reported with its extra."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        with ONE_AT_A_TIME:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _NEEDED:
            raise
        raise MissingExtraError(package, "serve", "hopfuse serve") from error
