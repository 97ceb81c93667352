"""Arrays: of other libraries, bfloat16, memory maps, compressed rows, filters."""
