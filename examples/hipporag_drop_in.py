"""Speed up ``retrieve`` of a HippoRAG 2 memory by one line: ``accelerate(rag)``.

Run ``python examples/hipporag_drop_in.py FOLDER --questions FILE`` with hipporag 2.0.0a4 installed. FOLDER is what
HippoRAG wrote for these models; FILE has one question per line. The models' endpoint is OPENAI_BASE_URL, by default
OpenAI's.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from hipporag import HippoRAG
from hopfuse.adapters.hipporag import accelerate

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--questions", type=Path, required=True)
parser.add_argument("--llm", default="gpt-4o-mini")
parser.add_argument("--embeddings", default="text-embedding-3-small")
given = parser.parse_args()
endpoint = os.environ.get("OPENAI_BASE_URL")
rag = HippoRAG(
    save_dir=given.folder,
    llm_model_name=given.llm,
    llm_base_url=endpoint,
    embedding_model_name=given.embeddings,
    embedding_base_url=endpoint,
)
questions = given.questions.read_text(encoding="utf-8").splitlines()
rag.retrieve(questions)  # loads the memory, encodes the questions, and caches the language model's answers


def timed() -> tuple[float, list[Any]]:
    """Return the milliseconds per question, and the solutions."""
    start = time.perf_counter()
    found = rag.retrieve(questions)
    return 1e3 * (time.perf_counter() - start) / len(questions), found


by_hipporag, expected = timed()
accelerate(rag)  # the one line
rag.retrieve(questions[:1])  # the graph is read at the first call
by_hopfuse, found = timed()

for solution in found:
    print(f"{solution.question}\n  {solution.docs[0].splitlines()[0]}")
print(f"{len(questions)} questions, milliseconds per question, with cached answers of the language model")
print(f"  HippoRAG              {by_hipporag:8.2f}")
print(f"  accelerate(rag)       {by_hopfuse:8.2f}   {by_hipporag / by_hopfuse:5.1f} times as fast")
gaps = (abs(one.doc_scores - other.doc_scores).max() for one, other in zip(found, expected, strict=True))
print(f"Largest difference of a score: {max(gaps):.1e}")
