"""mma_by_element: one output of an MMA, from the published model; inputs for it."""

from __future__ import annotations

import numpy as np

E2M1 = [0, 1, 2, 3, 4, 6, 8, 12]


def nibble(code):
    value = E2M1[code & 7]
    return -value if code & 8 else value


def scale(code, ue8m0):
    """Significand in eighths and exponent; None for NaN."""
    if ue8m0:
        return None if code == 255 else (8, code - 127)
    code &= 0x7F
    if code == 0x7F:
        return None
    return (code & 7, -6) if code < 8 else (8 + (code & 7), (code >> 3) - 7)


def toward_zero(n, q):
    """n * 2^q as float32 bits."""
    sign, m = (0x80000000, -n) if n < 0 else (0, n)
    if m == 0:
        return 0
    e = m.bit_length() - 1 + q
    if e > 127:
        return sign | 0x7F800000
    shift = q - (max(e, -126) - 23)
    m = m << shift if shift >= 0 else m >> -shift
    return sign | (m if e < -126 else (e + 127) << 23 | m & 0x7FFFFF)


def mma_k64(a, b, c, sfa, sfb, ue8m0=False, fraction=35):
    """MMA-Sim's model of one output; 64 codes each, C bits, 4 scales each."""
    scales_a = [scale(s, ue8m0) for s in sfa]
    scales_b = [scale(s, ue8m0) for s in sfb]
    field, mantissa = c >> 23 & 255, c & 0x7FFFFF
    if None in scales_a or None in scales_b or (field == 255 and mantissa):
        return 0x7FFFFFFF
    if field == 255:
        return c
    terms = []
    for g in range(4):
        products = [nibble(a[i]) * nibble(b[i]) for i in range(16 * g, 16 * g + 16)]
        (ma, ea), (mb, eb) = scales_a[g], scales_b[g]
        live = any(products) and ma * mb
        terms.append((sum(products) * ma * mb, -8, ea + eb if live else -139))
    sig = mantissa | (0x800000 if field else 0)
    exponent = (field or 1) - 127 if sig else -139
    terms.append((-sig if c >> 31 else sig, -23, exponent))
    top = max(t[2] for t in terms)
    total = 0
    for n, q, e in terms:
        shift = e - top + fraction + q
        m = abs(n) << shift if shift >= 0 else abs(n) >> -shift
        total += -m if n < 0 else m
    return toward_zero(total, top - fraction)


def check_elements(got, codes_a, codes_b, sfa, sfb, c, *, ue8m0=False, count=60):
    """Compare random elements, the corners among them, with the model."""
    rng = np.random.default_rng(3)
    n = codes_b.shape[0]
    pairs = [(0, 0), (127, n - 1), (0, n - 1), (127, 0)]
    pairs += list(
        zip(rng.integers(0, 128, count), rng.integers(0, n, count), strict=True)
    )
    repeat = 4 // sfa.shape[1]
    for i, j in pairs:
        want = mma_k64(
            [int(x) for x in codes_a[i]],
            [int(x) for x in codes_b[j]],
            int(c[i, j]),
            [int(x) for x in np.repeat(sfa[i], repeat)],
            [int(x) for x in np.repeat(sfb[j], repeat)],
            ue8m0,
        )
        assert got[i, j] == want, (i, j, hex(int(got[i, j])), hex(want))


def random_scales(rows, count, ue8m0, seed):
    """Wide scales; few NaN, so that most results say something."""
    rng = np.random.default_rng(seed)
    if ue8m0:
        codes = rng.integers(110, 144, (rows, count))
        codes[rng.random((rows, count)) < 0.002] = 255
        return codes
    codes = rng.integers(0, 0x7F, (rows, count))
    codes[rng.random((rows, count)) < 0.002] = 0x7F
    return codes | rng.integers(0, 2, (rows, count)) << 7


def random_c(n, seed):
    """Float32 bits of many magnitudes, with some zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        c = rng.standard_normal((128, n)) * 2.0 ** rng.integers(-60, 40, (128, n))
    bits = c.astype(np.float32).view(np.uint32)
    special = rng.random((128, n))
    bits[special < 0.05] = 0
    bits[special < 0.01] = 0x7F800000
    bits[special < 0.005] = 0x7F800001
    return bits
