// recipes: how libraries quantise a block, step by step in float32; the rules of fp4ref.tensors.recipes.

const f32 = Math.fround;
const ONE_SIXTH = f32(1 / 6);
const FLT_MAX = 3.4028234663852886e38;

// Round a float32 to a format with fewer bits; `least` is the exponent of its subnormals.
function narrowed(x, bits, least, most) {
  if (!Number.isFinite(x) || x === 0) return x;
  const e = Math.max(((bitsOf(Math.abs(x)) >>> 23) & 0xff) - 127, least), unit = pow2(e - bits), n = x / unit, down = Math.floor(n);
  const even = n - down > 0.5 || (n - down === 0.5 && down % 2 !== 0) ? down + 1 : down;
  return Math.abs(even * unit) > most ? Math.sign(x) * Infinity : even * unit;
}
const NARROW = { float32: f32, float16: (x) => narrowed(f32(x), 10, -14, 65504), bfloat16: (x) => narrowed(f32(x), 7, -126, FLT_MAX) };

// rcp.approx.ftz.f32: the rounded quotient and an offset, which the packet has where it is needed.
function rcpApprox(x, offsets) {
  const bits = bitsOf(x);
  if (((bits >>> 23) & 0xff) === 0) return x < 0 ? -Infinity : Infinity;
  if (!Number.isFinite(x)) return Number.isNaN(x) ? NaN : 0;
  const near = bitsOf(f32(1 / x)) + (offsets[bits & 0x7fffff] ?? NaN);
  return ((near >>> 23) & 0xff) === 0 ? 0 : floatOf(near);
}

// A block is {z, amax, encode, decode, largest, range, scale, type, rcp}; a rule gives {wanted, scale, scaled, signed}.
const encodeScale = (b, x) => (b.scale === "UE8M0" ? encodeUe8m0(x) : encodeUe4m3(x));
const decodeScale = (b, code) => scaleValue(code, b.scale);
const times = (b, wanted, scale, factor) => ({ wanted, scale, scaled: b.z.map((v) => f32(v * factor)) });
const over = (b, wanted, scale, divisor) => ({ wanted, scale, scaled: b.z.map((v) => f32(v / divisor)), signed: true });
const servingScale = (b) => f32(b.encode * f32(b.amax * ONE_SIXTH));
const servingFactor = (b, scale) => rcpApprox(f32(scale * rcpApprox(b.encode, b.rcp)), b.rcp);

const RECIPE_RULES = {
  cutlass(b) {
    const wanted = f32(b.amax * f32(b.encode * ONE_SIXTH)), scale = encodeScale(b, wanted);
    return times(b, wanted, scale, Math.min(f32(b.encode * f32(1 / decodeScale(b, scale))), FLT_MAX));
  },
  transformer_engine(b) {
    const wanted = Math.min(f32(b.amax * f32(b.encode * ONE_SIXTH)), FLT_MAX);
    return multiplied(b, wanted);
  },
  trtllm(b) {
    const wanted = servingScale(b), scale = encodeScale(b, wanted);
    return times(b, wanted, scale, wanted !== 0 ? servingFactor(b, decodeScale(b, scale)) : 0);
  },
  flashinfer(b) {
    if (b.scale === "UE8M0") {
      const wanted = f32(b.amax * ONE_SIXTH), scale = encodeUe8m0(wanted);
      return times(b, wanted, scale, wanted === 0 ? 0 : scale === 0 ? 1 : f32(pow2(127 - scale)));
    }
    const wanted = servingScale(b), scale = encodeUe4m3(wanted);
    return times(b, wanted, scale, b.amax !== 0 ? servingFactor(b, decodeScale(b, scale)) : 0);
  },
  flashinfer_exact(b) {
    const wanted = f32(b.amax * f32(b.encode * ONE_SIXTH)), scale = encodeUe4m3(wanted);
    return times(b, wanted, scale, b.amax !== 0 ? f32(1 / f32(decodeScale(b, scale) * f32(1 / b.encode))) : 0);
  },
  vllm(b) {
    if (b.scale === "UE8M0") {
      const exponent = ((bitsOf(b.amax) + (1 << 21)) >>> 23) & 0xff, scale = Math.min(Math.max(exponent, 2) - 2, 254);
      return times(b, f32(b.amax * 0.25), scale, scale === 0 ? 0 : f32(1 / floatOf(scale << 23)));
    }
    const wanted = servingScale(b), scale = encodeUe4m3(wanted), decoded = decodeScale(b, scale);
    return times(b, wanted, scale, decoded !== 0 ? servingFactor(b, decoded) : 0);
  },
  torchao(b) {
    const wanted = Math.max(f32(f32(b.amax / 6) / b.decode), 2 ** -6), scale = encodeUe4m3(wanted);
    return times(b, wanted, scale, f32(f32(1 / b.decode) / decodeScale(b, scale)));
  },
  modelopt: (b) => divided(b, f32(b.amax / f32(6 * b.decode)) || 1),
  modelopt_static: (b) => divided(b, f32(f32((f32(b.amax / 6) || 1) * 448) / f32(f32(b.decode * 2688) / 6))),
  compressed_tensors(b) {
    const wanted = f32(b.encode * NARROW[b.type](f32(b.amax / 6))), scale = encodeUe4m3(wanted) || 0x20;
    return over(b, wanted, scale, f32(decodeScale(b, scale) / b.encode));
  },
  compressed_tensors_bf16(b) {
    const made = RECIPE_RULES.compressed_tensors(b);
    return { ...made, scaled: made.scaled.map(NARROW.bfloat16) };
  },
  mx_floor: (b) => mxBlock(b, (bits) => bits >>> 23),
  mx_even: (b) => mxBlock(b, (bits) => (bits + (1 << 21)) >>> 23),
  mx_ceil: (b) => mxBlock(b, (bits) => (bits >>> 23) + (bits & 0x7fffff ? 1 : 0), 255),
  mx_rceil(b) {
    const wanted = f32(b.amax * ONE_SIXTH), scale = encodeUe8m0(wanted);
    return times(b, wanted, scale, scaleValue(254 - scale, "UE8M0"));
  },
};
RECIPE_RULES.transformer_engine_2d = RECIPE_RULES.transformer_engine;
for (const measure of ["mae", "mse"])
  for (const range of [448, 256]) RECIPE_RULES[`four_over_six_${measure}_${range}_tie_six`] = (b) => fourOverSix(b, measure === "mse");

// TransformerEngine's factor.
function multiplied(b, wanted) {
  const scale = encodeUe4m3(wanted);
  return times(b, wanted, scale, Math.min(f32(1 / f32(decodeScale(b, scale) * b.decode)), FLT_MAX));
}
// Model Optimizer's.
function divided(b, unbounded) {
  const wanted = Math.max(unbounded, 2 ** -9), scale = encodeUe4m3(wanted);
  return over(b, wanted, scale, f32(decodeScale(b, scale) * b.decode));
}
function mxBlock(b, exponentOf, most = 254) {
  const exponent = exponentOf(bitsOf(b.amax)), scale = exponent > most ? 0xff : Math.max(exponent - 2, 0);
  return times(b, f32(b.amax * 0.25), scale, scaleValue(scale === 0xff ? scale : 254 - scale, "UE8M0"));
}
function fourOverSix(b, squares) {
  const base = f32(f32(b.amax / 6) * b.encode), denominator = f32(6 * b.range), largest = b.largest || f32(denominator / b.encode);
  const errorOf = (made) => made.scaled.reduce((sum, s, i) => {
    const decoded = f32(f32(f32((E2M1_HALVES[encodeE2m1(s)] / 2) * decodeScale(b, made.scale)) * largest) / denominator), off = f32(decoded - b.z[i]);
    return f32(sum + (squares ? f32(off * off) : Math.abs(off)));
  }, 0);
  const four = multiplied(b, f32(base * 1.5)), six = multiplied(b, base);
  return errorOf(four) < errorOf(six) ? four : six;
}

// Numbers in one way. `quantiser`: the packet's part; `power`: G times 2^power.
function quantiseWay(values, way, quantiser, power = 0) {
  const shift = pow2(power), z = values.map(NARROW[quantiser.type]), vec = way.vec, parts = [], scaled = [], codes = [];
  const given = { encode: f32(way.encode * (way.fixed ? 1 : shift)), decode: f32(way.decode / (way.fixed ? 1 : shift)), largest: way.largest / shift };
  for (let start = 0; start < z.length; start += vec) {
    const block = [...z.slice(start, start + vec), ...Array(Math.max(0, vec - z.length)).fill(0)];
    const b = { ...given, z: block, amax: block.reduce((a, v) => Math.max(a, Math.abs(v)), 0), range: way.range, scale: way.scale, type: quantiser.type, rcp: quantiser.rcp };
    const made = RECIPE_RULES[way.rule](b), decoded = scaleValue(made.scale, way.scale);
    parts.push({ amax: b.amax, wanted: made.wanted, scale: made.scale, decoded });
    for (const s of made.scaled.slice(0, z.length)) {
      const code = encodeE2m1(s);
      scaled.push(s);
      codes.push(made.signed ? (code & 7) | (s < 0 ? 8 : 0) : code);
    }
  }
  const back = codes.map((c, i) => f32(((E2M1_HALVES[c] / 2) * parts[Math.floor(i / vec)].decoded) / given.encode));
  const lost = back.reduce((sum, v, i) => sum + (v - z[i]) ** 2, 0), whole = z.reduce((sum, v) => sum + v * v, 0);
  return { z, parts, scaled, codes, back, encode: given.encode, error: whole ? Math.sqrt(lost / whole) : 0 };
}
const E2M1_TIES = E2M1_LEVELS.slice(1).map((v, i) => (v + E2M1_LEVELS[i]) / 2);
const isTie = (scaled) => E2M1_TIES.includes(Math.abs(scaled));
const isCut = (scaled) => Math.abs(scaled) > 6;
