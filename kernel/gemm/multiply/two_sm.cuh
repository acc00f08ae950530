// Part 6. two_sm: the MMA of a pair, 256 rows of D, of which each CTA has half.
//
// Its descriptors and TMEM addresses are those of the leader and hold in both CTAs.
#pragma once
#include "one_sm.cuh"

using TwoSm = Umma<Mxf4nvf4<2>>;
