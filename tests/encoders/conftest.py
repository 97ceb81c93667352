import pytest


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
