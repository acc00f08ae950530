// tour: the paragraph of the stop that the address names, and keys to the stops beside it.
{
  const number = new URLSearchParams(location.search).get("stop");
  const stop = [...document.querySelectorAll("[data-stop]")].find((each) => each.dataset.stop === number);
  if (stop) {
    stop.hidden = false;
    const room = document.createElement("style"); // the player scrolls to itself
    room.textContent = `.fp4ref-player { scroll-margin-top: ${stop.offsetHeight + 24}px }`;
    document.head.append(room);
    addEventListener("keydown", ({ key, target }) => {
      const to = { n: "next", p: "prev" }[key];
      if (to && !target.closest("input, select, textarea, .fp4ref-player")) stop.querySelector(`[rel=${to}]`)?.click();
    });
  }
}
