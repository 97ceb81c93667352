"""Values that are continued from those of an earlier state of an object."""

from __future__ import annotations

import gc
from threading import Thread

from hopfuse.types.derived import Continued


class Text:
    """A text that grows; states of one name belong together."""

    def __init__(self, name: str | None, text: str) -> None:
        self.name, self.text = name, text


def lengths_of(log: list[tuple[str, str]]) -> Continued[Text, int]:
    def make(of: Text) -> int:
        log.append(("made", of.text))
        return len(of.text)

    def follow(of: Text, earlier: Text, length: int) -> int | None:
        if not of.text.startswith(earlier.text):
            return None
        log.append(("continued", of.text))
        return length + len(of.text) - len(earlier.text)

    return Continued(make, follow, lambda of: of.name)


def test_a_value_is_continued_from_the_latest_state_that_it_can_be_continued_from() -> None:
    log: list[tuple[str, str]] = []
    lengths = lengths_of(log)
    states = [Text("a", text) for text in ("r", "ri", "sea", "riv")]
    assert [lengths.get(state) for state in states] == [1, 2, 3, 3]
    assert [lengths.get(state) for state in states] == [1, 2, 3, 3]
    assert log == [("made", "r"), ("continued", "ri"), ("made", "sea"), ("continued", "riv")]


def test_states_of_other_objects_and_objects_without_states_are_made() -> None:
    log: list[tuple[str, str]] = []
    lengths = lengths_of(log)
    others = [Text("a", "x"), Text("b", "xy"), Text(None, "x"), Text(None, "xy")]
    assert [lengths.get(one) for one in others] == [1, 2, 1, 2]
    assert [kind for kind, _ in log] == ["made"] * 4


def test_a_state_that_nothing_uses_is_not_kept() -> None:
    log: list[tuple[str, str]] = []
    lengths = lengths_of(log)
    state = Text("a", "x")
    lengths.get(state)
    del state
    gc.collect()
    assert lengths.get(Text("a", "xy")) == 2
    assert [kind for kind, _ in log] == ["made", "made"]
    gc.collect()
    assert len(lengths) == 0


def test_threads_that_ask_for_one_state_get_one_value() -> None:
    log: list[tuple[str, str]] = []
    lengths = lengths_of(log)
    first, state = Text("a", "x"), Text("a", "xy")
    lengths.get(first)
    threads = [Thread(target=lengths.get, args=(state,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log == [("made", "x"), ("continued", "xy")]
