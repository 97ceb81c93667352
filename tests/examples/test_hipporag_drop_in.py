"""The example of HippoRAG, over a memory of its own making and an endpoint that computes the models' answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
from adapters.hipporag_memory import QUESTIONS, small_rag, some_facts, word_vectors

from bench.drop_ins.hipporag_models import answer_filter

ROOT = Path(__file__).parents[2]
MODELS = {"llm_name": "gpt-4o-mini", "embedding_model_name": "text-embedding-3-small"}

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


class Endpoint(BaseHTTPRequestHandler):
    """OpenAI's two routes that HippoRAG's classes call."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/embeddings":
            vectors = word_vectors(asked["input"]).tolist()
            data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
            answer = {"object": "list", "data": data, "model": asked["model"], "usage": USAGE}
        else:
            message = {"role": "assistant", "content": answer_filter(asked["messages"], some_facts)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": asked["model"],
                "choices": [choice],
                "usage": USAGE,
            }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_hipporag_is_accelerated_with_the_same_scores(endpoint: str, tmp_path: Path) -> None:
    if find_spec("hipporag") is None:
        pytest.skip("hipporag is not installed; the part integrations of .ci/full installs it")
    small_rag(tmp_path / "memory", **MODELS)
    questions = tmp_path / "questions.txt"
    questions.write_text("\n".join(QUESTIONS), encoding="utf-8")
    stand_in = tmp_path / "modules"  # of vLLM, which needs CUDA, and which HippoRAG imports and does not use here
    stand_in.mkdir()
    (stand_in / "vllm.py").write_text("SamplingParams = LLM = None\n", encoding="utf-8")
    is_installed = getattr(sys.modules["vllm"], "__file__", None) is not None
    paths = [os.environ.get("PYTHONPATH"), None if is_installed else str(stand_in)]
    path = os.pathsep.join(filter(None, paths))
    own = {"OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": "none", "PYTHONPATH": path}
    offline = {"HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [sys.executable, "examples/hipporag_drop_in.py", str(tmp_path / "memory"), "--questions", str(questions)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **own, **offline}
    )
    assert done.returncode == 0, done.stderr
    assert f"{QUESTIONS[0]}\n  Ada Lovelace\n" in done.stdout
    assert len(re.findall(r"^  (?:HippoRAG|accelerate\(rag\)) +[\d.]+", done.stdout, re.MULTILINE)) == 2
    assert float(done.stdout.split("Largest difference of a score: ")[1]) < 1e-6
