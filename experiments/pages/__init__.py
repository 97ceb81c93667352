"""The pages and tables of docs/ about retrieval quality, written from the recorded results alone."""
