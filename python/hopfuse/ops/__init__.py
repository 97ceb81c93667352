"""The public operations, a module each: validate, hand to a backend, wrap."""
