"""Haystack's own tests of document stores, over a directory that has no index yet."""

from __future__ import annotations

import pytest

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("haystack", reason="the adapter needs haystack-ai (extra haystack)")

from dataclasses import replace

from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.testing.document_store import (
    CountDocumentsByFilterTest,
    DeleteAllTest,
    DeleteByFilterTest,
    DocumentStoreBaseTests,
)
from hopfuse.adapters.haystack import HopfuseDocumentStore

TYPES = {"category": "string", "status": "string", "year": "int64"}


class TestHopfuseDocumentStore(DocumentStoreBaseTests, DeleteAllTest, DeleteByFilterTest, CountDocumentsByFilterTest):
    """The suite; embeddings are not returned."""

    # Of an argument that the store does not have.
    test_delete_all_documents_without_recreate_index = None
    test_delete_all_documents_with_recreate_index = None

    @pytest.fixture
    def document_store(self, tmp_path):
        store = HopfuseDocumentStore(tmp_path / "memory", create={"metadata_types": TYPES})
        yield store
        store.close()

    @staticmethod
    def assert_documents_are_equal(received, expected):
        assert received == [replace(one, embedding=None) for one in expected]

    def test_write_documents(self, document_store):
        documents = [Document(content="one"), Document(content="two")]
        assert document_store.write_documents(documents) == 2
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents(documents)
