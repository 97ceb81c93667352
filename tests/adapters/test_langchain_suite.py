"""LangChain's own tests of retrievers, over an index here and over ``hopfuse serve``, and of vector stores."""

from __future__ import annotations

import pytest

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("langchain_core", reason="the adapter needs langchain-core (extra langchain)")
pytest.importorskip("langchain_tests", reason="the suite is in langchain-tests")

from adapters.frameworks import QUESTIONS
from hopfuse.adapters.langchain import HopfuseRetriever, HopfuseVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests


class TestHopfuseRetriever(RetrieversIntegrationTests):
    """The suite, for each source."""

    @pytest.fixture(autouse=True)
    def _source(self, source, request):
        if request.config.getini("asyncio_mode") != "auto":
            pytest.skip("the suite has coroutines as tests: run it with -o asyncio_mode=auto")
        self._given = source

    @property
    def retriever_constructor(self):
        return HopfuseRetriever

    @property
    def retriever_constructor_params(self):
        return {"source": self._given, "k": 8}

    @property
    def retriever_query_example(self):
        return QUESTIONS[2]


class TestHopfuseVectorStore(VectorStoreIntegrationTests):
    """The suite, over a directory that has no index yet."""

    @pytest.fixture(autouse=True)
    def _mode(self, request):
        if request.config.getini("asyncio_mode") != "auto":
            pytest.skip("the suite has coroutines as tests: run it with -o asyncio_mode=auto")

    @pytest.fixture
    def vectorstore(self, tmp_path):
        store = HopfuseVectorStore(tmp_path / "memory", self.get_embeddings())
        yield store
        store.close()
