from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from connect.chat_server import Answer, ChatServer


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], ChatServer]]:
    """Start servers that end with the test."""
    with ExitStack() as running:
        yield lambda answer: running.enter_context(ChatServer(answer))


@pytest.fixture(autouse=True)
def _no_key_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
