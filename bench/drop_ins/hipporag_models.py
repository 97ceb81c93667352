"""HippoRAG with functions in the place of its two models, at its own interfaces: no network, no weights."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

#: Encodes texts to vectors (n, d); chooses the facts that the language model keeps for a question.
Encode = Callable[[Sequence[str]], "np.ndarray[Any, Any]"]
Keep = Callable[[str, list[list[str]]], list[list[str]]]


def hipporag_module() -> ModuleType:
    """Return the module of the class HippoRAG.

    The module imports vLLM, which needs CUDA, for an offline mode that is not used here. If vLLM is not installed, an
    empty module replaces it; nothing of hipporag itself is replaced.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it contacts a server
    try:
        import vllm  # noqa: F401
    except ImportError:
        empty = ModuleType("vllm")
        empty.SamplingParams = empty.LLM = None  # type: ignore[attr-defined]
        sys.modules["vllm"] = empty
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that it imports
        import hipporag  # noqa: F401

    return sys.modules["hipporag.HippoRAG"]


def make_rag(folder: Path, encode: Encode, keep: Keep, **config: Any) -> Any:
    """Return a HippoRAG over a folder, with these functions as encoder and language model."""
    module = hipporag_module()
    from hipporag.embedding_model.base import BaseEmbeddingModel, EmbeddingConfig
    from hipporag.llm.base import BaseLLM, LLMConfig
    from hipporag.utils.config_utils import BaseConfig

    class Encoder(BaseEmbeddingModel):  # type: ignore[misc]
        def __init__(self, global_config: Any = None, embedding_model_name: Any = None) -> None:
            super().__init__(global_config=global_config)
            self.embedding_config = EmbeddingConfig.from_dict({"norm": True})

        def batch_encode(self, texts: Any, **options: Any) -> np.ndarray[Any, Any]:
            return encode([texts] if isinstance(texts, str) else list(texts))

    class Model(BaseLLM):  # type: ignore[misc]
        def _init_llm_config(self) -> None:
            self.llm_config = LLMConfig()

        def infer(self, messages: list[dict[str, str]], **options: Any) -> tuple[str, dict[str, Any], bool]:
            return answer_filter(messages, keep), {}, True

    with (
        mock.patch.object(module, "_get_llm_class", Model),
        mock.patch.object(module, "_get_embedding_model_class", return_value=Encoder),
        mock.patch.object(module, "OpenIE", return_value=None),  # facts are read from OpenIE's file
    ):
        names = {"llm_name": "recorded", "embedding_model_name": "words"} | config
        return module.HippoRAG(global_config=BaseConfig(save_dir=str(folder), **names))


def answer_filter(messages: list[dict[str, str]], keep: Keep) -> str:
    """Return a language model's answer to the prompt of HippoRAG's fact filter."""
    asked = messages[-1]["content"]
    question = asked.split("[[ ## question ## ]]\n")[1].split("\n\n[[")[0]
    facts = json.loads(asked.split("[[ ## fact_before_filter ## ]]\n")[1].split("\n\n")[0])["fact"]
    kept = json.dumps({"fact": keep(question, facts)})
    return f"[[ ## fact_after_filter ## ]]\n{kept}\n\n[[ ## completed ## ]]"


def write_openie(rag: Any, passages: Mapping[str, list[list[str]]]) -> None:
    """Write the triples of passages to HippoRAG's file of OpenIE results."""
    docs = [
        {
            "idx": key_of(text, "chunk"),
            "passage": text,
            "extracted_entities": sorted({end for triple in triples for end in (triple[0], triple[-1])}),
            "extracted_triples": triples,
        }
        for text, triples in passages.items()
    ]
    Path(rag.openie_results_path).write_text(json.dumps({"docs": docs}), encoding="utf-8")


def key_of(content: str, namespace: str) -> str:
    """Return HippoRAG's key of a text, a name or a fact."""
    return f"{namespace}-{hashlib.md5(content.encode()).hexdigest()}"
