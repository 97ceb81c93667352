"""Links to where hopfuse is published follow from one address, which a release refuses if it is empty or invented."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import hopfuse as hf
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))

import publish_links
from publish_links import ROOT, WRITTEN

TAG = f"v{hf.__version__}"
#: An address for these tests, in a domain that is reserved for them.
ADDRESS = "https://code.test/somebody/hopfuse"
GITHUB = "https://github.com/Somebody/hopfuse"


def state(root: Path, address: str) -> None:
    """State an address in a copy of the checkout."""
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    text, count = re.subn(r'^repository = ".*"$', f'repository = "{address}"', project, flags=re.MULTILINE)
    assert count == 1
    (root / "pyproject.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what README links to, with an address from which everything follows."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name in (
        "README.md",
        "pyproject.toml",
        "CITATION.cff",
        "CHANGELOG.md",
        "LICENSE",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ):
        shutil.copy(ROOT / name, root)
    for folder in ("docs", "examples", "python", "bench", "experiments", "kernels", ".github"):
        (root / folder).symlink_to(ROOT / folder)
    state(root, ADDRESS)
    publish_links.write(root)
    return root


def test_the_checkout_is_current() -> None:
    stale = [name for name in WRITTEN if publish_links.current(ROOT, name) != (ROOT / name).read_text(encoding="utf-8")]
    assert stale == [], "run: python .ci/publish_links.py"


def test_no_page_has_an_address_of_its_own() -> None:
    """Only what the script writes leads to a repository or to pages of hopfuse."""
    address = publish_links.stated(ROOT)
    ours = (address, publish_links.site(address)) if address else ()
    pages = [
        path for path in (*ROOT.glob("*.*"), *(ROOT / "docs").rglob("*.md")) if path.suffix in (".md", ".cff", ".toml")
    ]
    assert len(pages) > 30
    hosts = (
        r"https://[\w.-]*(?:github\.(?:com|io)|gitlab\.com|codeberg\.org|readthedocs\.io)[^\s)\"'>]*hopfuse[^\s)\"'>]*"
    )
    found = {path.name: re.findall(hosts, path.read_text(encoding="utf-8"), re.IGNORECASE) for path in pages}
    assert {
        name: links for name, links in found.items() if [one for one in links if not one.startswith(ours or "-")]
    } == {}


def test_everything_follows_from_the_address(checkout: Path) -> None:
    for name in WRITTEN:
        assert ADDRESS in (checkout / name).read_text(encoding="utf-8"), name
    state(checkout, "")
    publish_links.write(checkout)
    assert not [name for name in WRITTEN if "code.test" in (checkout / name).read_text(encoding="utf-8")]


def test_the_documentation_of_a_repository_on_github_is_its_pages() -> None:
    assert publish_links.site(GITHUB) == "https://somebody.github.io/hopfuse/"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "hopfuse",
        "http://code.test/somebody/hopfuse",
        "https://code.test/hopfuse",
        f"{ADDRESS}/",
        f"{ADDRESS}.git",
        "https://github.com/OWNER/hopfuse",
        "https://github.com/your-org/hopfuse",
        "https://github.com/<somebody>/hopfuse",
        "https://example.com/somebody/hopfuse",
    ],
)
def test_a_release_refuses_an_empty_address_and_a_placeholder(checkout: Path, address: str) -> None:
    state(checkout, address)
    with pytest.raises(SystemExit, match=r"repository of pyproject\.toml"):
        publish_links.release(checkout, TAG, address)


def test_a_release_refuses_another_address_than_its_own(checkout: Path) -> None:
    with pytest.raises(SystemExit, match=f"is {ADDRESS}, but this is {GITHUB}"):
        publish_links.release(checkout, TAG, GITHUB)


def test_a_release_refuses_another_tag_and_an_entry_without_a_date(checkout: Path) -> None:
    with pytest.raises(SystemExit, match=re.escape(f"its tag is {TAG}")):
        publish_links.release(checkout, "v99.0", ADDRESS)
    log = checkout / "CHANGELOG.md"
    dated = log.read_text(encoding="utf-8")
    log.write_text(re.sub(r"(## \[[\d.]+\]) - \S+", r"\1", dated), encoding="utf-8")
    with pytest.raises(SystemExit, match="no dated entry"):
        publish_links.release(checkout, TAG, ADDRESS)


def test_a_release_refuses_links_that_do_not_follow_from_the_address(checkout: Path) -> None:
    shutil.copy(ROOT / "CITATION.cff", checkout)
    with pytest.raises(SystemExit, match=r"CITATION\.cff must follow"):
        publish_links.release(checkout, TAG, ADDRESS)


def test_the_page_of_a_release_has_no_relative_links(checkout: Path) -> None:
    before = (checkout / "README.md").read_text(encoding="utf-8")
    publish_links.release(checkout, TAG, ADDRESS)
    after = (checkout / "README.md").read_text(encoding="utf-8")
    outside = "".join(publish_links.FENCE.split(after)[::2])
    targets = [*re.findall(r"\]\(([^)\s]+)", outside), *re.findall(r'(?:href|src|srcset)="([^"]+)"', outside)]
    assert len(targets) > 40
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert f"({ADDRESS}/blob/{TAG}/docs/start.md)" in after
    assert re.search(rf"[(\"]{ADDRESS}/raw/{TAG}/docs/[\w/-]+\.(png|svg)[)\"]", after)
    own = [target for target in targets if target.startswith(ADDRESS) and f"/{TAG}/" in target]
    assert [one for one in own if not (ROOT / one.partition(f"/{TAG}/")[2].partition("#")[0]).exists()] == []
    publish_links.release(checkout, TAG, ADDRESS)  # a second time changes nothing
    assert (checkout / "README.md").read_text(encoding="utf-8") == after
    assert publish_links.FENCE.findall(before) == publish_links.FENCE.findall(after)


def test_links_of_each_form() -> None:
    text = "[a](docs/start.md#x) ![b](docs/page.png) [![c](docs/page.png)](docs) [d](#here) [e](https://x.test) `f`\n"
    text += '<a href="LICENSE"><img src="docs/page.png"></a>\n```md\n[g](docs/start.md)\n```\n'
    to = f"{ADDRESS}/{{}}/v1"
    assert publish_links.absolute(text, ROOT, ADDRESS, "v1") == (
        f"[a]({to}/docs/start.md#x) ![b]({to}/docs/page.png) [![c]({to}/docs/page.png)]({to}/docs) [d](#here) "
        f'[e](https://x.test) `f`\n<a href="{to}/LICENSE"><img src="{to}/docs/page.png"></a>\n'
        "```md\n[g](docs/start.md)\n```\n"
    ).format("blob", "raw", "raw", "tree", "blob", "raw")
    with pytest.raises(SystemExit, match=r"docs/none\.md"):
        publish_links.absolute("[a](docs/none.md)", ROOT, ADDRESS, "v1")


def test_the_metadata_of_a_release_has_the_links(checkout: Path, tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="the build backend is not installed")
    publish_links.release(checkout, TAG, ADDRESS)
    code = "import sys; from scikit_build_core import build; build.prepare_metadata_for_build_wheel(sys.argv[1])"
    made = tmp_path / "metadata"
    subprocess.run([sys.executable, "-c", code, made], cwd=checkout, check=True, capture_output=True, env=os.environ)
    (path,) = made.glob("*/METADATA")
    metadata = email.message_from_string(path.read_text(encoding="utf-8"))
    urls = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Repository", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(ADDRESS) for url in urls.values())
    assert f"{ADDRESS}/blob/{TAG}/docs/start.md" in str(metadata.get_payload())
