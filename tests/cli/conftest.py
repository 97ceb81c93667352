import subprocess

import pytest
from cli.cli_files import build_args, hopfuse, said_error, write_files
from hopfuse.cli import main

pytest.importorskip("click")
pytest.importorskip("rich")


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
    return ["score", "--index", index, "--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy"]


@pytest.fixture
def refused_here(capsys):
    """As ``cli_files.refused``, but in this process: for the many ways to be wrong."""

    def run(*args):
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        return said_error(subprocess.CompletedProcess(args, left.value.code, stderr=capsys.readouterr().err))

    return run
