"""``python -m hopfuse`` is the command ``hopfuse``."""

from .cli import main

if __name__ == "__main__":
    main()
