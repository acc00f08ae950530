// picks: what is picked in one view is picked in the others.

function sharePick(player) {
  const { ui, view } = player;
  if (view.id === "tmem") shareTmem(player);
  else if (view.id === "scales" && ui.tmem) shareScale(player);
  else if (view.id === "mma" && ui.tmem) shareElement(player);
  else if (ui.recipes && ui.quantiser) Object.assign(view.id === "recipes" ? ui.quantiser : ui.recipes, ui[view.id]);
  else if (view.id === "smem" && ui.scales && "stage" in ui.scales) ui.scales.stage = ui.smem.stage;
}

// A cell of TMEM is an element of D, or holds scale factors.
function shareTmem({ machine, ui: { tmem, mma, scales } }) {
  const owner = tmemView.owner(machine, +tmem.column);
  if (!owner) return;
  const column = +tmem.column - owner.column;
  if (owner.kind === "accumulator" && mma) { mma.m = tmem.lane; mma.n = column; }
  else if (scales) {
    scales.operand = owner.name.slice(0, 3);
    scales.row = (column % 4) * 32 + (+tmem.lane % 32);
    scales.group = Math.floor(column / 4) * 4;
  }
}

function shareScale({ machine, header, ui: { tmem, scales } }) {
  const place = scalesView.place(machine, scales), owner = (header.maps?.tmem ?? []).find((x) => x.name === `${scales.operand} 0`);
  if (owner) { tmem.lane = place.lane; tmem.column = owner.column + place.column; }
}

function shareElement({ machine, step, ui: { tmem, mma } }) {
  const e = machine.event(mmaView.landings(machine).filter((s) => s <= step).at(-1) ?? -1);
  tmem.lane = mma.m;
  tmem.column = +mma.n + ((e?.operands.d_tmem ?? 0) & 0xffff);
}
