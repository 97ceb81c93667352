"""A server of indexes over HTTP and MCP, which searches the queries of many callers together.

The room imports the public API, Starlette, msgspec and uvicorn (extra ``serve``). Answers equal those of the library.
``hopfuse serve INDEX`` runs it; see docs/serving.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError

if TYPE_CHECKING:
    from .app import make_app
    from .config import IndexConfig, KeyConfig, Limits, LogConfig, ServeConfig
    from .keys import new_key
    from .server import make_server, run, run_stdio
    from .service import Service
    from .snapshots import Collaborators

__all__ = [
    "Collaborators",
    "IndexConfig",
    "KeyConfig",
    "Limits",
    "LogConfig",
    "ServeConfig",
    "Service",
    "make_app",
    "make_server",
    "new_key",
    "run",
    "run_stdio",
]

_HOMES = {
    **dict.fromkeys(("IndexConfig", "KeyConfig", "Limits", "LogConfig", "ServeConfig"), "config"),
    **dict.fromkeys(("make_server", "run", "run_stdio"), "server"),
    "Collaborators": "snapshots",
    "Service": "service",
    "make_app": "app",
    "new_key": "keys",
}
_NEEDED = ("httptools", "msgspec", "prometheus_client", "starlette", "uvicorn")


def __getattr__(name: str) -> Any:
    """Load a name at its first use (PEP 562); a missing package is reported with its extra."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _NEEDED:
            raise
        raise MissingExtraError(package, "serve", "hopfuse serve") from error
