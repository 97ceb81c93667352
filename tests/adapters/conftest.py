import os

import hopfuse as hf
import pytest
from adapters.frameworks import served, small_index

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The directory of the small index."""
    path = tmp_path_factory.mktemp("frameworks") / "index"
    small_index().save(path)
    return path


#: What ``hopfuse serve`` needs.
SERVER = ("starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "httpx", "click")


@pytest.fixture(scope="session")
def url(folder):
    """``hopfuse serve`` over it."""
    for package in SERVER:
        pytest.importorskip(package, reason=f"hopfuse serve needs {package} (extra serve)")
    with served(folder) as url:
        yield url


@pytest.fixture
def writable_url(tmp_path):
    """``hopfuse serve --writable`` over an index of words that is empty."""
    for package in SERVER:
        pytest.importorskip(package, reason=f"hopfuse serve needs {package} (extra serve)")
    types = {"user": "string", "number": "int64"}
    hf.Index.build([], reader="words", metadata_types=types).save(tmp_path / "served")
    with served(tmp_path / "served", "--writable") as url:
        yield url


@pytest.fixture(params=["index", "server"])
def source(request, folder):
    """An index here, and a server over the same."""
    return str(folder) if request.param == "index" else request.getfixturevalue("url")
