"""files: what comes from disk and goes there: whole, in words, within memory."""
