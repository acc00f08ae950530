// arithmetic: E2M1, UE4M3, UE8M0 and the K=64 block-scaled dot product, in exact numbers.
// Same model and constants as fp4ref.numerics; every value fits a double exactly.

const E2M1_HALVES = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
const SF_VEC = 16, GROUPS = 4, MMA_K = SF_VEC * GROUPS; // of .kind::mxf4nvf4 with .scale_vec::4X
const FRACTION_BITS = 35;
const E_ZERO = -139;
const NAN_BITS = 0x7fffffff;
const INF_BITS = 0x7f800000;
const POWER = Float64Array.from({ length: 2100 }, (_, i) => 2 ** (i - 1050));
const pow2 = (e) => POWER[Math.max(0, Math.min(2099, e + 1050))];

const wordView = new DataView(new ArrayBuffer(8));
function floatOf(bits) {
  wordView.setUint32(0, bits);
  return wordView.getFloat32(0);
}
function bitsOf(value) {
  wordView.setFloat32(0, value);
  return wordView.getUint32(0);
}

// Significand in eighths (-1 for NaN) and exponent of a scale code.
function scaleParts(code, format) {
  if (format === "UE8M0") return code === 0xff ? [-1, code - 127] : [8, code - 127];
  const field = (code >> 3) & 0xf, mantissa = code & 7; // bit 7 is ignored
  if ((code & 0x7f) === 0x7f) return [-1, field - 7];
  return [field === 0 ? mantissa : 8 + mantissa, Math.max(field, 1) - 7];
}
function scaleValue(code, format) {
  const [s, e] = scaleParts(code, format);
  return s < 0 ? NaN : (s / 8) * pow2(e);
}

const truncateShift = (x, distance) => Math.trunc(x * pow2(-distance));

function highestBit(x) {
  const high = Math.floor(x / 4294967296);
  return high ? 63 - Math.clz32(high) : 31 - Math.clz32(x >>> 0);
}

// float32 bits of total * 2^exponent, truncated; Inf from 2^128 up.
function roundTowardZero(total, exponent) {
  const magnitude = Math.abs(total);
  if (magnitude === 0) return 0;
  const valueExponent = highestBit(magnitude) + exponent;
  if (valueExponent > 127) return (INF_BITS | (total < 0 ? 0x80000000 : 0)) >>> 0;
  const kept = Math.max(valueExponent, -126);
  const significand = Math.floor(magnitude * pow2(exponent + 23 - kept));
  const bits = (kept + 126) * 8388608 + significand;
  return (total < 0 && bits !== 0 ? bits + 0x80000000 : bits) >>> 0;
}

// One output element. groups: four of {sum, live, sa, ea, sb, eb}; c: float32 bits.
function dotElement(groups, c) {
  const field = (c >>> 23) & 0xff, fraction = c & 0x7fffff;
  let sc = field > 0 ? fraction | 0x800000 : fraction;
  const ec = sc !== 0 ? Math.max(field, 1) - 127 : E_ZERO;
  if (c >>> 31) sc = -sc;
  let eMax = ec, nan = field === 0xff && fraction !== 0;
  for (const g of groups) {
    eMax = Math.max(eMax, g.live && g.sa * g.sb !== 0 ? g.ea + g.eb : E_ZERO);
    nan = nan || g.sa < 0 || g.sb < 0;
  }
  const terms = [sc * pow2(FRACTION_BITS - 23)];
  const distances = [eMax - ec];
  for (const g of groups) {
    terms.push(g.sum * g.sa * g.sb * pow2(FRACTION_BITS - 8));
    distances.push(eMax - Math.min(g.ea + g.eb, eMax));
  }
  const aligned = terms.map((t, i) => truncateShift(t, distances[i]) + 0);
  const total = aligned.reduce((a, b) => a + b, 0);
  let d = roundTowardZero(total, eMax - FRACTION_BITS);
  if (field === 0xff) d = c;
  if (nan) d = NAN_BITS;
  return { d, eMax, terms, distances, aligned, total, nan };
}

// The same for a whole tile. a, b: Int8Array halves (rows, MMA_K); scales: code arrays.
function dotTile(rows, columns, a, b, sfa, sfb, format, c, d) {
  const parts = Array.from({ length: 256 }, (_, code) => scaleParts(code, format));
  const S = Float64Array.from(parts, (p) => p[0]), E = Int16Array.from(parts, (p) => p[1]);
  const liveOf = (x, at) => {
    let mask = 0;
    for (let k = 0; k < SF_VEC; k++) if (x[at + k] !== 0) mask |= 1 << k;
    return mask;
  };
  const liveB = new Uint16Array(columns * GROUPS);
  for (let i = 0; i < columns * GROUPS; i++) liveB[i] = liveOf(b, i * SF_VEC);
  const sums = new Float64Array(GROUPS), ok = new Uint8Array(GROUPS);
  for (let i = 0; i < rows; i++) {
    const liveA = [0, 1, 2, 3].map((g) => liveOf(a, i * MMA_K + g * SF_VEC));
    for (let j = 0; j < columns; j++) {
      const bits = c ? c[i * columns + j] : 0;
      const field = (bits >>> 23) & 0xff, fraction = bits & 0x7fffff;
      let sc = field > 0 ? fraction | 0x800000 : fraction;
      const ec = sc !== 0 ? Math.max(field, 1) - 127 : E_ZERO;
      if (bits >>> 31) sc = -sc;
      let eMax = ec, nan = field === 0xff && fraction !== 0;
      for (let g = 0; g < GROUPS; g++) {
        let sum = 0;
        const pa = i * MMA_K + g * SF_VEC, pb = j * MMA_K + g * SF_VEC;
        for (let k = 0; k < SF_VEC; k++) sum += a[pa + k] * b[pb + k];
        sums[g] = sum;
        const x = sfa[i * GROUPS + g], y = sfb[j * GROUPS + g];
        ok[g] = (liveA[g] & liveB[j * GROUPS + g]) !== 0 && S[x] * S[y] !== 0 ? 1 : 0;
        const e = ok[g] ? E[x] + E[y] : E_ZERO;
        if (e > eMax) eMax = e;
        nan = nan || S[x] < 0 || S[y] < 0;
      }
      let total = Math.trunc(sc * 4096 * pow2(ec - eMax));
      for (let g = 0; g < GROUPS; g++) {
        const x = sfa[i * GROUPS + g], y = sfb[j * GROUPS + g];
        const e = Math.min(E[x] + E[y], eMax);
        total += Math.trunc(sums[g] * S[x] * S[y] * 134217728 * pow2(e - eMax));
      }
      let out = roundTowardZero(total, eMax - FRACTION_BITS);
      if (field === 0xff) out = bits;
      d[i * columns + j] = nan ? NAN_BITS : out;
    }
  }
}

const E2M1_LEVELS = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
// cvt.rn.satfinite.e2m1x2.f32: nearest, ties to the even code; NaN gives +6.
function encodeE2m1(x) {
  if (Number.isNaN(x)) return 7;
  const sign = x < 0 || Object.is(x, -0) ? 8 : 0, m = Math.abs(x);
  let code = 0;
  for (let i = 1; i < 8; i++) {
    const tie = (E2M1_LEVELS[i - 1] + E2M1_LEVELS[i]) / 2;
    if (m > tie || (m === tie && i % 2 === 0)) code = i;
  }
  return sign | code;
}
// cvt.rn.satfinite.e4m3x2.f32 of a value that is not negative.
function encodeUe4m3(x) {
  if (Number.isNaN(x)) return 0x7f;
  if (x >= 448) return 0x7e;
  let best = 0, error = Infinity;
  for (let code = 0; code < 0x7f; code++) {
    const e = Math.abs(scaleValue(code, "UE4M3") - x);
    if (e < error || (e === error && code % 2 === 0)) [best, error] = [code, e];
  }
  return best;
}
// cvt.rp.satfinite.ue8m0x2.f32: the next power of two upward.
function encodeUe8m0(x) {
  if (Number.isNaN(x)) return 0xff;
  for (let code = 0; code < 0xfe; code++) if (pow2(code - 127) >= x) return code;
  return 0xfe;
}
