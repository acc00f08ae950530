// pointer: clicks on buttons and in the picture, hovering, dragging.

const pointIn = (target, e) => new DOMPoint(e.clientX, e.clientY).matrixTransform(target.getScreenCTM().inverse());
const numbers = (list) => list.split(",").map(Number);

function onButton(player, act) {
  if (act === "rewind") stopAt(player, 0);
  else if (act === "back") stopAt(player, player.step - 1);
  else if (act === "forward") stopAt(player, player.step + 1);
  else if (act === "play") playOrPause(player);
  else if (act === "before") hopMilestone(player, -1);
  else if (act === "after") hopMilestone(player, 1);
  else if (act === "run") runToStop(player);
  else if (act === "full") toggleFullScreen(player);
  else if (act === "wide") player.root.classList.toggle("fp4ref-wide", !player.root.classList.contains("fp4ref-wide"));
  else if (act === "save") savePicture(player);
  else if (act === "link") showPermalink(player);
}

function toggleFullScreen({ root }) {
  if (document.fullscreenElement === root) document.exitFullscreen();
  else root.requestFullscreen?.();
}

// The parts of a picture say in their data-* what a click on them means.
function onPicture(player, e) {
  const { view } = player, { step, ui, grid, area, schedule } = e.target.dataset ?? {};
  if (step) stopAt(player, +step);
  else if (schedule) switchSchedule(player, schedule);
  else if (ui) setUi(player, ui);
  else if (grid && view.stepAt) {
    const p = pointIn(player.$(".fp4ref-picture svg"), e);
    stopAt(player, view.stepAt(player.context(), p.x, p.y, numbers(grid)));
  } else if (grid && view.pick) {
    const p = pointIn(player.$(".fp4ref-picture svg"), e);
    setUi(player, view.pick(p.x, p.y, numbers(grid)));
  } else if (area && view.area) {
    const [x, y, w, h, ...which] = numbers(area), p = pointIn(e.target, e);
    setUi(player, view.area(player.context(), which, (p.x - x) / w, (p.y - y) / h));
  }
}

function listenToPointer(player) {
  player.root.addEventListener("click", (e) => {
    const act = e.target.closest("[data-act]")?.dataset.act, tab = e.target.closest("[role=tab]"), control = e.target.closest("button[data-control]");
    if (tab) player.show(tab.dataset.view);
    else if (control) player.view.controls(player.context()).find((c) => c.id === control.dataset.control)?.action(player.context());
    else if (act) onButton(player, act);
    else onPicture(player, e);
  });
  listenToHover(player);
  listenToDrag(player);
}

function listenToDrag(player) {
  const picture = player.$(".fp4ref-picture");
  let dragging = null;
  picture.addEventListener("pointerdown", (e) => {
    if (e.target.dataset?.drag === undefined || !player.view.drag) return;
    dragging = +e.target.dataset.drag;
    picture.setPointerCapture(e.pointerId);
    player.ui[player.view.id].element = dragging;
    player.root.focus({ preventScroll: true });
    e.preventDefault();
  });
  picture.addEventListener("pointermove", (e) => {
    if (dragging === null) return;
    player.view.drag(player.context(), dragging, pointIn(player.$(".fp4ref-picture svg"), e).x, player.drawn.width);
    player.refresh();
  });
  const drop = () => { dragging = null; };
  picture.addEventListener("pointerup", drop);
  picture.addEventListener("pointercancel", drop);
}
