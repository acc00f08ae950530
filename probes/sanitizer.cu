// sanitizer: small wrong kernels, each with its right twin, for NVIDIA's compute-sanitizer.
#include <cstdio>
#include <cstring>
#include "probe.cuh"

extern "C" __global__ void last_word(const u32* in, u32* out) { out[0] = in[30]; }
extern "C" __global__ void past_the_end(const u32* in, u32* out) { out[0] = in[31]; }

extern "C" __global__ void never_written(const u32* in, u32* out) { out[0] = out[1]; }

__device__ inline void copy(u32 at, const u32* in) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in) : "memory");
}

extern "C" __global__ void copy_waited_for(const u32* in, u32* out) {
    u32 at = dynamic_base() + 16 * lane_id();
    copy(at, in);
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[lane_id()] = ld_shared(at);
}

extern "C" __global__ void copy_not_waited_for(const u32* in, u32* out) {
    u32 at = dynamic_base() + 16 * lane_id();
    copy(at, in);
    out[lane_id()] = ld_shared(at);
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// Lane 0 of warp 0 stores; another lane of its warp, or itself, arrives for warp 1.
template <u32 LANE>
__device__ void arrival(u32* out) {
    u32 mbar = dynamic_base(), at = mbar + 16;
    if (threadIdx.x == 0) mbarrier_init(mbar, 1);
    __syncthreads();
    if (threadIdx.x == 0) st_shared(at, 7);
    if (threadIdx.x == LANE)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbar) : "memory");
    if (threadIdx.x == 32) {
        mbarrier_poll(mbar, 0);
        out[0] = ld_shared(at);
    }
}
extern "C" __global__ void own_arrival(const u32* in, u32* out) { arrival<0>(out); }
extern "C" __global__ void arrival_of_another(const u32* in, u32* out) { arrival<1>(out); }

extern "C" __global__ void used_before_init(const u32* in, u32* out) {
    if (threadIdx.x == 0) mbarrier_init(dynamic_base(), 1);
    if (threadIdx.x == 32) {
        asm volatile("nanosleep.u32 100000;" ::: "memory");
        out[0] = mbarrier_test_wait(dynamic_base(), 0);
    }
}

extern "C" __global__ void lanes_in_step(const u32* in, u32* out) {
    u32 at = dynamic_base();
    st_shared(at + 4 * lane_id(), lane_id());
    __syncwarp();
    out[lane_id()] = ld_shared(at + 4 * (lane_id() ^ 1));
}

extern "C" __global__ void lanes_alone(const u32* in, u32* out) {
    u32 at = dynamic_base();
    st_shared(at + 4 * lane_id(), lane_id());
    out[lane_id()] = ld_shared(at + 4 * (lane_id() ^ 1));
}

// One mbarrier, initialised again while it is live, or after it was ended.
template <bool ENDED>
__device__ void initialised_again(u32* out) {
    u32 mbar = dynamic_base();
    if (threadIdx.x == 0) {
        mbarrier_init(mbar, 2);
        if (ENDED) mbarrier_inval(mbar);
        mbarrier_init(mbar, 1);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbar) : "memory");
        out[0] = mbarrier_poll(mbar, 0);
    }
}
extern "C" __global__ void init_twice(const u32* in, u32* out) { initialised_again<false>(out); }
extern "C" __global__ void init_after_inval(const u32* in, u32* out) { initialised_again<true>(out); }

// A thread arrives on 8 bytes that never were an mbarrier.
extern "C" __global__ void never_initialised(const u32* in, u32* out) {
    u32 mbar = dynamic_base();
    if (threadIdx.x == 0) {
        st_shared(mbar, 0);
        st_shared(mbar + 4, 0);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbar) : "memory");
        out[0] = 1;
    }
}

// Bytes are expected, and the CTA exits; or none are.
template <u32 NBYTES>
__device__ void expected(u32* out) {
    u32 mbar = dynamic_base();
    if (threadIdx.x == 0) {
        mbarrier_init(mbar, 1);
        mbarrier_arrive_expect_tx(mbar, NBYTES);
        out[0] = mbarrier_test_wait(mbar, 0);
    }
}
extern "C" __global__ void bytes_expected(const u32* in, u32* out) { expected<16>(out); }
extern "C" __global__ void none_expected(const u32* in, u32* out) { expected<0>(out); }

// A bulk copy reads what the same thread has written, with and without a proxy fence.
template <bool FENCED>
__device__ void stored(u32* out) {
    u32 at = dynamic_base();
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < 4; ++i) st_shared(at + 4 * i, i);
        if (FENCED) fence_proxy_async();
        asm volatile(
            "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n"
            "cp.async.bulk.commit_group;\n"
            "cp.async.bulk.wait_group 0;" ::"l"(out), "r"(at)
            : "memory");
    }
}
extern "C" __global__ void store_fenced(const u32* in, u32* out) { stored<true>(out); }
extern "C" __global__ void store_unfenced(const u32* in, u32* out) { stored<false>(out); }

// The source of a bulk copy is written again, after the wait or before.
template <bool WAITED>
__device__ void source_again(u32* out) {
    u32 at = dynamic_base();
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < 4; ++i) st_shared(at + 4 * i, i);
        fence_proxy_async();
        asm volatile(
            "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n"
            "cp.async.bulk.commit_group;" ::"l"(out), "r"(at)
            : "memory");
        if (WAITED) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        st_shared(at, 7);
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
extern "C" __global__ void source_waited_for(const u32* in, u32* out) { source_again<true>(out); }
extern "C" __global__ void source_too_early(const u32* in, u32* out) { source_again<false>(out); }

// As all probes are launched: 126 bytes in, written, and 256 out, not written.
#define CASE(NAME)                                                                             \
    if (!std::strcmp(argv[1], #NAME)) NAME<<<1, argv[2][0] == '2' ? 64 : 32, 1024>>>(in, out);
int main(int, char** argv) {
    u32 *in, *out;
    cudaMalloc(&in, 126);
    cudaMalloc(&out, 256);
    cudaMemset(in, 1, 126);
    CASE(last_word)
    CASE(past_the_end)
    CASE(never_written)
    CASE(copy_waited_for)
    CASE(copy_not_waited_for)
    CASE(own_arrival)
    CASE(arrival_of_another)
    CASE(used_before_init)
    CASE(lanes_in_step)
    CASE(lanes_alone)
    CASE(init_twice)
    CASE(init_after_inval)
    CASE(never_initialised)
    CASE(bytes_expected)
    CASE(none_expected)
    CASE(store_fenced)
    CASE(store_unfenced)
    CASE(source_waited_for)
    CASE(source_too_early)
    std::printf("status %d\n", int(cudaDeviceSynchronize()));
}
