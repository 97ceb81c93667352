"""Run the ``hopfuse`` command as ``python -m hopfuse``."""

from .cli import main

if __name__ == "__main__":
    main()
