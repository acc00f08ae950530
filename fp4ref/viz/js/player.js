// player: the shell around the views: steps, tabs, keys, links, text twins.
// Hosts: anywidget (a live kernel) and a static page (a model of four functions).

const VIEWS = [timelineView, barriersView, smemView, tmemView, scalesView, mmaView, tilesView, sidesView, quantiserView, swizzleView, faultView];
const SPEEDS = { slow: 900, normal: 350, fast: 70 };
let players = 0;

const translator = (strings) => (key, values = {}) =>
  (strings[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));

function bytesOf(packet) {
  if (typeof packet === "string") return Uint8Array.from(atob(packet), (c) => c.charCodeAt(0));
  return packet instanceof DataView ? new Uint8Array(packet.buffer, packet.byteOffset, packet.byteLength) : new Uint8Array(packet);
}

async function render({ model, el }) {
  const { header, payload } = await unpack(bytesOf(model.get("packet")));
  const T = translator(header.strings), m = new Machine(header, payload), id = `fp4p${++players}`;
  const views = VIEWS.filter((v) => header.views.includes(v.id));
  const ui = {}, last = m.length - 1;
  let timer = null, view = null, drawn = null;

  const root = document.createElement("section");
  root.className = "fp4ref-player";
  root.setAttribute("aria-label", header.title || T("player"));
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves these keys to the player
  root.innerHTML = `
    <div class="fp4ref-title">${esc(header.title)}</div>
    ${last >= 0 ? `<div class="fp4ref-bar" role="toolbar" aria-label="${esc(T("toolbar"))}">
      ${[["rewind", "|◀"], ["back", "◀"], ["play", "▶"], ["forward", "▶|"]].map(([a, sign]) => `<button type="button" data-act="${a}" title="${esc(T(`bar.${a}`))}" aria-label="${esc(T(`bar.${a}`))}">${sign}</button>`).join("")}
      <input type="range" min="0" max="${last}" aria-label="${esc(T("bar.slider"))}">
      <output class="fp4ref-step"></output>
      <label>${esc(T("bar.speed"))} <select data-act="speed">${Object.keys(SPEEDS).map((s) => `<option value="${s}"${s === "normal" ? " selected" : ""}>${esc(T(`speed.${s}`))}</option>`).join("")}</select></label>
    </div><div class="fp4ref-event"></div>` : ""}
    <div class="fp4ref-tabs" role="tablist" aria-label="${esc(T("tabs"))}">${views.map((v) => `<button type="button" role="tab" id="${id}-tab-${v.id}" aria-controls="${id}-panel" data-view="${v.id}">${esc(T(`view.${v.id}`))}</button>`).join("")}</div>
    <div class="fp4ref-panel" role="tabpanel" id="${id}-panel">
      <form class="fp4ref-controls"></form>
      <figure><div class="fp4ref-picture"></div><figcaption></figcaption></figure>
      <details class="fp4ref-twin"><summary>${esc(T("twin"))}</summary><div></div></details>
    </div>
    <div class="fp4ref-foot"><button type="button" data-act="save">${esc(T("foot.save"))}</button>
      <button type="button" data-act="link">${esc(T("foot.link"))}</button><output class="fp4ref-link"></output>
      <span class="fp4ref-keys">${esc(T(last >= 0 ? "foot.keys" : "foot.keys0"))}</span></div>
    <div class="fp4ref-live" aria-live="polite"></div>`;
  if (views.length < 2) root.querySelector(".fp4ref-tabs").hidden = true;
  el.replaceChildren(root);
  const $ = (s) => root.querySelector(s);
  const clamp = (k) => Math.max(0, Math.min(last, Math.round(k) || 0));
  const step = () => clamp(model.get("step"));
  const context = () => ({ m, step: step(), ui: ui[view.id], T, id, go, refresh, announce, width: Math.max(300, Math.floor($(".fp4ref-picture").clientWidth || 680)) });

  function refresh() { fillControls(); draw(); }
  function announce(words) { $("figcaption").textContent = words; $(".fp4ref-live").textContent = words; }
  function go(k) {
    model.set("step", clamp(k));
    model.save_changes();
  }
  function show(name) {
    if (!views.some((v) => v.id === name)) return;
    model.set("view", name);
    model.save_changes();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    const play = $('[data-act="play"]');
    if (play) { play.textContent = "▶"; play.setAttribute("aria-label", T("bar.play")); play.title = T("bar.play"); }
  }
  function play() {
    if (timer) return stop();
    if (step() >= last) go(0);
    const button = $('[data-act="play"]');
    button.textContent = "❚❚"; button.setAttribute("aria-label", T("bar.pause")); button.title = T("bar.pause");
    timer = setInterval(() => (step() >= last || !root.isConnected ? stop() : go(step() + 1)), SPEEDS[$('[data-act="speed"]').value]);
  }

  // What is picked in one view is picked in the others.
  function link() {
    const mine = ui[view.id], tmem = ui.tmem, scales = ui.scales, mma = ui.mma;
    const parts = header.maps?.tmem ?? [];
    if (view.id === "tmem") {
      const owner = tmemView.owner(m, +mine.column);
      if (owner?.kind === "accumulator" && mma) { mma.m = mine.lane; mma.n = +mine.column - owner.column; }
      else if (owner && scales) {
        const column = +mine.column - owner.column;
        scales.operand = owner.name.slice(0, 3);
        scales.row = (column % 4) * 32 + (+mine.lane % 32);
        scales.group = Math.floor(column / 4) * 4;
      }
    } else if (view.id === "scales" && tmem) {
      const p = scalesView.place(m, mine), owner = parts.find((x) => x.name === `${mine.operand} 0`);
      if (owner) { tmem.lane = p.lane; tmem.column = owner.column + p.column; }
    } else if (view.id === "mma" && tmem) {
      tmem.lane = mine.m;
      const e = m.event(mmaView.landings(m).filter((s) => s <= step()).at(-1) ?? -1);
      tmem.column = +mine.n + ((e?.operands.d_tmem ?? 0) & 0xffff);
    } else if (view.id === "smem" && scales && "stage" in scales) scales.stage = mine.stage;
  }

  function setUi(changes, from) {
    for (const change of changes.split(";")) {
      const [key, value] = change.split("=");
      ui[view.id][key] = value;
      view.changed?.(context(), key);
    }
    link();
    if (from !== "controls") fillControls();
    draw();
  }
  function fillControls() {
    for (const c of view.controls(context())) {
      if (c.sync) ui[view.id][c.id] = c.sync(context());
      const input = $(`[data-control="${c.id}"]`);
      if (input && input.tagName !== "BUTTON" && input !== document.activeElement) input.value = ui[view.id][c.id];
    }
  }
  function buildControls() {
    $(".fp4ref-controls").innerHTML = view.controls(context()).map((c) =>
      c.type === "button" ? `<button type="button" data-control="${c.id}"${c.key ? ` aria-keyshortcuts="${c.key}"` : ""}>${esc(c.label)}${c.key ? ` <kbd>${c.key}</kbd>` : ""}</button>`
      : c.type === "select" ? `<label>${esc(c.label)} <select data-control="${c.id}">${c.options.map(([v, l]) => `<option value="${esc(v)}">${esc(l)}</option>`).join("")}</select></label>`
      : `<label>${esc(c.label)} <input data-control="${c.id}" type="number"${attributes({ min: c.min, max: c.max, step: c.step })}></label>`).join("");
    fillControls();
  }

  function eventLine() {
    const e = m.event(step());
    if (!e) return;
    const frame = e.frames.at(-1), where = T("event.where", { sm: e.sm, cta: e.cta.join(", "), agent: e.agent });
    const operands = Object.entries(e.operands).map(([k, v]) => `${k} ${typeof v === "number" && /desc|taddr|tmem|mbar|smem|address|dst|response|mask/.test(k) ? hex(v) : Array.isArray(v) ? `{${v.join(", ")}}` : v}`).join(", ");
    $(".fp4ref-event").innerHTML = `<div><b>${esc(e.operation)}</b> <span>${esc(T(`kind.${e.kind}`))}</span> · ${esc(where)}${e.issued >= 0 ? ` · ${esc(T(e.kind === "land" ? "event.issued" : "event.waited", { step: e.issued }))}` : ""}${frame ? ` · ${esc(T("event.frame", { id: frame, title: header.frames[frame] ?? "" }))}` : ""}</div><div class="fp4ref-code"><span>${esc(e.source)}</span> <code>${esc(e.text)}</code></div><div class="fp4ref-operands">${esc(operands)}</div>`;
    return `${T("step.of", { step: e.step, last })}: ${e.agent} ${e.operation} ${T(`kind.${e.kind}`)}`;
  }

  function draw() {
    if (!root.isConnected && drawn) return;
    const k = step(), name = model.get("view");
    const next = views.find((v) => v.id === name) ?? views[0];
    if (next !== view) {
      view = next;
      if (!ui[view.id]) ui[view.id] = Object.fromEntries(view.controls({ m, T, ui: {}, step: k }).filter((c) => c.type !== "button").map((c) => [c.id, c.value]));
      for (const v of views) ui[v.id] ??= Object.fromEntries(v.controls({ m, T, ui: {}, step: k }).filter((c) => c.type !== "button").map((c) => [c.id, c.value]));
      buildControls();
      root.querySelectorAll("[role=tab]").forEach((t) => { const on = t.dataset.view === view.id; t.setAttribute("aria-selected", on); t.tabIndex = on ? 0 : -1; });
      $(".fp4ref-panel").setAttribute("aria-labelledby", `${id}-tab-${view.id}`);
    }
    if (last >= 0) {
      m.seek(k);
      $("input[type=range]").value = k;
      $("input[type=range]").setAttribute("aria-valuetext", T("step.of", { step: k, last }));
      $(".fp4ref-step").textContent = `${k} / ${last}`;
      const words = eventLine();
      if (!timer) $(".fp4ref-live").textContent = words;
    }
    const c = context(), twin = view.twin(c), label = `${T(`view.${view.id}`)}. ${twin.intro}`;
    const { svg, width, height } = view.draw(c);
    $(".fp4ref-picture").innerHTML = `<svg role="img" viewBox="0 0 ${width} ${Math.ceil(height)}" width="${width}" height="${Math.ceil(height)}" aria-label="${esc(label)}">${svg}</svg>`;
    $("figcaption").textContent = twin.intro;
    if ($("details").open) $("details > div").innerHTML = twin.rows?.length ? tableHtml(twin) : "";
    root.dataset.step = k;
    root.dataset.view = view.id;
    drawn = { label, twin, width };
  }

  function permalink() {
    if (!model.get("static")) return `player.step = ${step()}; player.view = "${view.id}"`;
    const at = [...document.querySelectorAll(".fp4ref-player")].indexOf(root) + 1, url = new URL(location.href);
    url.search = new URLSearchParams({ ...(at > 1 ? { player: at } : {}), view: view.id, step: step() });
    return url.href;
  }
  function save() {
    const words = twinText(drawn.twin), data = exportSvg($("svg"), drawn.label, words);
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([data], { type: "image/svg+xml" }));
    a.download = `fp4ref-${view.id}-${step()}.svg`;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  }

  root.addEventListener("click", (e) => {
    const act = e.target.closest("[data-act]")?.dataset.act, tab = e.target.closest("[role=tab]"), control = e.target.closest("button[data-control]");
    if (tab) show(tab.dataset.view);
    else if (control) view.controls(context()).find((c) => c.id === control.dataset.control)?.action({ ...context() });
    else if (act === "rewind") { stop(); go(0); } else if (act === "back") { stop(); go(step() - 1); }
    else if (act === "forward") { stop(); go(step() + 1); } else if (act === "play") play();
    else if (act === "save") save();
    else if (act === "link") {
      const words = permalink(), out = $(".fp4ref-link");
      out.innerHTML = model.get("static") ? `<a href="${esc(words)}">${esc(T("foot.here"))}</a>` : `<code>${esc(words)}</code>`;
      navigator.clipboard?.writeText(words).catch(() => {});
    } else if (e.target.dataset?.step) { stop(); go(+e.target.dataset.step); }
    else if (e.target.dataset?.ui) setUi(e.target.dataset.ui);
    else if (e.target.dataset?.grid && view.pick) { const p = point(e); setUi(view.pick(p.x, p.y, e.target.dataset.grid.split(",").map(Number))); }
    else if (e.target.dataset?.area && view.area) {
      const [x, y, w, h, ...which] = e.target.dataset.area.split(",").map(Number), p = point(e, e.target);
      setUi(view.area(context(), which, (p.x - x) / w, (p.y - y) / h));
    }
  });
  function point(e, node) {
    const target = node ?? $("svg"), p = new DOMPoint(e.clientX, e.clientY).matrixTransform(target.getScreenCTM().inverse());
    return p;
  }
  root.addEventListener("input", (e) => {
    if (e.target.matches("input[type=range]")) { stop(); go(+e.target.value); }
    else if (e.target.dataset.act === "speed" && timer) { stop(); play(); }
    else if (e.target.dataset.control) {
      const t = e.target;
      const control = view.controls(context()).find((c) => c.id === t.dataset.control);
      if (t.type === "number" && (t.value === "" || !t.validity.valid || control.valid?.(+t.value) === false)) return t.setAttribute("aria-invalid", "true");
      t.removeAttribute("aria-invalid");
      setUi(`${t.dataset.control}=${t.type === "number" ? +t.value : t.value}`, "controls");
      fillControls();
    }
  });
  root.addEventListener("focusout", (e) => { // a refused value does not stay
    if (!e.target.matches?.("input[aria-invalid]")) return;
    e.target.removeAttribute("aria-invalid");
    e.target.value = ui[view.id][e.target.dataset.control];
  });
  $(".fp4ref-controls").addEventListener("submit", (e) => e.preventDefault());
  $("details").addEventListener("toggle", () => draw());
  const readout = (e) => { const tip = e.target.dataset?.tip; if (tip) $("figcaption").textContent = tip; };
  $(".fp4ref-picture").addEventListener("pointerover", readout);
  $(".fp4ref-picture").addEventListener("pointerleave", () => { if (drawn) $("figcaption").textContent = drawn.twin.intro; });
  let dragging = null;
  $(".fp4ref-picture").addEventListener("pointerdown", (e) => {
    if (e.target.dataset?.drag === undefined || !view.drag) return;
    dragging = +e.target.dataset.drag;
    $(".fp4ref-picture").setPointerCapture(e.pointerId);
    ui[view.id].element = dragging;
    root.focus({ preventScroll: true });
    e.preventDefault();
  });
  $(".fp4ref-picture").addEventListener("pointermove", (e) => {
    if (dragging === null && e.target.dataset?.grid && view.hover) {
      const p = point(e);
      $("figcaption").textContent = view.hover(context(), p.x, p.y, e.target.dataset.grid.split(",").map(Number));
    }
    if (dragging === null) return;
    view.drag(context(), dragging, point(e).x, drawn.width);
    fillControls();
    draw();
  });
  const drop = () => { dragging = null; };
  $(".fp4ref-picture").addEventListener("pointerup", drop);
  $(".fp4ref-picture").addEventListener("pointercancel", drop);

  root.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const t = e.target, typing = t.matches("input:not([type=range]), select, textarea");
    if (typing) return;
    let used = true;
    if (t.matches("[role=tab]") && ["ArrowRight", "ArrowLeft"].includes(e.key)) {
      const i = views.indexOf(view) + (e.key === "ArrowRight" ? 1 : -1);
      show(views[(i + views.length) % views.length].id);
      $(`#${id}-tab-${view.id}`).focus();
    } else if (/^[1-9]$/.test(e.key) && views[+e.key - 1]) show(views[+e.key - 1].id);
    else if (view.controls(context()).some((c) => c.key === e.key)) view.controls(context()).find((c) => c.key === e.key).action(context());
    else if (last < 0) used = false;
    else if (e.key === "ArrowRight") { stop(); go(step() + (e.shiftKey ? 10 : 1)); }
    else if (e.key === "ArrowLeft") { stop(); go(step() - (e.shiftKey ? 10 : 1)); }
    else if (e.key === "PageDown") { stop(); go(step() + 50); } else if (e.key === "PageUp") { stop(); go(step() - 50); }
    else if (e.key === "Home") { stop(); go(0); } else if (e.key === "End") { stop(); go(last); }
    else if (e.key === " " && !t.matches("button, summary, a")) play();
    else used = false;
    if (used) { e.preventDefault(); e.stopPropagation(); }
  });

  if (model.get("static")) {
    const query = new URLSearchParams(location.search), mine = [...document.querySelectorAll(".fp4ref-player")].indexOf(root) + 1;
    if ((query.has("view") || query.has("step")) && +(query.get("player") ?? 1) === mine) {
      if (query.has("step")) model.set("step", clamp(+query.get("step")));
      if (views.some((v) => v.id === query.get("view"))) model.set("view", query.get("view"));
      root.scrollIntoView({ block: "start" });
    }
  }
  model.on("change:step", draw);
  model.on("change:view", draw);
  let seen = 0;
  const sizes = new ResizeObserver(() => {
    const now = $(".fp4ref-picture").clientWidth;
    if (Math.abs(now - seen) > 4) { seen = now; requestAnimationFrame(draw); }
  });
  sizes.observe(root);
  draw();
  root.fp4ref = { machine: m, go, show, setUi, draw, arithmetic: { dotElement, dotTile, scaleParts, roundTowardZero, encodeE2m1, encodeUe4m3, encodeUe8m0, quantiseBlock, floatOf, bitsOf } };
  return () => { stop(); sizes.disconnect(); model.off("change:step", draw); model.off("change:view", draw); };
}

export default { render };
