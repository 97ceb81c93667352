import pytest
from serve.served import configured, running, save

for package in ("starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "httpx", "ahocorasick"):
    pytest.importorskip(package, reason=f"the server's tests use {package}")


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """The directory of the small index."""
    return save(tmp_path_factory.mktemp("served") / "index")


@pytest.fixture(scope="module")
def url(path):
    """A server with small limits. Its threads end with the file: other files patch what all threads call."""
    limits = (
        "[limits]\nbody_bytes = 100000\nqueries = 40\nk = 50\nentities = 4\nallow = 20\ntext_chars = 200\nbatch = 8\n"
    )
    with running(configured(path, limits)) as url:
        yield url


@pytest.fixture
def client(url):
    import httpx

    with httpx.Client(base_url=url, timeout=60) as client:
        yield client
