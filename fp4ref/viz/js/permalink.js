// permalink: a player's step and view as an address, or as two lines for a notebook.

// A page may have several players; the address counts them from 1.
const placeOnPage = ({ root }) => [...document.querySelectorAll(".fp4ref-player")].indexOf(root) + 1;

function permalink(player) {
  const { schedules, schedule } = player, other = schedules && schedule !== schedules.names[0];
  if (!player.model.get("static")) return `${other ? `player.schedule = "${schedule}"; ` : ""}player.step = ${player.step}; player.view = "${player.view.id}"`;
  const at = placeOnPage(player), url = new URL(location.href);
  url.search = new URLSearchParams({ ...(at > 1 ? { player: at } : {}), ...(other ? { schedule } : {}), view: player.view.id, step: player.step });
  return url.href;
}

function showPermalink(player) {
  const words = permalink(player);
  player.$(".fp4ref-link").innerHTML = player.model.get("static") ? `<a href="${esc(words)}">${esc(player.T("foot.here"))}</a>` : `<code>${esc(words)}</code>`;
  navigator.clipboard?.writeText(words).catch(() => {});
}

function followPermalink(player) {
  const { model, views } = player, query = new URLSearchParams(location.search);
  if (!model.get("static") || !(query.has("view") || query.has("step"))) return;
  if (+(query.get("player") ?? 1) !== placeOnPage(player)) return;
  if (player.schedules?.names.includes(query.get("schedule"))) { model.set("schedule", query.get("schedule")); useSchedule(player, query.get("schedule")); }
  if (query.has("step")) model.set("step", player.clamp(+query.get("step")));
  if (views.some((v) => v.id === query.get("view"))) model.set("view", query.get("view"));
  player.root.scrollIntoView({ block: "start" });
}
