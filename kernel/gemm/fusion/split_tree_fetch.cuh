// split_tree_fetch: the value that a branch shares with the tree.
#pragma once
#include "node.cuh"

struct SplitTreeFetch : Leaf {
    __device__ __forceinline__ float visit(const Visit& v) { return v.shared; }
};
