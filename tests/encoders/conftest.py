import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    folder = Path(os.environ.get("HOPFUSE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {folder}; set HOPFUSE_DATA")
    return folder


@pytest.fixture
def offline(monkeypatch):
    """No connection can be opened, and none may be tried."""
    tried = []

    def refuse(*address):
        tried.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    yield
    assert tried == []
