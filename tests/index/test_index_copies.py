"""Copies of an index that is being changed: one state each, whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import hopfuse as hf
import numpy as np
import processes
import pytest
from hopfuse.errors import FormatError, InputError
from index.live_model import Model, differences, random_change
from refusals import refused

COPY = (
    "import sys, hopfuse as hf\nwhile True:\n    print(hf.Index.open(sys.argv[1]).copy_to(sys.argv[2]), flush=True)\n"
)


def change(live, model, seed, serial):
    with live.change() as one:
        random_change(model, np.random.default_rng(seed), one, serial)
    return one.seq


@pytest.mark.parametrize("changes", [8, pytest.param(20, marks=pytest.mark.full)])
def test_a_copy_is_the_state_that_was_opened(tmp_path, changes):
    model, serial = Model(), [0]
    model.rebuilt().save(tmp_path / "index")
    with hf.Index.open(tmp_path / "index", writable=True) as live:
        for seed in range(changes):
            change(live, model, seed, serial)
            if seed % 7 == 6:
                live.compact()
            opened, expected = hf.Index.open(tmp_path / "index"), model.rebuilt()
            change(live, model, 100 + seed, serial)  # after it was opened
            live.compact()  # which removes the file that is copied
            assert opened.copy_to(tmp_path / "copy") == opened.seq
            copy = hf.Index.open(tmp_path / "copy", verify="full")
            assert copy.seq == opened.seq
            assert differences(copy, expected) == []
    names = {name.partition("-")[0] for name in os.listdir(tmp_path / "copy")}
    assert names == {"CURRENT", "LOCK", "generation"}
    assert len(os.listdir(tmp_path / "copy")) == 3


def test_copies_of_another_process_while_the_index_changes_and_it_is_killed(tmp_path):
    """Each copy that can be seen is whole, at the announced seq or later; a killed run leaves the one before."""
    model, serial, stop = Model(), [0], threading.Event()
    model.rebuilt().save(tmp_path / "index")
    states = {0: model.rebuilt()}
    with hf.Index.open(tmp_path / "index", writable=True) as live:

        def write():
            seed = 0
            while not stop.is_set():
                seq = change(live, model, seed, serial)
                states[seq] = model.rebuilt()
                seed += 1
                if seed % 5 == 0:
                    live.compact()

        writer = threading.Thread(target=write)
        writer.start()
        seen = []
        try:
            for turn in range(4):
                command = [sys.executable, "-c", COPY, str(tmp_path / "index"), str(tmp_path / "copy")]
                with processes.Popen(command, stdout=subprocess.PIPE, text=True) as copying:
                    for _ in range(2 + turn):
                        announced = int(copying.stdout.readline())
                        copy = hf.Index.open(tmp_path / "copy", verify="full")
                        assert copy.seq >= announced
                        seen.append(copy)
                    copying.send_signal(signal.SIGKILL)
                seen.append(hf.Index.open(tmp_path / "copy", verify="full"))
        finally:
            stop.set()
            writer.join()
        assert [one.seq for one in seen] == sorted(one.seq for one in seen)
        assert len({one.seq for one in seen}) > 1
        for one in seen:
            assert differences(one, states[one.seq]) == []
        last = hf.Index.open(tmp_path / "index").copy_to(tmp_path / "copy")
    assert differences(hf.Index.open(tmp_path / "copy"), states[last]) == []
    assert len(os.listdir(tmp_path / "copy")) == 3


def test_a_directory_that_is_no_copy_is_refused(tmp_path):
    hf.Index.build(passages=[{"text": "one"}]).save(tmp_path / "index")
    index = hf.Index.open(tmp_path / "index")
    with refused(InputError, "conflict", "directory"):
        index.copy_to(tmp_path / "index")
    (tmp_path / "link").symlink_to(tmp_path / "index")
    with refused(InputError, "conflict", "directory"):
        index.copy_to(tmp_path / "link")
    for _ in range(3):
        hf.Index.build(passages=[{"text": "other"}]).save(tmp_path / "other")
    with refused(InputError, "conflict", "directory", before=2, seq=0):
        index.copy_to(tmp_path / "other")
    assert list(hf.Index.open(tmp_path / "other").texts) == ["other"]
    assert len(os.listdir(tmp_path / "other")) == 3


def test_a_damaged_index_is_not_copied(tmp_path):
    text = "some text " * 1000
    hf.Index.build(passages=[{"text": text}]).save(tmp_path / "index")
    hf.Index.open(tmp_path / "index").copy_to(tmp_path / "copy")
    (file,) = (tmp_path / "index").glob("generation-*")
    data = file.read_bytes()
    at = data.index(b"some text")
    file.write_bytes(data[:at] + b"S" + data[at + 1 :])
    with pytest.raises(FormatError) as caught:
        hf.Index.open(tmp_path / "index").copy_to(tmp_path / "copy")
    assert caught.value.code == "damaged"
    assert hf.Index.open(tmp_path / "copy", verify="full").texts[0] == text
    assert len(os.listdir(tmp_path / "copy")) == 3
