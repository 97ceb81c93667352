"""The same mistake has the same code and field in Python, on the command line and over HTTP."""

from __future__ import annotations

import json
from contextlib import redirect_stderr
from io import StringIO
from unittest.mock import patch

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.cli import main
from hopfuse.client import Client
from hopfuse.errors import HopfuseError
from hopfuse.recipes import PhaseGraph, PhaseGraphConfig
from serve.served import DIM, configured, running, save

pytest.importorskip("click")
pytest.importorskip("rich")
ONES = np.ones((1, DIM), np.float32)


def phase_graph(index, **options):
    return PhaseGraph(index, PhaseGraphConfig(**options))


def searched(index, **given):
    asked = {"vectors": ONES, "entities": [[]], "k": 3} | given
    return PhaseGraph(index).search(["Who?"], **asked)


def query(**given):
    return {"queries": [{"text": "Who?", "vector": [1.0] * DIM, "entities": [], **given}]}


#: What Python calls, the options of the command line, the body over HTTP, and where the field is in the body.
MISTAKES = {
    "a damping": (
        lambda index: phase_graph(index, damping=2.0),
        ("--damping", "2"),
        query() | {"options": {"damping": 2.0}},
        "options.{}",
    ),
    "a setting": (
        lambda index: phase_graph(index, ties="odd"),
        ("--option", "ties=odd"),
        query() | {"options": {"ties": "odd"}},
        "options.{}",
    ),
    "a weight": (
        lambda index: phase_graph(index, edge_weights={"context": -1.0}),
        ("--option", "edge_weights.context=-1"),
        query() | {"options": {"edge_weights": {"context": -1.0}}},
        "options.{}",
    ),
    "a number of hits": (lambda index: searched(index, k=-1), ("--k", "-1"), query() | {"k": -1}, "{}"),
    "an entity": (
        lambda index: searched(index, entities=[[99]]),
        None,
        query(entities=[99]),
        "queries[0].entities[0]",
    ),
    "a column": (
        lambda index: index.mask(hf.where(nope=1)),
        ("--where", "nope=1"),
        query(allow={"nope": 1}),
        "queries[0].allow.{}",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("doors")
    np.save(place / "vectors.npy", ONES)
    return place, save(place / "index")


@pytest.fixture(scope="module")
def url(folder):
    with running(configured(folder[1])) as address:
        yield address


def on_the_command_line(folder, *options):
    place, index = folder
    given = ("search", index, "Who?", "--vectors", str(place / "vectors.npy"), "--recipe", "phase-graph")
    said = StringIO()
    with patch.dict("os.environ", {"HOPFUSE_ERRORS": "json"}), redirect_stderr(said), pytest.raises(SystemExit) as left:
        main([*given, *options])
    assert left.value.code == 2
    return json.loads(said.getvalue())["error"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_one_code_and_field(folder, url, mistake):
    call, options, body, path = MISTAKES[mistake]
    with pytest.raises(HopfuseError) as caught:
        call(hf.Index.open(folder[1]))
    error = caught.value
    kind = type(error).__name__
    if options is not None:
        line = on_the_command_line(folder, *options)
        assert (line["class"], line["code"], line["field"]) == (kind, error.code, error.field)
    answer = httpx.post(f"{url}/v1/search", json=body | {"recipe": "phase-graph"}, timeout=60).json()["error"]
    assert (answer["class"], answer["code"], answer["field"]) == (kind, error.code, path.format(error.field))


def test_the_client_raises_what_the_server_refused(url):
    with Client(url) as client, pytest.raises(HopfuseError) as caught:
        client.search(["Who?"], recipe="phase-graph", options={"damping": 2.0})
    error = caught.value
    assert (type(error).__name__, error.code, error.field, error.given) == (
        "InputError",
        "range",
        "options.damping",
        2.0,
    )
