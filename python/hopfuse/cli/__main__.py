"""``python -m hopfuse.cli`` is the command ``hopfuse``."""

from . import main

if __name__ == "__main__":
    main()
