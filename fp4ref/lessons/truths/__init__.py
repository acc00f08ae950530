"""truths: what is so, computed, for each entry of ``data/errata.toml``.

One module for each Part of document 000, one for each other document. A function takes
nothing and returns the value that is so, from the kernel's configuration, a run's
trace, the packaged PTX, or the document's own figures put together.
"""
