"""The page at ``/``: one file, whose policy lets a browser run nothing but what it holds."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import httpx
from hopfuse.serve import new_key
from serve.served import configured, running


class Parts(HTMLParser):
    """Elements with their attributes, and what stands in scripts and styles."""

    def __init__(self):
        super().__init__()
        self.tags, self.inside, self._open = [], {"script": [], "style": []}, None

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data):
        if self._open in self.inside:
            self.inside[self._open].append(data)

    def handle_endtag(self, tag):
        self._open = None


def read(text):
    parts = Parts()
    parts.feed(text)
    return parts


def test_the_policy_allows_what_the_file_holds_and_nothing_else(client):
    answer = client.get("/").raise_for_status()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = dict(one.split(" ", 1) for one in answer.headers["content-security-policy"].split("; "))
    parts = read(answer.text)
    for name in ("script", "style"):
        (own,) = parts.inside[name]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert policy[f"{name}-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_the_file_needs_nothing_from_elsewhere(client):
    text = client.get("/").text
    assert set(re.findall(r"\w+://[^\s\"'`]+", text)) == {"http://www.w3.org/2000/svg"}
    for tag, attributes in read(text).tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset")], tag
        assert attributes.get("href", "data:").startswith("data:")
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Storage", "cookie"):
        assert name not in text


def test_each_field_has_a_name(client):
    tags = read(client.get("/").text).tags
    labelled = {attributes["for"] for tag, attributes in tags if tag == "label"}
    fields = [attributes for tag, attributes in tags if tag in ("input", "select", "textarea")]
    assert len(fields) == 9
    assert [one["id"] for one in fields if one["id"] not in labelled and "aria-label" not in one] == []


def test_the_page_needs_no_key_and_no_other_site_may_embed_it(path):
    _, digest = new_key()
    with running(configured(path, keys={"a": {"sha256": digest}})) as url:
        assert httpx.get(url).status_code == 200
        assert httpx.get(url, headers={"Origin": "https://evil.example"}).status_code == 403
        assert httpx.get(f"{url}/v1/indexes").status_code == 401
