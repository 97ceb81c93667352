"""PostgreSQL with pgvector: a source, a follower of its changes, and scores written to a table (extra ``postgres``)."""

from .connection import TransientError
from .follow import PostgresFollower
from .followable import drop_slot, followed
from .source import PostgresSource, open_place, write_hits

__all__ = ["PostgresFollower", "PostgresSource", "TransientError", "drop_slot", "followed", "open_place", "write_hits"]
