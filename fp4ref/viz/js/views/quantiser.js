// quantiser: a few values on the E2M1 line, by one recipe; drag one over a tie and see the code change.

const quantiserWay = ({ m, ui }) => m.header.quantiser.ways.find((w) => w.name === ui.way);
const quantiserValues = ({ m }) => m.values ?? m.header.quantiser.values;
const quantiserSeen = (c) => quantiseWay(quantiserValues(c), quantiserWay(c), c.m.header.quantiser, +c.ui.power);
const partOf = (c, q) => q.parts[Math.floor(+c.ui.element / quantiserWay(c).vec)];
const levelOf = (code) => E2M1_HALVES[code] / 2;

// What both views of a block have.
const quantiserControls = ({ m, T }, label) => {
  const { values, ways, way, powers } = m.header.quantiser;
  return [
    { id: "way", label: T(label), type: "select", value: way, options: ways.map((w) => [w.name, w.name]) },
    { id: "element", label: T("quantiser.element"), type: "number", value: 0, min: 0, max: values.length - 1 },
    { id: "value", label: T("quantiser.value"), type: "number", value: values[0], step: "any", valid: (v) => Number.isFinite(f32(v)), sync: (c) => quantiserValues(c)[+c.ui.element] },
    { id: "power", label: T("quantiser.power"), type: "number", value: 0, min: powers[0], max: powers[1] },
    { id: "tie", label: T("quantiser.tie"), type: "button", key: "t", action: putOnTie },
  ];
};
const quantiserKeys = {
  ArrowRight: (c) => pickElement(c, 1), ArrowLeft: (c) => pickElement(c, -1),
  ArrowUp: (c) => moveElement(c, 1 / 16), ArrowDown: (c) => moveElement(c, -1 / 16),
  PageUp: (c) => pickWay(c, -1), PageDown: (c) => pickWay(c, 1),
};
function quantiserChanged({ m, ui }, what) {
  m.values ??= [...m.header.quantiser.values];
  if (what === "value" && Number.isFinite(+ui.value)) m.values[+ui.element] = +ui.value;
}
function pickElement(c, by) {
  const count = quantiserValues(c).length;
  c.pick(`element=${(+c.ui.element + by + count) % count}`);
}
function pickWay(c, by) {
  const { ways } = c.m.header.quantiser;
  c.pick(`way=${ways[(ways.indexOf(quantiserWay(c)) + by + ways.length) % ways.length].name}`);
}
// Move the chosen element by a part of the step that code 1.0 is.
function moveElement(c, by) {
  const q = quantiserSeen(c);
  c.pick(`value=${f32(quantiserValues(c)[+c.ui.element] + by * unitOf(partOf(c, q), q))}`);
}
const unitOf = (part, q) => (part.decoded > 0 ? part.decoded / q.encode : part.amax / 6 || 1);

// Five digits; all of them beside a tie or the end of the line.
function brief(v) {
  const short = +v.toPrecision(5), near = [...E2M1_TIES, 6].includes(Math.abs(short));
  return mmaView.number(near ? v : short);
}

// Where an element lies and what becomes of it: in a sentence.
function elementWords(c, q, i) {
  const { T } = c, n = brief, s = q.scaled[i];
  return T("quantiser.one", { i, z: n(q.z[i]), s: n(s), code: hex(q.codes[i]), level: levelOf(q.codes[i]), back: n(q.back[i]), mark: isTie(s) ? T("quantiser.istie") : isCut(s) ? T("quantiser.iscut") : "" });
}

const quantiserView = {
  id: "quantiser",
  keys: quantiserKeys,
  controls: (c) => quantiserControls(c, "quantiser.recipe"),
  changed: quantiserChanged,
  draw(c) {
    const { ui, width, T } = c, q = quantiserSeen(c), way = quantiserWay(c), part = partOf(c, q), n = brief, pick = +ui.element;
    let y = 0, out = "";
    const say = (words, cls) => { for (const l of wrap(words, width, { code: 7.1, strong: 7.1, small: 6 }[cls])) { y += 15; out += text(0, y, l, cls); } };
    say(way.summary, "code");
    say(T("quantiser.steps1", { amax: n(part.amax), wanted: n(part.wanted) }), "small");
    say(T("quantiser.steps2", { scale: hex(part.scale, 2), decoded: n(part.decoded), unit: n(part.decoded / q.encode) }), "small");
    const left = 16, plot = width - 32, x = (v) => left + ((Math.max(-7, Math.min(7, v)) + 7) / 14) * plot, axis = y + 78;
    out += lineTo(left, axis, left + plot, axis, "axis");
    for (let i = 0; i < 8; i++)
      for (const sign of i ? [1, -1] : [1]) {
        const v = sign * E2M1_LEVELS[i];
        out += lineTo(x(v), axis - 9, x(v), axis + 9, "axis") + (plot > 520 || Number.isInteger(v) ? text(x(v), axis + 22, v, "mid tiny") : "");
        if (i) { const tie = (sign * (E2M1_LEVELS[i - 1] + E2M1_LEVELS[i])) / 2; out += lineTo(x(tie), axis - 4, x(tie), axis + 4, "tie", { "data-tip": T("quantiser.tietip", { tie, even: sign * E2M1_LEVELS[i % 2 ? i - 1 : i] }) }); }
      }
    const stacked = new Map();
    let onTop = "";
    q.scaled.forEach((s, i) => {
      const key = Math.round(x(s) / 12), level = stacked.get(key) ?? 0;
      stacked.set(key, level + 1);
      const to = levelOf(q.codes[i]), cy = axis - 18 - 11 * Math.min(4, level);
      const dot = lineTo(x(s), cy, x(to), axis, i === pick ? "arrow picked" : "arrow") + `<circle cx="${x(s)}" cy="${cy}" r="${i === pick ? 7 : 5}" class="${named(i === pick ? "dot picked" : "dot")}" data-drag="${i}" data-ui="element=${i}" data-tip="${esc(elementWords(c, q, i))}"/>`;
      if (i === pick) onTop = dot; else out += dot;
    });
    out += onTop;
    const per = width < 520 ? 8 : 16, bw = width / per, y0 = axis + 40;
    q.codes.forEach((code, i) => {
      const cx = (i % per) * bw, cy = y0 + Math.floor(i / per) * 36;
      out += rect(cx, cy, bw - 1, 34, i === pick ? "cell picked" : "cell", { "data-ui": `element=${i}` }) + text(cx + bw / 2, cy + 14, hex(code), "mid small") + text(cx + bw / 2, cy + 28, levelOf(code), "mid tiny");
    });
    y = y0 + (q.codes.length / per) * 36;
    say(T("quantiser.legend"), "small");
    say(elementWords(c, q, pick), "strong");
    say(T("quantiser.error", { error: percent(q.error), source: way.source }), "small");
    return { svg: out, width, height: y + 8 };
  },
  // A drag on the line: pixels to a value before scaling.
  drag(c, i, px, width) {
    const q = quantiserSeen(c), unit = unitOf(q.parts[Math.floor(i / quantiserWay(c).vec)], q);
    const level = Math.round((((px - 16) / (width - 32)) * 14 - 7) * 16) / 16; // so that ties can be hit
    c.m.values ??= [...c.m.header.quantiser.values];
    c.m.values[i] = level * unit;
  },
  twin(c) {
    const { T, ui } = c, q = quantiserSeen(c), way = quantiserWay(c), part = partOf(c, q), n = mmaView.number;
    return {
      intro: T("quantiser.intro", { way: way.name, amax: n(part.amax), wanted: n(part.wanted), scale: hex(part.scale, 2), decoded: n(part.decoded), format: way.scale, error: percent(q.error), element: elementWords(c, q, +ui.element) }),
      caption: T("quantiser.caption", { way: way.name }), columns: ["col.element", "col.value", "col.scaled", "col.code", "col.level", "col.back"].map((k) => T(k)),
      rows: q.z.map((v, i) => [String(i), n(v), n(q.scaled[i]), hex(q.codes[i]), String(levelOf(q.codes[i])), n(q.back[i])]),
    };
  },
};
const percent = (share) => `${(100 * share).toPrecision(3)} %`;

// Put the chosen element exactly on the nearest tie that float32 reaches.
function putOnTie(c) {
  const { m, ui, refresh, announce, T } = c, before = quantiserValues(c), i = +ui.element, q = quantiserSeen(c), s = Math.abs(q.scaled[i]);
  const ties = [...E2M1_TIES].sort((x, y) => Math.abs(x - s) - Math.abs(y - s)), unit = unitOf(partOf(c, q), q);
  const sign = q.scaled[i] < 0 ? -1 : 1;
  for (const tie of ties)
    for (const ulps of [0, 1, -1, 2, -2, 3, -3]) {
      m.values = [...before];
      m.values[i] = sign * f32(tie * unit * (1 + ulps * 2 ** -23));
      if (Math.abs(quantiserSeen(c).scaled[i]) === tie) return refresh();
    }
  m.values = [...before];
  refresh();
  announce(T("quantiser.notie"));
}
