"""Every input of the corpora is read or refused; planted faults are found; changes keep checksums.

``.ci/soak`` goes on from here (``tests/soak.py``, part ``fuzz``); ``tests/fuzzing.py`` runs a target by itself.
"""

from __future__ import annotations

import copy
import logging
import random
import struct
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from fuzz.indexes import checksums_hold, sealed_index, sealed_log, whole_batches
from fuzz.mutators import ODD, changed
from fuzz.targets import CORPUS, MODULES, NAMES, Target, inputs_of, is_read, target_of
from fuzzing import fuzz
from hopfuse.errors import FormatError, InputError, MissingExtraError
from index.damages import damaged
from index.index_files import Forge
from scratch import memory

for package in ("click", "httpx", "msgspec", "openai", "pyarrow", "starlette"):
    pytest.importorskip(package, reason="targets need the extras arrow, client, llm and serve")

#: Planted targets, and what the fuzzer must say of each.
PLANTED = {
    "planted-branches": "KeyError: 'planted'",
    "planted-checksum": "KeyError: 'planted'",
    "planted-memory": "MemoryError: Unable to allocate 2.00 GiB",
}


@pytest.fixture(autouse=True, scope="module")
def no_server_outlives_the_file() -> Iterator[None]:
    """Its log is silent, and its threads look at its index."""
    yield
    import_module("fuzz.requests").close_doors()
    assert logging.getLogger("hopfuse.serve").level == logging.NOTSET


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in memory, where there is one."""
    return memory() or tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", NAMES)
def test_every_input_of_the_corpus_is_read_or_refused(name: str, folder: Path) -> None:
    target = target_of(name)
    inputs = inputs_of(target)
    assert any(path.name.startswith("seed-") for path in inputs)
    for path in inputs:
        read = is_read(target, path.read_bytes(), folder)
        assert read or not path.name.startswith("seed-"), f"{path} is refused"


def test_the_corpora_are_those_of_the_targets_and_small() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(NAMES)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 300_000
    assert all(len(path.read_bytes()) <= target_of(path.parent.name).most for path in CORPUS.glob("*/*"))


def test_every_target_is_named_with_its_module() -> None:
    for module, names in MODULES.items():
        assert {one.name for one in import_module(f"fuzz.{module}").TARGETS} == set(names)
    assert set(PLANTED) == set(MODULES["planted"])


def raising(error: Exception) -> Target:
    def read(data: bytes, folder: Path) -> None:
        raise error

    return Target("t", read, refuses=FormatError)


def test_a_target_may_read_or_refuse_and_nothing_else(tmp_path: Path) -> None:
    assert is_read(Target("t", lambda data, folder: None), b"", tmp_path)
    assert not is_read(raising(FormatError("damaged", None, "it is damaged")), b"", tmp_path)
    faults = (
        KeyError("x"),
        RecursionError(),
        MemoryError(),
        InputError("range", None, "it is no format's error"),
        FormatError("nonsense", None, "the code is unknown"),
        MissingExtraError("pyarrow", "arrow", "a test"),
    )
    for fault in faults:
        with pytest.raises((type(fault), AssertionError)):
            is_read(raising(fault), b"", tmp_path)
    with pytest.raises(RuntimeWarning, match="overflow"):
        is_read(Target("t", lambda data, folder: np.float64(1e300).astype(np.float32)), b"", tmp_path)
    warns = Target("t", lambda data, folder: warnings.warn("a column is not read", UserWarning, stacklevel=1))
    assert is_read(warns, b"", tmp_path)
    assert not [*tmp_path.iterdir()]


def change(data: bytes, most: int) -> bytes:
    """Change bytes as a fuzzer may."""
    return damaged(data, np.random.default_rng(len(data)))[:most] if len(data) > 1 else b"x"


def test_changed_snapshots_and_logs_keep_checksums_and_get_behind_them(folder: Path) -> None:
    draw = random.Random(5)
    for name, mutate in (("index", sealed_index), ("log", sealed_log)):
        target, whole, read = target_of(name), 0, Counter[bool]()
        inputs = [path.read_bytes() for path in inputs_of(target) if path.name.startswith("seed-")]
        for at in range(60):
            data = mutate(draw.choice(inputs), target.most, draw, change)
            whole += whole_batches(data) > 0 if name == "log" else holds(data)
            if at < 30:
                read[is_read(target, data, folder)] += 1
        assert whole >= 30, name
        assert len(read) == 2, name


def test_a_section_of_many_rows_without_columns_is_changed_too() -> None:
    forge = Forge(inputs_of(target_of("index"))[0].read_bytes())
    forge.replace(dict.fromkeys(forge.names[1:]))
    forge.rows[0][2:] = [2, 2**40, 0, forge.rows[0][5], 0]
    data = forge.seal()
    assert len({sealed_index(data, 16_384, random.Random(seed), change) for seed in range(50)}) > 10


def holds(data: bytes) -> bool:
    """Return whether a snapshot has a head, and checksums that hold."""
    with suppress(struct.error, ValueError, IndexError):
        return checksums_hold(data)
    return False


@pytest.mark.full
@pytest.mark.skipif(find_spec("atheris") is None, reason="needs Atheris (the group fuzz of pyproject.toml)")
@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(name: str) -> None:
    found = fuzz(target_of(name), 0, "-runs=300000")
    assert found.failing is not None
    assert PLANTED[name] in found.said


@pytest.mark.full
@pytest.mark.skipif(find_spec("atheris") is None, reason="needs Atheris (the group fuzz of pyproject.toml)")
def test_a_run_counts_its_inputs_and_reaches_more_than_chance() -> None:
    found = fuzz(target_of("triples-nt"), 3, "-runs=2000")
    assert found.failing is None
    assert found.count >= 2000
    assert found.edges > 50


def test_changes_of_json_leave_the_odd_values_as_they_are() -> None:
    """Else a value could come to hold itself, and later inputs would depend on earlier ones."""
    before = copy.deepcopy(ODD)
    for seed in range(2_000):
        changed({"a": {}, "b": [{}]}, random.Random(seed))
    assert repr(before) == repr(ODD)
