"""Array helpers: other libraries' arrays, bfloat16, memory maps, compressed rows, filters.

May import ``errors`` and the native module.
"""
