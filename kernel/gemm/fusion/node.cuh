// fusion: the nodes of which an epilogue's formula is made.
//
// A node is a type; a formula is a tree of them. visit() gives the node's value of one element.
// The other callbacks are called around it, in the order of CUTLASS's collective; a node hides
// those that it needs, and its inputs are called before it.
#pragma once
#include "../epilogue/epilogue_state.cuh"

// One element of a row.
struct Visit {
    const GemmParams& params;
    float acc;
    u32 column;   // of the subtile, or the number of the register
    bool inside;  // whether it is one of D
    float shared = 0.0f;  // what a branch takes from the tree
};

// What a node does when it is called: nothing.
struct Node {
    __device__ __forceinline__ void begin(Epilogue&, WorkTile) {}
    __device__ __forceinline__ void begin_loop(Epilogue&, WorkTile, u32) {}
    __device__ __forceinline__ void previsit(Epilogue&, WorkTile, u32) {}
    __device__ __forceinline__ void reduce(Epilogue&, WorkTile, u32) {}
    __device__ __forceinline__ void postreduce(Epilogue&, WorkTile, u32) {}
    __device__ __forceinline__ void tma_store(Epilogue&, WorkTile, u32) {}
    __device__ __forceinline__ void end_loop(Epilogue&, WorkTile, u32) {}
    __device__ __forceinline__ void end(Epilogue&, WorkTile) {}

    // Of the epilogue load warp.
    __device__ __forceinline__ void load_begin(const SharedStorage&, WorkTile) {}
    __device__ __forceinline__ void load_step(const SharedStorage&, WorkTile, u32, Stage) {}
    __device__ __forceinline__ void load_end(const SharedStorage&, WorkTile) {}
};

// A node without inputs.
struct Leaf : Node {
    template <class Call>
    __device__ __forceinline__ void walk_inputs(Call) {}
};

template <class A>
struct Unary : Node {
    A a;

    template <class Call>
    __device__ __forceinline__ void walk_inputs(Call call) {
        walk(a, call);
    }
};

template <class A, class B>
struct Binary : Node {
    A a;
    B b;

    template <class Call>
    __device__ __forceinline__ void walk_inputs(Call call) {
        walk(a, call);
        walk(b, call);
    }
};

template <class A, class B, class C>
struct Ternary : Node {
    A a;
    B b;
    C c;

    template <class Call>
    __device__ __forceinline__ void walk_inputs(Call call) {
        walk(a, call);
        walk(b, call);
        walk(c, call);
    }
};

// Call every node below and then this one: the order of evaluation.
template <class T, class Call>
__device__ __forceinline__ void walk(T& node, Call call) {
    node.walk_inputs(call);
    call(node);
}
