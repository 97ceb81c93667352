"""Public operations: each validates its input, calls a backend and wraps the result.

May import ``backends``, ``fusion``, ``types``, ``errors``, the checks and ``_arrays``.
"""
