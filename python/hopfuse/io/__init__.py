"""Read and write files: tables, JSON Lines, arrays, queries, judgements and runs. Errors name the file and the line.

May import ``types``; pyarrow is imported when it is used.
"""
