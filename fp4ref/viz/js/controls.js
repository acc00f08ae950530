// controls: the fields of a view, the slider and the speed.

const firstPicks = ({ machine, T, step }, view) =>
  Object.fromEntries(view.controls({ m: machine, T, ui: {}, step }).filter((c) => c.type !== "button").map((c) => [c.id, c.value]));

function controlHtml(c) {
  if (c.type === "button") return `<button type="button" data-control="${c.id}"${c.key ? ` aria-keyshortcuts="${c.key}"` : ""}>${esc(c.label)}${c.key ? ` <kbd>${c.key}</kbd>` : ""}</button>`;
  if (c.type === "select") return `<label>${esc(c.label)} <select data-control="${c.id}">${c.options.map(([v, l]) => `<option value="${esc(v)}">${esc(l)}</option>`).join("")}</select></label>`;
  return `<label>${esc(c.label)} <input data-control="${c.id}" type="number"${attributes({ min: c.min, max: c.max, step: c.step })}></label>`;
}

function buildControls(player) {
  player.$(".fp4ref-controls").innerHTML = player.view.controls(player.context()).map(controlHtml).join("");
  fillControls(player);
}

function fillControls(player) {
  const mine = player.ui[player.view.id];
  for (const c of player.view.controls(player.context())) {
    if (c.sync) mine[c.id] = c.sync(player.context());
    const input = player.$(`[data-control="${c.id}"]`);
    if (input && input.tagName !== "BUTTON" && input !== document.activeElement) input.value = mine[c.id];
  }
}

// `changes` as in data-ui: "key=value;key=value".
function setUi(player, changes, from) {
  for (const change of changes.split(";")) {
    const [key, value] = change.split("=");
    player.ui[player.view.id][key] = value;
    if (FOLLOWED.includes(key)) setFollow(player, false);
    player.view.changed?.(player.context(), key);
  }
  sharePick(player);
  if (from !== "controls") fillControls(player);
  player.draw();
}

// A number that cannot be: the field says so, and the caption says what can.
function refuse(player, { label, min, max }, field) {
  field.setAttribute("aria-invalid", "true");
  player.announce(min === undefined ? player.T("refused.value", { label }) : player.T("refused.range", { label, min, max }));
}

function onControl(player, field) {
  const control = player.view.controls(player.context()).find((c) => c.id === field.dataset.control), number = field.type === "number";
  if (number && (field.value === "" || !field.validity.valid || control.valid?.(+field.value) === false)) return refuse(player, control, field);
  field.removeAttribute("aria-invalid");
  setUi(player, `${field.dataset.control}=${number ? +field.value : field.value}`, "controls");
  fillControls(player);
}

function listenToControls(player) {
  player.root.addEventListener("input", ({ target }) => {
    if (target.matches("input[type=range]")) stopAt(player, +target.value);
    else if (["speed", "pace", "stop"].includes(target.dataset.act) && player.timer) { stopPlaying(player); playOrPause(player); }
    else if (target.dataset.act === "view") player.show(target.value);
    else if (target.dataset.act === "schedule") switchSchedule(player, target.value);
    else if (target.dataset.act === "follow") { setFollow(player, target.checked); player.followed = null; player.draw(); }
    else if (target.dataset.control) onControl(player, target);
  });
  player.root.addEventListener("focusout", ({ target }) => { // a refused value does not stay
    if (!target.matches?.("input[aria-invalid]")) return;
    target.removeAttribute("aria-invalid");
    player.$("figcaption").textContent = captionOf(player);
    target.value = player.ui[player.view.id][target.dataset.control];
  });
  player.$(".fp4ref-controls").addEventListener("submit", (e) => e.preventDefault());
}
