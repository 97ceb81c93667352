"""Read and write files: tables, JSON Lines, arrays, queries, judgements and runs. Errors name the file and the line.

May import ``types``; pyarrow is imported when it is used.
"""

from .files import create_exclusively, read_npy, read_text, write_all, write_whole
from .json_lines import json_objects, line_blocks, numbered_lines, parse_json, text_lines
from .parquet import MOST_GROUP_BYTES
from .queries import Query, QueryRows, count_queries, query_file, read_queries
from .runs import read_run_file

__all__ = [
    "MOST_GROUP_BYTES",
    "Query",
    "QueryRows",
    "count_queries",
    "create_exclusively",
    "json_objects",
    "line_blocks",
    "numbered_lines",
    "parse_json",
    "query_file",
    "read_npy",
    "read_queries",
    "read_run_file",
    "read_text",
    "text_lines",
    "write_all",
    "write_whole",
]
