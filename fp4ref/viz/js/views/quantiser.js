// quantiser: 16 values on the E2M1 line; drag one over a tie and see the code change.

const quantiserView = {
  id: "quantiser",
  controls: ({ m, T }) => [
    { id: "element", label: T("quantiser.element"), type: "number", value: 0, min: 0, max: m.header.quantiser.values.length - 1 },
    { id: "value", label: T("quantiser.value"), type: "number", value: m.header.quantiser.values[0], step: "any", valid: (v) => Number.isFinite(f32(v)), sync: ({ m, ui }) => (m.values ?? m.header.quantiser.values)[+ui.element] },
    { id: "norm", label: T("quantiser.norm"), type: "number", value: m.header.quantiser.norm, step: "any", valid: (v) => f32(v) > 0 && Number.isFinite(f32(v)) },
    { id: "format", label: T("quantiser.format"), type: "select", value: m.header.quantiser.format, options: [["UE4M3", "UE4M3"], ["UE8M0", "UE8M0"]] },
    { id: "tie", label: T("quantiser.tie"), type: "button", key: "t", action: (c) => putOnTie(c) },
  ],
  changed({ m, ui }, what) {
    m.values ??= [...m.header.quantiser.values];
    if (what === "value" && Number.isFinite(+ui.value)) m.values[+ui.element] = +ui.value;
  },
  result({ m, ui }) { return quantiseBlock(m.values ?? m.header.quantiser.values, +ui.norm > 0 ? +ui.norm : 1, ui.format); },
  draw({ m, ui, width, T }) {
    const q = this.result({ m, ui }), values = m.values ?? m.header.quantiser.values, pick = +ui.element;
    const left = 16, plot = width - 32, x = (v) => left + ((Math.max(-7, Math.min(7, v)) + 7) / 14) * plot, axis = 120;
    let out = text(0, 13, fit(T("quantiser.steps1", { amax: mmaView.number(q.amax), target: mmaView.number(q.target) }), width), "small");
    for (const [k, words] of wrap(T("quantiser.steps2", { scale: hex(q.scale, 2), decoded: mmaView.number(q.decoded), factor: mmaView.number(q.factor) }), width).entries()) out += text(0, 29 + 15 * k, words, "small");
    out += lineTo(left, axis, left + plot, axis, "axis");
    for (let i = 0; i < 8; i++)
      for (const sign of i ? [1, -1] : [1]) {
        const v = sign * E2M1_LEVELS[i];
        out += lineTo(x(v), axis - 9, x(v), axis + 9, "axis") + (plot > 520 || Number.isInteger(v) ? text(x(v), axis + 22, v, "mid tiny") : "");
        if (i) { const tie = (sign * (E2M1_LEVELS[i - 1] + E2M1_LEVELS[i])) / 2; out += lineTo(x(tie), axis - 4, x(tie), axis + 4, "tie", { "data-tip": T("quantiser.tietip", { tie, even: sign * E2M1_LEVELS[i % 2 ? i - 1 : i] }) }); }
      }
    const stacked = new Map();
    q.scaled.forEach((s, i) => {
      const key = Math.round(x(s) / 12), level = stacked.get(key) ?? 0;
      stacked.set(key, level + 1);
      const to = E2M1_HALVES[q.codes[i]] / 2, y = axis - 18 - 11 * Math.min(4, level);
      out += lineTo(x(s), y, x(to), axis, i === pick ? "arrow picked" : "arrow");
      out += `<circle cx="${x(s)}" cy="${y}" r="${i === pick ? 7 : 5}" class="${named(i === pick ? "dot picked" : "dot")}" data-drag="${i}" data-ui="element=${i}" data-tip="${esc(T("quantiser.dot", { i, z: mmaView.number(values[i]), s: mmaView.number(s), to }))}"/>`;
    });
    const per = width < 520 ? 8 : 16, bw = width / per, y0 = axis + 40;
    q.codes.forEach((code, i) => {
      const cx = (i % per) * bw, cy = y0 + Math.floor(i / per) * 36;
      out += rect(cx, cy, bw - 1, 34, i === pick ? "cell picked" : "cell", { "data-ui": `element=${i}` }) + text(cx + bw / 2, cy + 14, hex(code), "mid small") + text(cx + bw / 2, cy + 28, E2M1_HALVES[code] / 2, "mid tiny");
    });
    const y1 = y0 + (16 / per) * 36 + 14;
    for (const [k, words] of wrap(T("quantiser.one", { i: pick, z: mmaView.number(values[pick]), s: mmaView.number(q.scaled[pick]), code: hex(q.codes[pick]), level: E2M1_HALVES[q.codes[pick]] / 2, back: mmaView.number(q.back[pick]) }), width * 0.92).entries()) out += text(0, y1 + 16 * k, words, "strong");
    return { svg: out, width, height: y1 + 28 };
  },
  // A drag on the line: pixels to a value before scaling.
  drag({ m, ui }, i, px, width) {
    const q = this.result({ m, ui }), scaled = ((px - 16) / (width - 32)) * 14 - 7;
    const step = 1 / 16; // so that ties can be hit
    m.values ??= [...m.header.quantiser.values];
    m.values[i] = (Math.round(scaled / step) * step) / (Number.isFinite(q.factor) && q.factor ? q.factor : 1);
  },
  twin({ m, ui, T }) {
    const q = this.result({ m, ui }), values = m.values ?? m.header.quantiser.values;
    return {
      intro: T("quantiser.intro", { amax: mmaView.number(q.amax), target: mmaView.number(q.target), scale: hex(q.scale, 2), decoded: mmaView.number(q.decoded), factor: mmaView.number(q.factor), format: ui.format }),
      caption: T("quantiser.caption"), columns: ["col.element", "col.value", "col.scaled", "col.code", "col.level", "col.back"].map((k) => T(k)),
      rows: values.map((v, i) => [String(i), mmaView.number(v), mmaView.number(q.scaled[i]), hex(q.codes[i]), String(E2M1_HALVES[q.codes[i]] / 2), mmaView.number(q.back[i])]),
    };
  },
};

// Put the chosen element exactly on the nearest tie that float32 reaches.
function putOnTie({ m, ui, refresh, announce, T }) {
  const before = m.values ?? m.header.quantiser.values, i = +ui.element, q = quantiserView.result({ m, ui }), s = Math.abs(q.scaled[i]);
  const ties = E2M1_LEVELS.slice(1).map((v, k) => (v + E2M1_LEVELS[k]) / 2).sort((x, y) => Math.abs(x - s) - Math.abs(y - s));
  const sign = q.scaled[i] < 0 ? -1 : 1;
  for (const tie of ties)
    for (const ulps of [0, 1, -1, 2, -2, 3, -3]) {
      m.values = [...before];
      m.values[i] = sign * f32((tie / q.factor) * (1 + ulps * 2 ** -23));
      if (Math.abs(quantiserView.result({ m, ui }).scaled[i]) === tie) return refresh();
    }
  m.values = [...before];
  refresh();
  announce(T("quantiser.notie"));
}
