"""A LlamaIndex embedding model as an encoder."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from ...encoders.protocol import NamedEncoder


class LlamaIndexEncoder(NamedEncoder):
    """A LlamaIndex embedding model as an encoder of questions and passages.

    Questions are encoded one by one by ``get_query_embedding``, passages in batches by ``get_text_embedding_batch``.

    Parameters
    ----------
    embed_model : BaseEmbedding
    dim : int, optional
        By default the length of the vector of a text.
    name : str, optional
        By default the model's name.
    normalize : bool
        Scale every row to length 1, in float64, and round to float32.

    Examples
    --------
    >>> from hopfuse.adapters.llama_index import LlamaIndexEncoder
    >>> from llama_index.core import MockEmbedding
    >>> LlamaIndexEncoder(MockEmbedding(embed_dim=4)).encode_queries(["who?"])
    array([[0.5, 0.5, 0.5, 0.5]], dtype=float32)
    """

    def __init__(
        self, embed_model: BaseEmbedding, *, dim: int | None = None, name: str | None = None, normalize: bool = True
    ) -> None:
        self._model = embed_model
        width = len(embed_model.get_query_embedding("dimension")) if dim is None else dim
        super().__init__(name or f"llama-index/{embed_model.model_name}", width, normalize)

    def _vectors(self, texts: list[str], of_passages: bool) -> Any:
        if of_passages:
            return self._model.get_text_embedding_batch(texts)
        return [self._model.get_query_embedding(text) for text in texts]
