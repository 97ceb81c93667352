import os

import pytest
from adapters.frameworks import served, small_index

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The directory of the small index."""
    path = tmp_path_factory.mktemp("frameworks") / "index"
    small_index().save(path)
    return path


@pytest.fixture(scope="session")
def url(folder):
    """``hopfuse serve`` over it."""
    for package in ("starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "httpx", "click"):
        pytest.importorskip(package, reason=f"hopfuse serve needs {package} (extra serve)")
    with served(folder) as url:
        yield url


@pytest.fixture(params=["index", "server"])
def source(request, folder):
    """An index here, and a server over the same."""
    return str(folder) if request.param == "index" else request.getfixturevalue("url")
