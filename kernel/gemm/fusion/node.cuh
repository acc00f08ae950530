// fusion: the nodes of which an epilogue's formula is made.
//
// A node is a type; a formula is a tree of them. previsit() runs once for a subtile and loads
// what the node needs; visit() gives the node's value of one element.
#pragma once
#include "../epilogue/epilogue_state.cuh"

// One element of a row.
struct Visit {
    const GemmParams& params;
    float acc;
    u32 column;  // of the subtile, or the number of the register
};

// A node that loads nothing.
struct Leaf {
    __device__ __forceinline__ void previsit(Epilogue&, WorkTile, u32) {}
};

template <class A>
struct Unary {
    A a;

    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        a.previsit(e, work, subtile);
    }
};

template <class A, class B>
struct Binary {
    A a;
    B b;

    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        a.previsit(e, work, subtile);
        b.previsit(e, work, subtile);
    }
};

template <class A, class B, class C>
struct Ternary {
    A a;
    B b;
    C c;

    __device__ __forceinline__ void previsit(Epilogue& e, WorkTile work, u32 subtile) {
        a.previsit(e, work, subtile);
        b.previsit(e, work, subtile);
        c.previsit(e, work, subtile);
    }
};
