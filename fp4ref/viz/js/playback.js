// playback: the steps by themselves, one after another.

const SPEEDS = { slow: 900, normal: 350, fast: 70 }; // milliseconds of a step

function labelPlayButton(player, sign, words) {
  const button = player.$('[data-act="play"]');
  if (!button) return;
  button.textContent = sign;
  button.setAttribute("aria-label", words);
  button.title = words;
}

function stopPlaying(player) {
  clearInterval(player.timer);
  player.timer = null;
  labelPlayButton(player, "▶", player.T("bar.play"));
}

function playOrPause(player) {
  if (player.timer) return stopPlaying(player);
  if (player.step >= player.last) player.go(0);
  const steps = stepsOfPace(player, player.$('[data-act="pace"]').value), stop = player.$('[data-act="stop"]').value;
  const stops = new Set(stop === "" ? [] : stepsOfStop(player, stop));
  labelPlayButton(player, "❚❚", player.T("bar.pause"));
  const tick = () => {
    const to = steps ? nextOf(steps, player.step, 1) : player.step + 1;
    if (to === undefined || to > player.last || !player.root.isConnected) return stopPlaying(player);
    const met = [...stops].find((s) => s > player.step && s <= to);
    player.go(met ?? to);
    if (met !== undefined) stopPlaying(player);
  };
  player.timer = setInterval(tick, SPEEDS[player.$('[data-act="speed"]').value]);
}

// Whoever chooses a step wants to stay there.
function stopAt(player, k) {
  stopPlaying(player);
  player.go(k);
}
