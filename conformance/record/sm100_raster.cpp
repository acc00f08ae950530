// Which tile CUTLASS's scheduler gives each CTA, on 50 grids. A line is what is asked, "=" and
// for each CTA of the launch, x fastest, the tile's M and N. Host code only.
//
// Asked: tiles along M and N, M and N of the cluster, the swizzle's size (0 without) and the
// raster's dimension.

#include <cstdint>
#include <cstdio>

#include "kernel_words.h"

#include <cutlass/cutlass.h>
#include <cute/tensor.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>

using namespace cute;
using Cluster = Shape<int, int, _1>;
using Scheduler = cutlass::gemm::kernel::detail::PersistentTileSchedulerSm100<Cluster, 2>;
using Order = Scheduler::RasterOrderOptions;

void grid(int tiles_m, int tiles_n, int cluster_m, int cluster_n, int swizzle, bool along_m) {
  cutlass::KernelHardwareInfo hardware;
  hardware.cluster_shape = dim3(cluster_m, cluster_n, 1);
  const auto problem = make_shape(tiles_m, tiles_n, 1, 1);
  const auto tile = Shape<_1, _1, _1>{};
  const Cluster cluster{cluster_m, cluster_n, _1{}};
  Scheduler::Arguments arguments{swizzle, along_m ? Order::AlongM : Order::AlongN};
  const auto params =
      Scheduler::to_underlying_arguments(problem, tile, cluster, hardware, arguments);
  gridDim = Scheduler::get_grid_shape(params, problem, tile, cluster, hardware, arguments);
  std::printf("%d %d %d %d %d %c =", tiles_m, tiles_n, cluster_m, cluster_n,
              int(params.divmod_swizzle_size_.divisor), along_m ? 'm' : 'n');
  for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
      const auto work = Scheduler(params).initial_work_tile_info(cluster);
      std::printf(" %d, %d,", work.M_idx, work.N_idx);
    }
  }
  std::printf("\n");
}

int main() {
  const int shapes[5][2] = {{1, 1}, {2, 5}, {7, 3}, {8, 8}, {13, 9}};
  const int clusters[5][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 2}};
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) {
      for (int raster = 0; raster < 2; ++raster) {
        grid(shapes[i][0], shapes[i][1], clusters[j][0], clusters[j][1], 1 << (i + j) % 4, raster);
      }
    }
  }
  return 0;
}
