// keyboard: every step, view and button by a key. A field that is typed in keeps its keys.

function listenToKeys(player) {
  player.root.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target.matches("input:not([type=range]), select, textarea")) return;
    if (keyOfViews(player, e) || keyOfControls(player, e) || keyOfSteps(player, e)) { e.preventDefault(); e.stopPropagation(); }
  });
}

// Each says whether it used the key.
function keyOfViews(player, { key, target }) {
  const { views, id } = player;
  if (target.matches("[role=tab]") && ["ArrowRight", "ArrowLeft"].includes(key)) {
    const i = views.indexOf(player.view) + (key === "ArrowRight" ? 1 : -1);
    player.show(views[(i + views.length) % views.length].id);
    player.$(`#${id}-tab-${player.view.id}`).focus();
    return true;
  }
  const view = /^[1-9]$/.test(key) && views[+key - 1];
  if (view) player.show(view.id);
  return Boolean(view);
}

function keyOfControls(player, { key, target }) {
  const context = player.context(), control = player.view.controls(context).find((c) => c.key === key);
  control?.action(context);
  if (control || player.last >= 0 || target.matches("button, select, input, summary, a")) return Boolean(control);
  player.view.keys?.[key]?.(context);
  return Boolean(player.view.keys?.[key]);
}

function keyOfSteps(player, { key, shiftKey, target }) {
  const { step, last } = player, hop = shiftKey ? 10 : 1;
  if (last < 0) return false;
  if (key === " " && !target.matches("button, summary, a")) { playOrPause(player); return true; }
  if (key === "[" || key === "]") { hopMilestone(player, key === "]" ? 1 : -1); return true; }
  const to = { ArrowRight: step + hop, ArrowLeft: step - hop, PageDown: step + 50, PageUp: step - 50, Home: 0, End: last }[key];
  if (to !== undefined) stopAt(player, to);
  return to !== undefined;
}
