"""PostgreSQL with pgvector: a source, a follower of its changes, and scores written to a table (extra ``postgres``)."""

from .connection import TransientError
from .follow import PostgresFollower
from .followable import drop_slot, failures_of, followed
from .hits import check_hits_table, write_hits, write_rankings
from .source import PostgresSource, open_place

__all__ = [
    "PostgresFollower",
    "PostgresSource",
    "TransientError",
    "check_hits_table",
    "drop_slot",
    "failures_of",
    "followed",
    "open_place",
    "write_hits",
    "write_rankings",
]
