// milestones: what matters on the slider's strip, by key and button; what play visits, and where it stops.

function milestonesOf(player) {
  player.milestones ??= Object.entries(player.header.milestones ?? {}).map(([step, kind]) => ({ step: +step, kind }));
  return player.milestones;
}

// The next one of sorted steps after `step`, or before it; undefined if there is none.
const nextOf = (steps, step, way) => (way > 0 ? steps.find((s) => s > step) : steps.filter((s) => s < step).at(-1));

function hopMilestone(player, way) {
  const to = nextOf(milestonesOf(player).map((each) => each.step), player.step, way);
  if (to !== undefined) stopAt(player, to);
  else player.announce(player.T(way > 0 ? "milestone.last" : "milestone.none"));
}

// The strip under the slider: where bytes are kept, tiles as chapters, milestones as marks.
function stripSvg(player, width) {
  const { last, header, T } = player, x = (s) => 8 + (s / Math.max(1, last)) * (width - 16); // the slider's thumb is 16 wide
  let out = rect(x(0), 3, x(last) - x(0), 8, "lane");
  for (const [from, to] of header.kept ?? []) out += rect(x(from), 3, Math.max(1, x(to) - x(from)), 8, "c-barrier", { "data-tip": T("strip.kept", { from, to }) });
  for (const { step: s, kind } of milestonesOf(player)) {
    const tip = `${s}: ${T(`milestone.${kind}`)}`, tall = ["stored", "summed", "first"].includes(kind);
    out += rect(x(s) - 1, tall ? 0 : 3, 2, tall ? 14 : 8, tall ? "ink-strong" : "ink-soft", { "data-step": s, "data-tip": tip });
  }
  return out;
}
// Only the cursor moves from step to step.
function drawStrip(player) {
  const strip = player.$(".fp4ref-strip");
  if (!strip) return;
  const width = Math.max(100, Math.floor(strip.clientWidth));
  const drawn = `${width} ${player.schedule ?? ""}`, x = 8 + (player.step / Math.max(1, player.last)) * (width - 16);
  if (strip.dataset.drawn !== drawn) strip.innerHTML = `<svg viewBox="0 0 ${width} 14" width="${width}" height="14" aria-hidden="true">${stripSvg(player, width)}<line y1="0" y2="14" class="f-cursor"/></svg>`;
  strip.dataset.drawn = drawn;
  for (const end of ["x1", "x2"]) strip.querySelector(".f-cursor").setAttribute(end, x.toFixed(2));
}

// The steps that play visits: all, or those of a choice made where it began.
const PACES = ["events", "milestones", "warp", "barrier"];
function stepsOfPace(player, pace) {
  const { machine, step } = player;
  if (pace === "milestones") return milestonesOf(player).map((each) => each.step);
  const here = machine.event(step), all = Array.from({ length: machine.length }, (_, i) => i);
  if (pace === "warp") return all.filter((i) => machine.columns.sm[i] === here.sm && machine.tables.agent[machine.columns.agent[i]] === here.agent);
  if (pace === "barrier") { const id = barrierOf(machine, here); return id === undefined ? all : machine.stepsOfBarrier(id); }
  return null;
}
// The barrier that an event changes or waits for.
function barrierOf(machine, event) {
  if (event.barrier.length) return event.barrier[0].id;
  const found = machine.barriers.findIndex((b) => b.sm === event.sm && b.address === event.operands.mbar);
  return found < 0 ? undefined : found;
}

// Steps at which what the reader waits for happens: a barrier flips, or the cell picked in TMEM is written.
function stepsOfStop(player, stop) {
  const { machine, ui } = player;
  if (stop === "cell") {
    const { sm = 0, lane = 0, column = 0 } = ui.tmem ?? {};
    return machine.writersOf(`tmem${sm}`, +lane * 2048 + +column * 4);
  }
  const id = +stop;
  let phase = null;
  return machine.stepsOfBarrier(id).filter((i) => {
    const [, now] = machine.columns.barrier[i].find(([b]) => b === id), flips = phase !== null && now !== phase;
    phase = now;
    return flips;
  });
}
function stopOptions({ machine, T, views }) {
  const many = new Set(machine.barriers.map((b) => b.sm)).size > 1;
  const options = machine.barriers.map((b, i) => [`${i}`, T("stop.flips", { barrier: (many ? `SM ${b.sm} ` : "") + (b.label || hex(b.address)) })]);
  const cell = views.some((v) => v.id === "tmem") ? [["cell", T("stop.cell")]] : [];
  return [["", T("stop.nothing")], ...cell, ...options];
}
function runToStop(player) {
  const stop = player.$('[data-act="stop"]').value, to = stop === "" ? player.last : nextOf(stepsOfStop(player, stop), player.step, 1);
  if (to !== undefined) stopAt(player, to);
  else player.announce(player.T("stop.never"));
}
