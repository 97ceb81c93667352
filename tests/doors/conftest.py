import contextlib
import re
import signal
import sys
import time
import urllib.error
import urllib.request

import hopfuse as hf
import processes
import pytest
from doors.doors import CLUSTER, House, index_name
from doors.shapes import SHAPES
from hopfuse.errors import HopfuseError
from hopfuse.recipes import RECIPES
from offline.ray_space import Space, missing

for package in ("wordllama", "bm25s", "Stemmer", "ahocorasick"):
    pytest.importorskip(package, reason=f"the indexes of these tests need {package}")


@pytest.fixture(scope="session")
def house(tmp_path_factory, model_in_memory):
    """The saved indexes."""
    folder = tmp_path_factory.mktemp("doors")
    for shape, save in SHAPES.items():
        save(folder / shape)
    return House(folder)


@pytest.fixture(scope="session")
def url(house):
    """The address of ``hopfuse serve`` over all of them, by the default recipes: a process of its own."""
    with served(house.folder, [None]) as url:
        yield url


@pytest.fixture(scope="session")
def url_by_recipes(house):
    """The same, by each recipe."""
    with served(house.folder, RECIPES) as url:
        yield url


@pytest.fixture(scope="session")
def space():
    """A cluster of Ray, where loopback is the only network."""
    if missing() is not None:
        pytest.skip(missing())
    here = Space()
    here.ray("start", "--head", f"--port={CLUSTER.partition(':')[2]}", "--include-dashboard=false", "--num-cpus=2")
    yield here
    here.close()


@contextlib.contextmanager
def served(folder, recipes):
    """The address of a server, with an index for each shape and each of these recipes that can run on it."""
    config, log = (folder / f"serve-{len(recipes)}.{suffix}" for suffix in ("toml", "log"))
    lines = ["port = 0", "threads = 1", "mcp = true"]
    for shape in SHAPES:
        for recipe in recipes:
            if runs(folder / shape, recipe):
                lines += [f'[indexes."{index_name(shape, recipe)}"]', f'path = "{shape}"']
                lines += [] if recipe is None else [f'recipe = "{recipe}"']
    config.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "hopfuse", "serve", "--config", str(config)]
    with open(log, "w", encoding="utf-8") as file:
        process = processes.Popen(command, stderr=file)
        try:
            yield address(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=600)


def runs(path, recipe):
    """Whether a recipe can search an index."""
    try:
        hf.Retriever.open(path, recipe)
    except HopfuseError:
        return False
    return True


def address(process, log):
    """The address of a server, once it is ready."""
    while True:
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text(encoding="utf-8"))
        with contextlib.suppress(urllib.error.URLError):
            if found and urllib.request.urlopen(f"{found[0]}/health/ready").status == 200:
                return found[0]
        if process.poll() is not None:
            raise AssertionError(log.read_text(encoding="utf-8").splitlines()[-1])
        time.sleep(0.02)
