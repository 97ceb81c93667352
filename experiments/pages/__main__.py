"""``python -m experiments.pages``: write the pages and tables of docs/ about quality from experiments/results/."""

from __future__ import annotations

from .files import write


def main() -> None:
    for path in write():
        print(f"wrote docs/{path}")


if __name__ == "__main__":
    main()
