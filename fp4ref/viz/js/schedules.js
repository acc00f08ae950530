// schedules: one problem under several schedules, each a machine of its own. A switch keeps the hardware event.

class Schedules {
  constructor(header, machine, payload) {
    const { names, others, keys, landings, same } = header.schedules;
    Object.assign(this, { names, others, keys, landings, same, payload, main: machine, machines: new Map([[names[0], machine]]) });
  }
  machine(name) {
    if (!this.machines.has(name)) {
      const { scales, sides, microscope, fault } = this.main.header, header = { ...this.others[this.names.indexOf(name) - 1], scales, microscope, fault };
      if (sides) header.sides = this.sidesOf(sides, name);
      this.machines.set(name, new Machine(header, this.payload));
    }
    return this.machines.get(name);
  }
  // The pairs of both sides by the steps of another schedule, in the order in which they land there.
  sidesOf(sides, name) {
    const own = this.landings[this.names.indexOf(name)], pairs = sides.pairs.map((p, i) => ({ ...p, step: own[i] ?? -1 })).sort((a, b) => a.step - b.step);
    return { ...sides, pairs, first: pairs.findIndex((p) => p.different) };
  }
  // The hardware event of a step: the one that it issues or lands, else the last to land on its SM; -1 before the first.
  eventAt(name, step) {
    const own = this.landings[this.names.indexOf(name)], { issued, kind, sm } = this.machine(name).columns;
    if (kind[step] === 1) { const i = own.findIndex((s) => s >= 0 && issued[s] === step); if (i >= 0) return i; }
    let found = -1;
    own.forEach((s, i) => { if (s >= 0 && s <= step && sm[s] === sm[step] && (found < 0 || s > own[found])) found = i; });
    return found;
  }
  // Where another schedule does the same: issues it, or lands it.
  step(from, to, step) {
    const i = this.eventAt(from, step), landed = i < 0 ? -1 : this.landings[this.names.indexOf(to)][i];
    if (landed < 0) return 0;
    const issues = this.machine(from).columns.kind[step] === 1 && this.machine(from).columns.issued[this.landings[this.names.indexOf(from)][i]] === step;
    return issues ? this.machine(to).columns.issued[landed] : landed;
  }
}

function switchSchedule(player, name) {
  const { model, schedules, schedule } = player;
  if (!schedules.names.includes(name) || name === schedule) return;
  const step = schedules.step(schedule, name, player.step);
  stopPlaying(player);
  useSchedule(player, name);
  model.set("schedule", name);
  model.set("step", step);
  model.save_changes();
  player.refresh();
}

// Show the machine of a schedule; what belonged to the one before is forgotten.
function useSchedule(player, name) {
  const machine = player.schedules.machine(name);
  Object.assign(player, { machine, header: { ...player.header, ...machine.header }, schedule: name, last: machine.length - 1, milestones: null, followed: null });
  player.$("input[type=range]").max = player.last;
  player.$('[data-act="schedule"]').value = name;
  player.$('[data-act="stop"]').innerHTML = optionsHtml(stopOptions(player), "");
  for (const view of player.views) keepPicks(player, view);
  if (player.view) buildControls(player);
}

// Picks stay where the other trace has them too; barriers are numbered anew in each.
function keepPicks(player, view) {
  const before = player.ui[view.id] ?? {}, { machine: m, T, step } = player;
  player.ui[view.id] = firstPicks(player, view);
  for (const c of view.controls({ m, T, ui: {}, step })) {
    const there = c.type === "select" ? c.options.some(([v]) => v === before[c.id]) : c.id in before;
    if (there && c.id !== "barrier") player.ui[view.id][c.id] = before[c.id];
  }
}

// Whether an operation's landing is a load, or an MMA.
const isLoad = (m, i) => m.columns.kind[i] === 2 && m.tables.operation[m.columns.operation[i]].endsWith(".load");
const isMma = (m, i) => m.columns.kind[i] === 2 && m.tables.operation[m.columns.operation[i]] === "tcgen05.mma";
const inFlight = (m, step, which) => m.openAt(step).filter(({ to }) => which(m, to)).length;
