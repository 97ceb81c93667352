"""The commands that judge runs: ``eval`` and ``sweep``."""
