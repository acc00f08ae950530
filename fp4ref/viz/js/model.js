// model: a packet unpacked, and the memory at any step.
// Forward: apply events. Back: from the last checkpoint before. No write is undone.

const NOT_KEPT = -2, COMPUTED = -1;
const NEVER = 0, KNOWN = 1, LOST = 2; // states of a byte
// Swizzle of shared memory: Sw<bits, 4, 3>, by its name and by a matrix descriptor's layout field.
const SWIZZLE_BITS = { NONE: 0, B32: 1, B64: 2, B128: 3 };
const LAYOUT_BITS = { 0: SWIZZLE_BITS.NONE, 6: SWIZZLE_BITS.B32, 4: SWIZZLE_BITS.B64, 2: SWIZZLE_BITS.B128 };
const swizzled = (address, bits) => address ^ (((address >> 7) & ((1 << bits) - 1)) << 4);
const CHUNK = 16, GROUP_ROWS = 8; // bytes that stay together, and rows after which the pattern repeats
const swizzleSpan = (bits) => CHUNK << bits; // bytes of a row
const KINDS = ["sync", "issue", "land", "note"];

async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(raw.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length)));
  return { header, payload: raw.subarray(4 + length) };
}

function adler32(bytes) {
  let a = 1, b = 0;
  for (let i = 0; i < bytes.length; ) {
    const end = Math.min(i + 3800, bytes.length);
    for (; i < end; i++) { a += bytes[i]; b += a; }
    a %= 65521; b %= 65521;
  }
  return b * 65536 + a;
}

class Machine {
  constructor(header, payload) {
    this.header = header;
    this.payload = payload;
    this.columns = header.columns;
    this.tables = header.tables;
    this.length = header.columns ? header.columns.sm.length : 0;
    this.spaces = {};
    for (const [name, { base, nbytes }] of Object.entries(header.spaces ?? {}))
      this.spaces[name] = { base, bytes: new Uint8Array(nbytes), known: new Uint8Array(nbytes) };
    this.barriers = (header.tables?.barrier ?? []).map(([space, address, label]) => ({
      space, address, label, sm: +space.replace(/\D/g, ""), live: false, phase: 0, pending: 0, tx: 0, flips: 0, since: -1 }));
    this.step = -1;
    this.wrong = []; // MMAs whose computed bits missed the checksum
    this.interval = Math.max(128, Math.ceil(this.length / 16));
    this.checkpoints = [this.snapshot()];
    this.results = new Map(); // step of an MMA -> its D words
  }

  event(i) {
    const c = this.columns, t = this.tables;
    if (i < 0 || i >= this.length) return null;
    return {
      step: i, sm: c.sm[i], cta: t.cta[c.cta[i]], agent: t.agent[c.agent[i]],
      operation: t.operation[c.operation[i]], kind: KINDS[c.kind[i]], issued: c.issued[i],
      operands: t.operands[c.operands[i]], frames: t.frames[c.frames[i]],
      source: t.source[c.source[i]], text: t.source_text[c.source[i]], words: t.words[c.words[i]],
      reads: c.reads[i].map((r) => t.range[r]), writes: c.writes[i].map(([r]) => t.range[r]),
      barrier: c.barrier[i].map(([b, phase, pending, tx]) => ({ id: b, ...this.barriers[b], phase, pending, tx })),
    };
  }

  // What the kernel was planned to be, as in the trace; undefined where none was recorded.
  get plan() { return this.header.meta?.plan; }

  // A unit's name, or the role of a warp by the plan.
  role(agent) {
    const number = /^warp(\d+)$/.exec(agent)?.[1];
    if (number === undefined) return agent;
    return this.plan?.warps.find((w) => w.first <= +number && +number < w.first + w.count)?.role ?? "unknown";
  }

  snapshot() {
    return {
      step: this.step,
      spaces: Object.fromEntries(Object.entries(this.spaces).map(([n, s]) => [n, [s.bytes.slice(), s.known.slice()]])),
      barriers: this.barriers.map((b) => ({ ...b })),
    };
  }

  restore(point) {
    this.step = point.step;
    for (const [name, [bytes, known]] of Object.entries(point.spaces)) {
      this.spaces[name].bytes.set(bytes);
      this.spaces[name].known.set(known);
    }
    this.barriers = point.barriers.map((b) => ({ ...b }));
  }

  seek(step) {
    step = Math.max(-1, Math.min(this.length - 1, step));
    if (step < this.step || step - this.step > this.interval) {
      const point = this.checkpoints.filter((p) => p.step <= step).at(-1);
      if (step < this.step || point.step > this.step) this.restore(point);
    }
    while (this.step < step) {
      this.apply(this.step + 1);
      if ((this.step + 1) % this.interval === 0 && this.checkpoints.at(-1).step < this.step)
        this.checkpoints.push(this.snapshot());
    }
    return this;
  }

  apply(i) {
    const { writes, barrier } = this.columns;
    for (const [r, at] of writes[i]) this.write(i, this.tables.range[r], at);
    for (const [b, phase, pending, tx] of barrier[i]) {
      const now = this.barriers[b];
      if (now.live && now.phase !== phase) now.flips++;
      Object.assign(now, { live: true, phase, pending, tx, since: i });
    }
    this.step = i;
  }

  write(i, [space, start, nbytes, rows, pitch], at) {
    const memory = this.spaces[space];
    if (!memory) return;
    let words = null;
    if (at === COMPUTED) words = this.multiply(i);
    const lost = at === NOT_KEPT || (at === COMPUTED && !words);
    for (let row = 0; row < rows; row++) {
      const to = start - memory.base + row * pitch;
      memory.known.fill(lost ? LOST : KNOWN, to, to + nbytes);
      if (lost) continue;
      const from = at + row * nbytes;
      memory.bytes.set(words ? words.subarray(row * nbytes, (row + 1) * nbytes) : this.payload.subarray(from, from + nbytes), to);
    }
  }

  // Operands of an MMA out of this machine's own memory; null if a byte is not known.
  operands(event) {
    const { operands, reads, writes, sm } = event;
    const smem = this.spaces[`smem${sm}`], tmem = this.spaces[`tmem${sm}`];
    if (!smem || !tmem || !reads.length) return null;
    const columns = writes[0][2] / 4, rows = writes[0][3];
    const tile = (desc, count) => {
      const d = BigInt(desc), start = Number(d & 0x3fffn) << 4, stride = Number((d >> 32n) & 0x3fffn) << 4;
      const bits = LAYOUT_BITS[Number(d >> 61n)], out = new Int8Array(count * MMA_K);
      for (let r = 0; r < count; r++)
        for (let byte = 0; byte < MMA_K / 2; byte++) {
          const linear = start + Math.floor(r / GROUP_ROWS) * stride + (r % GROUP_ROWS) * swizzleSpan(bits) + byte;
          const address = swizzled(linear, bits) - smem.base;
          if (smem.known[address] !== KNOWN) return null;
          const pair = smem.bytes[address];
          out[r * MMA_K + 2 * byte] = E2M1_HALVES[pair & 15];
          out[r * MMA_K + 2 * byte + 1] = E2M1_HALVES[pair >> 4];
        }
      return out;
    };
    const scales = ([, start], count) => {
      const out = new Uint8Array(count * GROUPS);
      for (let r = 0; r < count; r++) {
        const at = start + (r & 31) * 2048 + (r >> 5) * 4;
        if (tmem.known[at] !== KNOWN) return null;
        out.set(tmem.bytes.subarray(at, at + GROUPS), r * GROUPS);
      }
      return out;
    };
    const a = tile(operands.a_desc, rows), b = tile(operands.b_desc, columns);
    const sfa = scales(reads[2], rows), sfb = scales(reads[3], columns);
    if (!a || !b || !sfa || !sfb) return null;
    let c = null;
    if (operands.enable_input_d) {
      c = new Uint32Array(rows * columns);
      const [, start, , , pitch] = writes[0];
      const view = new DataView(tmem.bytes.buffer);
      for (let r = 0; r < rows; r++)
        for (let j = 0; j < columns; j++) {
          const at = start + r * pitch + 4 * j;
          if (tmem.known[at] !== KNOWN) return null;
          c[r * columns + j] = view.getUint32(at, true);
        }
    }
    const format = (Number(operands.idesc) >>> 23) & 1 ? "UE8M0" : "UE4M3";
    return { rows, columns, a, b, sfa, sfb, c, format };
  }

  multiply(i) {
    const known = this.results.get(i);
    if (known) return known;
    const o = this.operands(this.event(i));
    if (!o) return null;
    const d = new Uint32Array(o.rows * o.columns);
    dotTile(o.rows, o.columns, o.a, o.b, o.sfa, o.sfb, o.format, o.c, d);
    const bytes = new Uint8Array(d.buffer);
    if (adler32(bytes) !== this.header.checksums[i]) this.wrong.push(i);
    this.results.set(i, bytes);
    return bytes;
  }

  read(space, address, nbytes) {
    const m = this.spaces[space];
    return m ? m.bytes.subarray(address - m.base, address - m.base + nbytes) : null;
  }

  // Steps at which a byte was written, or a barrier changed.
  writersOf(space, address) {
    const found = [];
    for (let i = 0; i < this.length; i++)
      for (const [r] of this.columns.writes[i]) {
        const [s, start, nbytes, rows, pitch] = this.tables.range[r];
        if (s !== space || address < start) continue;
        const row = pitch ? Math.floor((address - start) / pitch) : 0;
        if (row < rows && address - start - row * pitch < nbytes) found.push(i);
      }
    return found;
  }
  stepsOfBarrier(id) {
    const found = [];
    for (let i = 0; i < this.length; i++) if (this.columns.barrier[i].some(([b]) => b === id)) found.push(i);
    return found;
  }

  // What blocks or flies at a step: waits of warps, and asynchronous work in flight.
  openAt(step) {
    if (!this.spans) {
      this.spans = [];
      for (let i = 0; i < this.length; i++)
        if (this.columns.issued[i] >= 0) this.spans.push([this.columns.issued[i], i]);
    }
    return this.spans.filter(([from, to]) => from <= step && step < to).map(([from, to]) => ({ from, to, event: this.event(to) }));
  }
}
