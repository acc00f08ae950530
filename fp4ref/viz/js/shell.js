// shell: the HTML around the views: title, toolbar, event, tabs, panel, foot.

function shell(player) {
  const { header, T, last, views } = player;
  const root = document.createElement("section");
  root.className = "fp4ref-player";
  root.setAttribute("aria-label", header.title || T("player"));
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves these keys to the player
  root.innerHTML = `
    <div class="fp4ref-title">${esc(header.title)}</div>
    ${last >= 0 ? toolbarHtml(player) : ""}
    ${tabsHtml(player)}
    ${panelHtml(player)}
    ${footHtml(player)}
    <div class="fp4ref-live" aria-live="polite"></div><div class="fp4ref-tip" aria-hidden="true" hidden></div>`;
  if (views.length < 2) root.querySelectorAll(".fp4ref-tabs, .fp4ref-pick").forEach((e) => { e.hidden = true; });
  if (!document.fullscreenEnabled) root.querySelector('[data-act="full"]').hidden = true;
  return root;
}

const buttonHtml = (T, [act, sign, key]) => `<button type="button" data-act="${act}" title="${esc(T(`bar.${act}`))}" aria-label="${esc(T(`bar.${act}`))}"${key ? ` aria-keyshortcuts="${key}"` : ""}>${sign}</button>`;
const optionsHtml = (options, chosen) => options.map(([v, l]) => `<option value="${esc(v)}"${v === chosen ? " selected" : ""}>${esc(l)}</option>`).join("");
const selectHtml = (act, label, options, chosen) => `<label>${esc(label)} <select data-act="${act}">${optionsHtml(options, chosen)}</select></label>`;

function toolbarHtml(player) {
  const { T, last, header } = player, speeds = Object.keys(SPEEDS).map((s) => [s, T(`speed.${s}`)]), paces = PACES.map((p) => [p, T(`pace.${p}`)]);
  return `<div class="fp4ref-bar" role="toolbar" aria-label="${esc(T("toolbar"))}">
      ${[["rewind", "|◀"], ["back", "◀"], ["play", "▶"], ["forward", "▶|"], ["before", "◀◆", "["], ["after", "◆▶", "]"]].map((b) => buttonHtml(T, b)).join("")}
      <div class="fp4ref-slide"><input type="range" min="0" max="${last}" aria-label="${esc(T("bar.slider"))}"><div class="fp4ref-strip"></div></div>
      <output class="fp4ref-step"></output>
      <label title="${esc(T("bar.follow.why"))}"><input type="checkbox" data-act="follow" checked> ${esc(T("bar.follow"))}</label>
      ${player.schedules ? selectHtml("schedule", T("bar.schedule"), player.schedules.names.map((name) => [name, name]), player.schedule) : ""}
      <details class="fp4ref-pace"><summary>${esc(T("bar.more"))}</summary><div>${selectHtml("speed", T("bar.speed"), speeds, "normal")}
      ${selectHtml("pace", T("bar.pace"), paces, header.pace ?? "events")}
      ${selectHtml("stop", T("bar.stop"), stopOptions(player), "")} ${buttonHtml(T, ["run", esc(T("bar.run"))])}</div></details>
    </div><div class="fp4ref-event"></div>`;
}

function tabsHtml({ T, id, views }) {
  return `<div class="fp4ref-pick">${selectHtml("view", T("tabs.pick"), views.map((v) => [v.id, T(`view.${v.id}`)]), "")}</div><div class="fp4ref-tabs" role="tablist" aria-label="${esc(T("tabs"))}">${views.map((v) => `<button type="button" role="tab" id="${id}-tab-${v.id}" aria-controls="${id}-panel" data-view="${v.id}">${esc(T(`view.${v.id}`))}</button>`).join("")}</div>`;
}

function panelHtml({ T, id }) {
  return `<div class="fp4ref-panel" role="tabpanel" id="${id}-panel">
      <form class="fp4ref-controls"></form>
      <figure><div class="fp4ref-picture"></div><figcaption></figcaption></figure>
      <details class="fp4ref-twin"><summary>${esc(T("twin"))}</summary><div></div></details>
    </div>`;
}

function footHtml({ T, last, views }) {
  return `<div class="fp4ref-foot"><button type="button" data-act="save">${esc(T("foot.save"))}</button>
      <button type="button" data-act="link">${esc(T("foot.link"))}</button><output class="fp4ref-link"></output>
      <button type="button" data-act="full">${esc(T("foot.full"))}</button><button type="button" data-act="wide" hidden>${esc(T("foot.wide"))}</button>
      <span class="fp4ref-keys">${esc(T(last >= 0 ? "foot.keys" : views[0].keys ? "quantiser.keys" : "foot.keys0"))}</span></div>`;
}

const IN_HEX = /desc|taddr|tmem|mbar|smem|address|dst|response|mask/; // operands that are addresses or bits
function operandWords([name, value]) {
  const shown = typeof value === "number" && IN_HEX.test(name) ? hex(value) : Array.isArray(value) ? `{${value.join(", ")}}` : value;
  return `${name} ${shown}`;
}

// A frame is a link where the frame index stands beside the page.
function frameHtml(index, id, words, known) {
  const place = `#frame-${id.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return index && known ? `<a href="${esc(index + place)}">${esc(words)}</a>` : esc(words);
}

// PTX's section on an operation, and the file of CUTLASS in which its frame happens.
function sourcesHtml({ T, header: { sources } }, e) {
  const link = (key, [name, address]) => ` · <a href="${esc(address)}" title="${esc(name)}">${esc(T(key, { name: name.split("/").at(-1) }))}</a>`;
  const section = sources?.ptx[e.operation], file = sources?.cutlass[e.frames.at(-1)];
  return (section ? link("event.ptx", section) : "") + (file ? link("event.cutlass", file) : "");
}

// What happened, in a sentence; how it is written, behind a fold that stays as the reader left it.
function eventHtml(player, e) {
  const { T, header, detailed, model } = player;
  const frame = e.frames.at(-1), where = T("event.where", { sm: e.sm, cta: e.cta.join(", "), agent: e.agent });
  const issued = e.issued >= 0 ? ` · ${esc(T(e.kind === "land" ? "event.issued" : "event.waited", { step: e.issued }))}` : "";
  const of = frame ? ` · ${frameHtml(model.get("frames"), frame, T("event.frame", { id: frame, title: header.frames[frame] ?? "" }), frame in header.frames)}` : "";
  const stops = header.fault && e.step === player.last ? T("event.stops", { type: header.fault.type, words: e.words }) : e.words;
  return `<p class="fp4ref-says">${esc(stops)}</p><div class="fp4ref-where">${esc(where)}${issued}${of}${sourcesHtml(player, e)}</div>` +
    `<details class="fp4ref-details"${detailed ? " open" : ""}><summary><b>${esc(e.operation)}</b> ${esc(T(`kind.${e.kind}`))}</summary>` +
    `<div class="fp4ref-code"><span>${esc(e.source)}</span> <code>${esc(e.text)}</code></div>` +
    `<div class="fp4ref-operands">${esc(Object.entries(e.operands).map(operandWords).join(", "))}</div></details>`;
}

// What a screen reader says of a step.
const eventWords = ({ T, last }, e) => `${T("step.of", { step: e.step, last })}: ${e.words}`;
