"""Parts that recipes share: configs, questions, seeds, filters, lexical lists, traces. They import no recipe."""
