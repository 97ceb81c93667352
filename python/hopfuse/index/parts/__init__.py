"""The parts of an index: of each, its sections, how they are made, loaded, taken for some passages and described."""
