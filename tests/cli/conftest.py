import os
import subprocess
from unittest.mock import patch

import pytest
from cli.cli_files import AS_DATA, build_args, hopfuse, said_error, write_files
from cli.recipe_files import write_memory
from hopfuse.cli import main

pytest.importorskip("click")
pytest.importorskip("rich")


@pytest.fixture(scope="session", autouse=True)
def _model(model_in_memory):
    """Commands that run in this process load one model."""


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
def index(files, tmp_path_factory):
    """The directory of the tiny index."""
    directory = tmp_path_factory.mktemp("index") / "tiny"
    hopfuse(*build_args(files), "--aliases", files / "aliases.jsonl", "--out", directory)
    return directory


@pytest.fixture
def scoring(files, index):
    """``score`` and the inputs that its tests share."""
    return ["score", index, "--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy"]


@pytest.fixture(scope="session")
def memory(tmp_path_factory):
    """A folder with an index of facts and entity vectors, queries and their vectors."""
    return write_memory(tmp_path_factory.mktemp("recipes"))


@pytest.fixture
def output_of(capsys):
    """Return a function that runs a command in this process and returns its output."""

    def run(*args):
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        out = capsys.readouterr()
        assert left.value.code == 0, out.err
        return out.out

    return run


@pytest.fixture
def refused_here(capsys):
    """Like ``cli_files.refused``, but in this process, for many wrong arguments."""

    def run(*args):
        with patch.dict(os.environ, AS_DATA), pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        return said_error(subprocess.CompletedProcess(args, left.value.code, stderr=capsys.readouterr().err))

    return run
