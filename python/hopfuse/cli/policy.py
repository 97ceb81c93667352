"""``hopfuse policy``: print or check a policy of PolicyRAG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from ..io.files import read_text, write_all
from ..recipes import Policy
from .options import FILE, Rule, check_rules
from .outputs import check_outputs

NEEDS: tuple[Rule, ...] = (("overwrite", "out", "the file to replace"),)
EXCLUDES: tuple[Rule, ...] = tuple((name, "check", "which only reads a file") for name in ("out", "paper"))


@click.command()
@click.option("--out", type=FILE, help="Write the policy here instead of printing it.")
@click.option("--paper", is_flag=True, help="The paper's policy (Policy.paper()) instead of the default one.")
@click.option("--check", "checked", type=FILE, help="Validate this file, and print its differences from the defaults.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --out if it exists.")
def policy(out: Path | None, paper: bool, checked: Path | None, overwrite: bool) -> None:
    """Print PolicyRAG's default policy, or check a policy file.

    A comment above each key explains it. An edited file needs only the keys that differ from the defaults.
    """
    given = {"overwrite": overwrite, "out": out, "paper": paper, "check": checked}
    check_rules(given, NEEDS, EXCLUDES)
    if checked is None:
        check_outputs({"out": out}, {}, overwrite=overwrite)
        text = (Policy.paper() if paper else Policy()).to_toml()
        if out is None:
            click.echo(text, nl=False)
        else:
            write_all({out: text})
        return
    rows = list(differences(read_policy(checked)))
    for name, value, default in rows:
        click.echo(f"{name} = {value!r}, by default {default!r}")
    click.echo(f"{checked} is a policy; {len(rows)} of its values differ from the defaults.")


def read_policy(path: Path | None) -> Policy:
    """Return the policy of a file, or the default one; errors name the file."""
    if path is None:
        return Policy()
    text = read_text(path, "policy")
    try:
        return Policy.from_toml(text)
    except InputError as error:
        raise error.at(path) from None


def differences(given: Policy) -> Iterator[tuple[str, Any, Any]]:
    """Yield key, value and default of each field that differs from :class:`Policy`.

    Examples
    --------
    >>> list(differences(Policy.from_toml("version = 1\\n[walk]\\ndamping = 0.75\\n[families]\\nkinship = 2.0")))
    [('walk.damping', 0.75, 0.85), ('families.kinship', 2.0, 1.0)]
    """
    plain = Policy()
    for part in fields(Policy):
        section, default = getattr(given, part.name), getattr(plain, part.name)
        if part.name == "families":
            yield from ((f"families.{name}", weight, 1.0) for name, weight in section.items() if weight != 1.0)
            continue
        for key in fields(section):
            value, usual = getattr(section, key.name), getattr(default, key.name)
            if value != usual:
                yield f"{part.name}.{key.name}", value, usual
