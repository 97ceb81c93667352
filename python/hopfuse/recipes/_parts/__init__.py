"""Parts that recipes share: reading questions, seeds, filters, legs. Imports ops, index and types, never a recipe."""
