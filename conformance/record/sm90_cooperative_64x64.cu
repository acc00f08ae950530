// Document 001's second example: subtiles of 64 x 64 with a cooperative schedule.

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/thread/activation.h>

using namespace cute;

using Fusion = cutlass::epilogue::fusion::LinCombEltAct<
    cutlass::epilogue::thread::ReLu, cutlass::half_t, float, void, float>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
    Shape<_128, _256, _64>, Shape<_2, _1, _1>, Shape<_64, _64>, float, float,
    void, cutlass::layout::RowMajor, 8,
    cutlass::half_t, cutlass::layout::RowMajor, 16,
    cutlass::epilogue::TmaWarpSpecializedCooperative, Fusion>::CollectiveOp;

int main() { return int(sizeof(Epilogue::SharedStorage) == 0); }
