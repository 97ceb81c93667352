"""Torch tensors on non-default streams: calls must wait for the work that makes a tensor, and precede its changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf

from ...peers.torch_topk import TorchTopk
from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..search import Search, same
from ..sizes import Sizes

BATCH, SIDE, PRODUCTS = 4, 2048, 20


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Search while the stream is still making the queries, and overwrite them right after; compare with the CPU."""
    require_card()
    TorchTopk.require()
    import torch

    search = Search()
    questions = search.questions(BATCH)
    recording, cpu = search.captured(), search.captured("cpu")
    expected = cpu(*questions)
    alone = hf.dense_topk(questions[0], search.corpus, 10, backend="cpu")
    given = [torch.from_numpy(array).cuda() for array in questions]
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    work = torch.rand((SIDE, SIDE), device="cuda") / SIDE
    torch.cuda.synchronize()
    wrong: list[str] = []
    for turn in range(sizes.rounds):
        with torch.cuda.stream(streams[turn % len(streams)]):
            late = [_late(torch, array, work) for array in given]
            hits = hf.dense_topk(late[0], search.corpus, 10, backend=BACKEND)
            found = recording(*late)
            for array in late:
                array.zero_()
            if not same([part.cpu().numpy() for part in (hits.ids, hits.scores)], (alone.ids, alone.scores)):
                wrong.append(f"turn {turn}: the call differs")
            if not same([part.cpu().numpy() for part in found], expected):
                wrong.append(f"turn {turn}: the recording differs")
    journal.note(torch=torch.__version__, wrong=wrong)
    if wrong:
        raise FailedError(f"{len(wrong)} answers differ from the CPU's, the first: {wrong[0]}")
    return f"{2 * sizes.rounds} answers on {len(streams)} streams, all equal to the CPU's"


def _late(torch: Any, array: Any, work: Any) -> Any:
    """Return a copy that is queued behind some milliseconds of other work on the current stream."""
    made, product = torch.full_like(array, 0), work
    for _ in range(PRODUCTS):
        product = product @ work
    made.copy_(array + (product[0, 0] * 0).to(array.dtype))
    return made
