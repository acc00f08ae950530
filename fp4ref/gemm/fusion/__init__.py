"""fusion: the nodes of which an epilogue's formula is made.

A formula is a tree of nodes; ``repr`` of a tree is its C++ type. Each node is one file
here and one in ``kernel/gemm/fusion``, and is found by its file.
"""
