// follow: views look where the event acts, until the reader picks a place.

const FOLLOWED = ["sm", "barrier", "operand", "stage", "lane", "column"]; // what a pick of ends it

function setFollow(player, on) {
  player.following = on;
  const box = player.$('[data-act="follow"]');
  if (box) box.checked = on;
}

function followEvent(player, event) {
  if (!player.following) return;
  const { ui, machine } = player;
  followBarrier(ui.barriers, machine, event);
  followStage(ui.smem, machine, event);
  followCell(ui.tmem, machine, event);
  const copied = event.operation === "tcgen05.cp" ? partAt(machine, event.reads[0]) : undefined;
  if (ui.scales && copied && copied.name in machine.header.scales) Object.assign(ui.scales, { operand: copied.name, stage: "auto" });
  fillControls(player);
}

function followBarrier(mine, machine, event) {
  const id = barrierOf(machine, event);
  if (!mine || id === undefined) return;
  mine.barrier = String(id);
  if ("sm" in mine) mine.sm = String(machine.barriers[id].sm);
}

// The part of shared memory that a range begins in.
function partAt(machine, [space, start] = []) {
  const base = machine.spaces[space]?.base;
  return base === undefined ? undefined : machine.header.maps.smem?.find((p) => start - base >= p.offset && start - base < p.offset + p.nbytes);
}
function followStage(mine, machine, event) {
  if (!mine) return;
  const range = [...event.writes, ...event.reads].find((r) => ["A", "B", "SFA", "SFB"].includes(partAt(machine, r)?.name));
  if (!range) return;
  const part = partAt(machine, range);
  mine.stage = String(part.stage);
  if (["A", "B"].includes(part.name)) mine.operand = part.name;
  if ("sm" in mine) mine.sm = range[0].slice(4);
}

// The first cell that is written in TMEM, or read.
function followCell(mine, machine, event) {
  const found = [...event.writes, ...event.reads].find(([space]) => space.startsWith("tmem") && machine.spaces[space]);
  if (!mine || !found) return;
  const [space, start] = found;
  Object.assign(mine, { lane: Math.floor(start / 2048), column: (start % 2048) / 4 });
  if ("sm" in mine) mine.sm = space.slice(4);
}
