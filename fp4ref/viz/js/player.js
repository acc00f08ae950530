// player: what one player shows, and what its parts share: the step, the view, what is picked.
// Hosts: anywidget (a live kernel) and a static page (a model of four functions).

const VIEWS = [timelineView, stagesView, barriersView, smemView, tmemView, scalesView, mmaView, tilesView, tensorsView, clusterView, schedulesView, sidesView, quantiserView, recipesView, swizzleView, faultView];
let players = 0;

const translator = (strings) => (key, values = {}) =>
  (strings[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));

function bytesOf(packet) {
  if (typeof packet === "string") return Uint8Array.from(atob(packet), (c) => c.charCodeAt(0));
  return packet instanceof DataView ? new Uint8Array(packet.buffer, packet.byteOffset, packet.byteLength) : new Uint8Array(packet);
}

class Player {
  constructor(model, header, payload) {
    this.model = model; // the host's: `step` and `view` live there
    this.header = header;
    this.T = translator(header.strings);
    this.machine = new Machine(header, payload);
    this.schedules = header.schedules ? new Schedules(header, this.machine, payload) : null;
    this.schedule = this.schedules?.names[0]; // the one shown
    this.id = `fp4p${++players}`;
    this.views = VIEWS.filter((v) => header.views.includes(v.id));
    this.last = this.machine.length - 1;
    this.view = null; // the view that is drawn
    this.ui = {}; // what is picked, by view and control
    this.timer = null; // while it plays
    this.following = true; // whether views look where the event acts
    this.followed = null; // the step that they looked at last
    this.detailed = false; // whether the event's details are unfolded
    this.drawn = null; // label, text twin and width of the picture
    this.root = shell(this);
  }

  $(selector) { return this.root.querySelector(selector); }
  clamp(k) { return Math.max(0, Math.min(this.last, Math.round(k) || 0)); }
  get step() { return this.clamp(this.model.get("step")); }

  // What a view is given.
  context() {
    const picture = this.$(".fp4ref-picture");
    let width = 0;
    return {
      m: this.machine, step: this.step, ui: this.ui[this.view.id], T: this.T, id: this.id, schedules: this.schedules, schedule: this.schedule,
      go: (k) => this.go(k), pick: (changes) => setUi(this, changes), refresh: () => this.refresh(), announce: (words) => this.announce(words),
      get width() { return (width ||= Math.max(300, Math.floor(picture.clientWidth || 680))); }, // asking for it lays the page out
    };
  }

  go(k) {
    this.model.set("step", this.clamp(k));
    this.model.save_changes();
  }
  show(name) {
    if (!this.views.some((v) => v.id === name)) return;
    this.model.set("view", name);
    this.model.save_changes();
  }
  announce(words) {
    this.$("figcaption").textContent = words;
    this.$(".fp4ref-live").textContent = words;
  }
  refresh() {
    fillControls(this);
    this.draw();
  }

  draw() {
    if (!this.root.isConnected && this.drawn) return;
    const asked = this.model.get("schedule");
    if (this.schedules && asked && asked !== this.schedule) useSchedule(this, asked); // set by the host
    const k = this.step, name = this.model.get("view");
    const next = this.views.find((v) => v.id === name) ?? this.views[0];
    if (next !== this.view) this.open(next);
    if (this.last >= 0) this.drawStep(k);
    this.drawPicture();
    this.root.dataset.step = k;
    this.root.dataset.view = this.view.id;
  }
  open(view) {
    this.view = view;
    for (const v of this.views) this.ui[v.id] ??= firstPicks(this, v);
    buildControls(this);
    this.root.querySelectorAll("[role=tab]").forEach((t) => {
      const on = t.dataset.view === view.id;
      t.setAttribute("aria-selected", on);
      t.tabIndex = on ? 0 : -1;
    });
    this.$('[data-act="view"]').value = view.id;
    this.$(".fp4ref-panel").setAttribute("aria-labelledby", `${this.id}-tab-${view.id}`);
  }
  drawStep(k) {
    this.machine.seek(k);
    const slider = this.$("input[type=range]");
    slider.value = k;
    slider.setAttribute("aria-valuetext", this.T("step.of", { step: k, last: this.last }));
    this.$(".fp4ref-step").textContent = `${k} / ${this.last}`;
    drawStrip(this);
    const e = this.machine.event(k);
    if (this.followed !== k) followEvent(this, e);
    this.followed = k;
    this.$(".fp4ref-event").innerHTML = eventHtml(this, e);
    if (!this.timer) this.$(".fp4ref-live").textContent = eventWords(this, e);
  }
  drawPicture() {
    const { view, T } = this, c = this.context(), twin = view.twin(c), label = `${T(`view.${view.id}`)}. ${twin.intro}`;
    const { svg, width, height } = view.draw(c);
    this.$(".fp4ref-picture").innerHTML = `<svg role="img" viewBox="0 0 ${width} ${Math.ceil(height)}" width="${width}" height="${Math.ceil(height)}" aria-label="${esc(label)}">${svg}</svg>`;
    if (this.$(".fp4ref-twin").open) this.$(".fp4ref-twin > div").innerHTML = twin.rows?.length ? tableHtml(twin) : "";
    this.drawn = { label, twin, width };
    this.$("figcaption").textContent = captionOf(this);
  }
}

const captionOf = ({ drawn: { twin } }) => twin.short ?? twin.intro;

// A page that was hidden, or a window of another width, needs another picture.
function watchWidth(player) {
  let seen = 0;
  const sizes = new ResizeObserver(() => {
    const now = player.$(".fp4ref-picture").clientWidth;
    if (Math.abs(now - seen) > 4) { seen = now; requestAnimationFrame(() => player.draw()); }
  });
  sizes.observe(player.root);
  return sizes;
}

async function render({ model, el }) {
  const { header, payload } = await unpack(bytesOf(model.get("packet")));
  const player = new Player(model, header, payload), draw = () => player.draw();
  el.replaceChildren(player.root);
  listenToControls(player);
  listenToPointer(player);
  listenToKeys(player);
  player.$(".fp4ref-twin").addEventListener("toggle", draw);
  player.root.addEventListener("toggle", ({ target }) => { if (target.matches(".fp4ref-details")) player.detailed = target.open; }, true);
  followPermalink(player);
  model.on("change:step", draw);
  model.on("change:view", draw);
  model.on("change:schedule", draw);
  const sizes = watchWidth(player);
  // In the book an article is narrow; a player there can take the room beside it.
  player.$('[data-act="wide"]').hidden = !player.root.closest(".bd-article");
  draw();
  player.root.fp4ref = {
    get machine() { return player.machine; }, go: (k) => player.go(k), show: (name) => player.show(name), choose: (name) => switchSchedule(player, name), setUi: (changes, from) => setUi(player, changes, from), draw,
    arithmetic: { dotElement, dotTile, scaleParts, roundTowardZero, encodeE2m1, encodeUe4m3, encodeUe8m0, quantiseWay, floatOf, bitsOf },
  };
  return () => { stopPlaying(player); sizes.disconnect(); model.off("change:step", draw); model.off("change:view", draw); model.off("change:schedule", draw); };
}

export default { render };
