"""What a server and threads ask of a retriever: shared encoders, turns, questions that are checked before they wait."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.retriever import EncoderCalls, calling
from refusals import refused

TEXTS = ["Ada wrote notes.", "Babbage built the Engine."]


class Recording:
    """An encoder that says what it reads, and takes a while for passages."""

    name, dim, normalize = "recording", 2, False

    def __init__(self):
        self.read, self.begun = [], threading.Event()
        self.inside, self.most = 0, 0

    def _encode(self, kind, texts):
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.read.append(kind)
        if kind == "passages":
            self.begun.set()
            time.sleep(0.005)
        self.inside -= 1
        return np.ones((len(texts), 2), np.float32)

    def encode_queries(self, texts):
        return self._encode("queries", texts)

    def encode_passages(self, texts):
        return self._encode("passages", texts)


def an_index():
    return hf.Index.build(
        passages=[{"text": text} for text in TEXTS],
        vectors=np.eye(2, dtype=np.float32),
        entities=["Ada", "Engine"],
        graph=[{"src": 0, "dst": 2, "type": "context"}, {"src": 1, "dst": 3, "type": "context"}],
    )


def test_retrievers_of_one_encoder_take_turns_and_questions_go_first():
    encoder, index = Recording(), an_index()
    first, second = hf.Retriever(index, encoder=encoder), hf.Retriever(index, encoder=encoder)
    assert first.encoder is second.encoder
    passages = threading.Thread(target=first.encoder.encode_passages, args=(["p"] * 2000,))
    passages.start()
    assert encoder.begun.wait(60)
    second.search("Who wrote?")
    turns = len(encoder.read)
    passages.join()
    assert encoder.read.count("queries") == 1
    assert turns < len(encoder.read)  # the question did not wait for all passages
    assert encoder.most == 1


def test_questions_take_their_turns_as_they_came():
    arrived, begun, end, go = threading.Semaphore(0), threading.Event(), threading.Event(), threading.Event()

    class Late(EncoderCalls):
        """Waits at an encoder, and does not see before ``go`` that its turn has come."""

        def wait_for(self, changed, ready):
            arrived.release()
            while not ready():
                changed.release()
                go.wait()
                changed.acquire()

    class Held(Recording):
        def encode_queries(self, texts):
            self.read.append(texts[0])
            begun.set()
            end.wait()
            return np.ones((len(texts), 2), np.float32)

    encoder = Held()
    retriever = hf.Retriever(an_index(), encoder=encoder)

    def encode(text):
        with calling(Late()):
            retriever.encoder.encode_queries([text])

    threads = {text: threading.Thread(target=encode, args=(text,)) for text in "abc"}
    threads["a"].start()
    begun.wait()
    threads["b"].start()
    for _ in "ab":
        arrived.acquire()
    end.set()
    threads["a"].join()
    threads["c"].start()
    arrived.acquire()
    go.set()
    threads["b"].join()
    threads["c"].join()
    assert encoder.read == ["a", "b", "c"]


def test_an_encoder_that_no_retriever_holds_is_let_go():
    retriever = hf.Retriever(an_index(), encoder=Recording())
    shared = weakref.ref(retriever.encoder)
    other = hf.Retriever(an_index(), encoder=Recording())
    assert other.encoder is not shared()
    del retriever
    gc.collect()
    assert shared() is None


def test_a_mapping_as_config_is_options_whatever_their_names():
    index = an_index()
    retriever = hf.Retriever(index, "phase-graph", config={"damping": 0.25})
    assert retriever.recipe.config.damping == 0.25
    assert retriever.variant(config={"alpha": 0.5}).recipe.config.damping == 0.25
    assert retriever.of_state(index).recipe.config.damping == 0.25
    for name in ("words", "encoder", "config"):
        with refused(InputError, "unknown", name):
            retriever.variant(config={name: "none"})
        with refused(InputError, "unknown", name):
            hf.Retriever(index, config={name: "none"})


def test_a_question_is_checked_by_its_own_fields():
    index = an_index()
    retriever = hf.Retriever(index)
    with refused(InputError, "missing", "vector"):
        retriever.check_question("Who wrote?")
    with refused(InputError, "missing", "vector"):
        retriever.check_question(entities=["Ada"])
    with refused(InputError, "missing", "entities"):
        retriever.check_question(vector=[1.0, 0.0])
    with refused(InputError, "shape", "vector"):
        retriever.check_question("Who wrote?", [1.0])
    retriever.check_question("Who wrote?", [1.0, 0.0])


def test_without_the_package_of_names_questions_give_entities(monkeypatch):
    monkeypatch.setitem(sys.modules, "ahocorasick", None)
    retriever = hf.Retriever(an_index(), encoder=Recording())
    assert "ahocorasick" in retriever.describe().lacks["names"]
    with refused(InputError, "missing", "entities"):
        retriever.check_question("Who wrote?")
    with pytest.raises(hf.errors.MissingExtraError):
        retriever.search("Who wrote?")
    retriever.warm_up()
    assert retriever.search(["Who wrote?"], entities=[["Ada"]], k=1)[0][0].text == TEXTS[0]
