import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from llm.chat_server import Answer, ChatServer


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], ChatServer]]:
    """Start servers that end with the test."""
    with ExitStack() as running:
        yield lambda answer: running.enter_context(ChatServer(answer))


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that nobody listens at: its port is taken, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(autouse=True)
def _no_key_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's first wait before it tries again: half a second is long for a test."""
    with suppress(ImportError):
        monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
