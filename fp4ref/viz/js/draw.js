// draw: SVG as text, with classes for colour and pattern; tables and text twins.

const esc = (s) => String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const attributes = (a) => Object.entries(a ?? {}).filter(([, v]) => v !== undefined && v !== null && v !== false)
  .map(([k, v]) => ` ${k}="${esc(v)}"`).join("");
const hex = (n, width = 0) => "0x" + n.toString(16).toUpperCase().padStart(width, "0");
const hex2 = (n) => n.toString(16).toUpperCase().padStart(2, "0");

// Names of our own: a page's theme has rules for words such as "card" and "alert".
const named = (cls) => (cls ? cls.split(" ").map((c) => `f-${c}`).join(" ") : "");
const rect = (x, y, w, h, cls, more) => `<rect x="${+x.toFixed(2)}" y="${+y.toFixed(2)}" width="${+Math.max(0, w).toFixed(2)}" height="${+Math.max(0, h).toFixed(2)}" class="${named(cls)}"${attributes(more)}/>`;
const text = (x, y, s, cls = "", more) => `<text x="${+x.toFixed(2)}" y="${+y.toFixed(2)}" class="${named(cls)}"${attributes(more)}>${esc(s)}</text>`;
const lineTo = (x1, y1, x2, y2, cls, more) => `<line x1="${+x1.toFixed(2)}" y1="${+y1.toFixed(2)}" x2="${+x2.toFixed(2)}" y2="${+y2.toFixed(2)}" class="${named(cls)}"${attributes(more)}/>`;
const group = (body, more) => `<g${attributes(more)}>${body}</g>`;
const fit = (s, pixels, size = 12) => {
  const most = Math.max(0, Math.floor(pixels / (size * 0.56)));
  return s.length <= most ? s : most < 2 ? "" : s.slice(0, most - 1) + "…";
};

// One pattern beside each hue, so that no meaning hangs on colour alone.
const PATTERNS = {
  tma: "M0 6L6 0M-1 1L1 -1M5 7L7 5", cp: "M3 0V6", mma: "", barrier: "M0 3H6",
  wait: "M0 0L6 6M-1 5L1 7M5 -1L7 1", ld: "M1 1h1v1h-1zM4 4h1v1h-1z", st: "M0 3H6M3 0V6", clc: "M0 0L6 6M6 0L0 6", note: "", commit: "M0 1.5H6M0 4.5H6",
};
function patternDefs(id) {
  return "<defs>" + Object.entries(PATTERNS).filter(([, d]) => d).map(([name, d]) =>
    `<pattern id="${id}-${name}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" class="f-p-${name}"/><path d="${d}" class="f-p-line"/></pattern>`).join("") + "</defs>";
}
// A box of a category: a pattern has its hue below its lines.
const box = (id, name, x, y, w, h, more) => rect(x, y, w, h, `c-${name}`, PATTERNS[name] ? { ...more, style: `fill:url(#${id}-${name})` } : more);

const CATEGORIES = [
  ["mbarrier.try_wait", "wait"], ["bar.", "wait"], ["mbarrier", "barrier"], ["fence", "barrier"], ["tcgen05.fence", "barrier"],
  ["cp.async", "tma"], ["prefetch", "tma"], ["tcgen05.cp", "cp"], ["tcgen05.mma", "mma"], ["tcgen05.commit", "commit"],
  ["tcgen05.ld", "ld"], ["tcgen05.wait", "wait"], ["ld.", "ld"], ["st.", "st"], ["clusterlaunch", "clc"], ["tile_scheduler", "clc"], ["tcgen05", "ld"],
];
const category = (operation) => CATEGORIES.find(([start]) => operation.startsWith(start))?.[1] ?? "note";

// Words broken into lines; `lines` are drawn at y, y + 14, ...
function wrap(words, width, letter = 6.6) {
  const most = Math.max(12, Math.floor(width / letter)), lines = [];
  let line = "";
  for (const w of words.split(/\s+/)) {
    if (line && `${line} ${w}`.length > most) { lines.push(line); line = w; } else line = line ? `${line} ${w}` : w;
  }
  return [...lines, line];
}
const paragraph = (x, y, lines, cls) => lines.map((l, i) => text(x, y + 14 * i, l, cls)).join("");

// A table that reads well aloud: a caption, column headers, row headers.
function tableHtml({ caption, columns, rows }) {
  return `<table><caption>${esc(caption)}</caption><thead><tr>${columns.map((c) => `<th scope="col">${esc(c)}</th>`).join("")}</tr></thead><tbody>${rows
    .map((r) => `<tr>${r.map((v, i) => (i ? `<td>${esc(v)}</td>` : `<th scope="row">${esc(v)}</th>`)).join("")}</tr>`).join("")}</tbody></table>`;
}
const twinText = (twin) => [twin.intro, ...(twin.rows?.length ? [twin.columns.join("\t"), ...twin.rows.map((r) => r.join("\t"))] : [])].join("\n");
