"""Write all that follows from where hopfuse is published: links, badges, and the address in CITATION.cff.

``[tool.hopfuse] repository`` of pyproject.toml is the only place that states it; it is empty until then.

``python .ci/publish_links.py`` writes ``[project.urls]``, README's badges and CITATION.cff's ``repository-code``, or
removes them. ``python .ci/publish_links.py release TAG --at URL`` prepares a checkout for its distributions. It refuses
a tag that is not the version's, a changelog without its date, and an address other than the one where the workflow
runs. Then it makes README's links absolute, since the page of a package index has no other files.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What no address of a project has, but a template.
PLACEHOLDER = re.compile(r"\b(?:example|placeholder|your|owner|todo|fixme)\b", re.IGNORECASE)
ADDRESS = re.compile(r"https://(?P<host>[\w.-]+\.\w+)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)")
#: A link to a file: not to another site, an anchor or an address of mail.
FILE = r"(?P<target>(?![a-z]+:|#)[^)\s\"]+)"
#: Images before links, since a link may hold an image.
LINKS = {
    "raw": re.compile(rf"(?P<before>!\[[^\]]*\]\(|\b(?:src|srcset)=\"){FILE}"),
    "blob": re.compile(rf"(?P<before>\]\(|\bhref=\"){FILE}"),
}
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def stated(root: Path) -> str:
    """Return the address that pyproject.toml states; empty before the project is published."""
    tools = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return str(tools["hopfuse"]["repository"])


def checked(address: str) -> re.Match[str]:
    """Return the parts of an address, unless it is none or a placeholder."""
    found = ADDRESS.fullmatch(address)
    if found is None or address.endswith(".git") or PLACEHOLDER.search(address):
        raise SystemExit(
            f"[tool.hopfuse] repository of pyproject.toml is {address!r}; it must be the address of the repository in "
            "which hopfuse is published, https://HOST/OWNER/NAME"
        )
    return found


def site(address: str) -> str:
    """Return the address of the documentation: GitHub Pages, or the pages of docs/ in the repository."""
    parts = checked(address)
    if parts["host"] == "github.com":
        return f"https://{parts['owner'].lower()}.github.io/{parts['name']}/"
    return f"{address}/tree/main/docs"


# ---- What the checkout states ----------------------------------------------------------------------------------------


def urls(address: str) -> list[str]:
    """Return the lines of ``[project.urls]``."""
    links = {
        "Repository": address,
        "Documentation": site(address),
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    return ["[project.urls]", *(f'{name} = "{link}"' for name, link in links.items())]


def badges(address: str) -> list[str]:
    """Return the lines of README's badges."""
    runs = f"{address}/actions/workflows"
    index = "https://pypi.org/project/hopfuse/"
    return [
        f"[![PyPI](https://img.shields.io/pypi/v/hopfuse)]({index})",
        f"[![Python](https://img.shields.io/pypi/pyversions/hopfuse)]({index})",
        f"[![ci]({runs}/ci.yml/badge.svg)]({runs}/ci.yml)",
        f"[![nightly]({runs}/nightly.yml/badge.svg)]({runs}/nightly.yml)",
    ]


def citation(address: str) -> list[str]:
    """Return the line of CITATION.cff."""
    return [f'repository-code: "{address}"']


#: For each file the lines that follow from the address, and the marks around them.
WRITTEN: dict[str, tuple[Callable[[str], list[str]], str, str]] = {
    "pyproject.toml": (urls, "# urls: python .ci/publish_links.py\n", "# end of urls\n"),
    "README.md": (badges, "<!-- badges: python .ci/publish_links.py -->\n", "<!-- end of badges -->\n"),
    "CITATION.cff": (citation, "# address: python .ci/publish_links.py\n", "# end of address\n"),
}


def current(root: Path, name: str) -> str:
    """Return a file of the checkout as it should be."""
    lines, begin, end = WRITTEN[name]
    text = (root / name).read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{name} must have the lines {begin.strip()!r} and {end.strip()!r} once")
    address = stated(root)
    if address:
        checked(address)
    before, _, rest = text.partition(begin)
    inside = "".join(f"{line}\n" for line in lines(address)) if address else ""
    return before + begin + inside + end + rest.partition(end)[2]


def write(root: Path) -> None:
    """Write what follows from the address into the checkout."""
    for name in WRITTEN:
        (root / name).write_text(current(root, name), encoding="utf-8")


# ---- A release -------------------------------------------------------------------------------------------------------


def check_release(root: Path, tag: str, at: str) -> None:
    """Refuse a release whose tag, changelog or address is not right."""
    address = stated(root)
    checked(address)
    if address != at:
        raise SystemExit(f"[tool.hopfuse] repository of pyproject.toml is {address}, but this is {at}")
    (version,) = re.findall(
        r'^__version__ = "(.*)"$', (root / "python/hopfuse/__init__.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, but the version is {version}; its tag is v{version}")
    entry = rf"^## \[{re.escape(version)}\] - 20\d\d-\d\d-\d\d$"
    if not re.search(entry, (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        raise SystemExit(f"CHANGELOG.md has no dated entry of the release: ## [{version}] - YYYY-MM-DD")
    stale = [name for name in WRITTEN if current(root, name) != (root / name).read_text(encoding="utf-8")]
    if stale:
        raise SystemExit(f"{', '.join(stale)} must follow from the address: run python .ci/publish_links.py")


def absolute(text: str, root: Path, address: str, tag: str) -> str:
    """Return a page of the root folder with links to the files of a tag."""

    def replaced(part: str, kind: str) -> str:
        def link(found: re.Match[str]) -> str:
            path, _, anchor = found["target"].partition("#")
            if not (root / path).exists():
                raise SystemExit(f"README.md links to {path}, which does not exist")
            room = "tree" if (root / path).is_dir() else kind
            return f"{found['before']}{address}/{room}/{tag}/{path}" + (f"#{anchor}" if anchor else "")

        return LINKS[kind].sub(link, part)

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else replaced(replaced(part, "raw"), "blob") for part in parts)


def release(root: Path, tag: str, at: str) -> None:
    """Check a release, and make the links of its page absolute."""
    check_release(root, tag, at)
    readme = root / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8"), root, at, tag), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Write into the checkout, or prepare a release."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    of_release = commands.add_parser("release", help="check a release and make README's links absolute")
    of_release.add_argument("tag")
    of_release.add_argument("--at", required=True, metavar="URL", help="the address where the release is made")
    given = parser.parse_args(arguments)
    if given.command == "release":
        release(ROOT, given.tag, given.at)
    else:
        write(ROOT)


if __name__ == "__main__":
    main()
