"""Two threads, whose calls have streams of their own, use a shared recording, their own recordings, and eager calls."""

from __future__ import annotations

import threading
from pathlib import Path

import hopfuse as hf

from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..search import Search, same
from ..sizes import Sizes

THREADS, BATCH = 2, 4


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Compare every answer with the CPU's."""
    require_card()
    search = Search()
    shared, cpu = search.captured(), search.captured("cpu")
    asked = [search.questions(BATCH, seed) for seed in range(THREADS)]
    expected = [cpu(*questions) for questions in asked]
    alone = [hf.dense_topk(questions[0], search.corpus, 10, backend="cpu") for questions in asked]
    wrong: list[str] = []
    start = threading.Barrier(THREADS)

    def ask(at: int) -> None:
        try:
            start.wait()
            own = search.captured()
            for turn in range(sizes.rounds):
                for name, recording in (("shared", shared), ("own", own)):
                    if not same(recording(*asked[at]), expected[at]):
                        wrong.append(f"thread {at}, turn {turn}: the {name} recording differs")
                hits = hf.dense_topk(asked[at][0], search.corpus, 10, backend=BACKEND)
                if not same((hits.ids, hits.scores), (alone[at].ids, alone[at].scores)):
                    wrong.append(f"thread {at}, turn {turn}: the call differs")
        except Exception as error:
            wrong.append(f"thread {at}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.note(wrong=wrong)
    if wrong:
        raise FailedError(f"{len(wrong)} faults, the first: {wrong[0]}")
    return f"{THREADS} threads, {3 * THREADS * sizes.rounds} answers, all equal to the CPU's"
