"""triton_rows: Triton kernels without a matrix product, one row or block a program.

Written for these rows; what each computes is its docstring.
"""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Store x + y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)


@triton.jit
def multiply_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Store x * y + x in float32, rounded once; then to the type of out."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    out = tl.fma(x, y, x).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, out, mask=inside)


@triton.jit
def half_arithmetic(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Store max((x + y) * y - x, y) in the type of x, every step rounded."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, tl.maximum((x + y) * y - x, y), mask=inside)


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """Store x transposed, through shared memory."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=inside, other=0)
    inside = (j[:, None] < columns) & (i[None, :] < rows)
    tl.store(out_ptr + j[:, None] * rows + i[None, :], x.T, mask=inside)


@triton.jit
def prefix_sum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Running sum of a row."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


@triton.jit
def first_largest(x_ptr, value_ptr, place_ptr, BLOCK: tl.constexpr):
    """The largest of a row, and where it comes first."""
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + row, value)
    tl.store(place_ptr + row, place)


@triton.jit
def sort_row(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """A row in ascending order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@triton.jit
def count_values(x_ptr, out_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """How often each number occurs, added up over the programs."""
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    counts = tl.histogram(x, BINS)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)


@triton.jit
def column_sum(x_ptr, out_ptr, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Sum over rows: a part in each program, the parts by atomics."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :])
    tl.atomic_add(out_ptr + j, tl.sum(x, axis=0))


@triton.jit
def gather_rows(table_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    """out[i] = table[index[i]]."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    source = tl.load(index_ptr + row)
    tl.store(out_ptr + row * BLOCK + j, tl.load(table_ptr + source * BLOCK + j))


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """Softmax of a row."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    x = tl.load(x_ptr + row * columns + j, mask=inside, other=-float("inf"))
    x = x.to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * columns + j, out, mask=inside)


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, eps, BLOCK: tl.constexpr):
    """(x - mean) / sqrt(variance + eps) * w + b of a row."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + j).to(tl.float32)
    mean = tl.sum(x, axis=0) / BLOCK
    centred = x - mean
    variance = tl.sum(centred * centred, axis=0) / BLOCK
    scaled = centred * (1 / tl.sqrt(variance + eps))
    out = scaled * tl.load(w_ptr + j) + tl.load(b_ptr + j)
    tl.store(out_ptr + row * BLOCK + j, out.to(out_ptr.dtype.element_ty))


@triton.jit
def rms_norm(x_ptr, w_ptr, out_ptr, eps, BLOCK: tl.constexpr):
    """Store x * rsqrt(mean(x^2) + eps) * w of a row."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + j).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / BLOCK + eps)
    out = x * scale * tl.load(w_ptr + j)
    tl.store(out_ptr + row * BLOCK + j, out.to(out_ptr.dtype.element_ty))


@triton.jit
def silu_and_multiply(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Store x * sigmoid(x) * y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    out = x * tl.sigmoid(x) * y
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def dropout(x_ptr, out_ptr, seed, BLOCK: tl.constexpr):
    """Store x / (1 - 1/4) where a Philox number is above 1/4, else 0."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > 0.25
    tl.store(out_ptr + at, tl.where(keep, tl.load(x_ptr + at) * (4.0 / 3.0), 0.0))


@triton.jit
def quantize_rows(x_ptr, out_ptr, scale_ptr, BLOCK: tl.constexpr):
    """Rows in E4M3: scale = max |x| / 448 rounded, x / scale rounded, both once."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + j)
    scale = tl.div_rn(tl.max(tl.abs(x), axis=0), 448.0)
    out = tl.div_rn(x, tl.broadcast_to(scale, x.shape))
    tl.store(out_ptr + row * BLOCK + j, out.to(tl.float8e4nv))
    tl.store(scale_ptr + row, scale)


@triton.jit
def cross_entropy(x_ptr, label_ptr, out_ptr, BLOCK: tl.constexpr):
    """log(sum(exp(x - max))) + max - x[label] of a row."""
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    label = tl.load(label_ptr + row)
    loss = tl.log(total) + largest - tl.load(x_ptr + row * BLOCK + label)
    tl.store(out_ptr + row, loss)
