// tips: words beside the pointer, and under a finger; the caption has the same.

function showTip(player, e, words) {
  const tip = player.$(".fp4ref-tip"), root = player.root.getBoundingClientRect();
  player.$("figcaption").textContent = words;
  tip.textContent = words;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect(), below = e.clientY - root.top + 18;
  tip.style.left = `${Math.max(2, Math.min(root.width - width - 8, e.clientX - root.left + 12))}px`;
  tip.style.top = `${below + height < root.height ? below : e.clientY - root.top - height - 10}px`;
}

function hideTip(player) {
  player.$(".fp4ref-tip").hidden = true;
  if (player.drawn) player.$("figcaption").textContent = captionOf(player);
}

// What the picture says of the place under the pointer; empty if nothing.
function tipAt(player, e) {
  const { tip, grid } = e.target.dataset ?? {};
  if (!grid || !player.view.hover) return tip ?? "";
  const p = pointIn(player.$(".fp4ref-picture svg"), e);
  return player.view.hover(player.context(), p.x, p.y, numbers(grid));
}

// A finger has no hover: what it touched stays said until it touches something else.
function listenToHover(player) {
  const parts = [".fp4ref-picture", ".fp4ref-strip"].map((name) => player.$(name)).filter(Boolean);
  const look = (e) => {
    const words = tipAt(player, e);
    if (words) showTip(player, e, words);
    else if (e.pointerType !== "touch") hideTip(player);
  };
  for (const part of parts) {
    part.addEventListener("pointermove", look);
    part.addEventListener("pointerdown", look);
    part.addEventListener("pointerleave", (e) => { if (e.pointerType !== "touch") hideTip(player); });
  }
  player.root.addEventListener("pointerdown", (e) => { if (e.pointerType === "touch" && !tipAt(player, e)) hideTip(player); });
  player.root.addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(player); });
}
