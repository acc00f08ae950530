// A frame's page and the player in its window: the theme of the book in both, and a
// window as high as what it shows.
{
  let theme = null;
  try { theme = localStorage.getItem("theme"); } catch { /* no storage: as the system has it */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

if (parent !== window) {
  Element.prototype.scrollIntoView = () => {}; // it would scroll the page around the window
  addEventListener("DOMContentLoaded", () => {
    const tell = () => parent.postMessage({ fp4refHeight: document.body.scrollHeight + 16 }, "*");
    new ResizeObserver(tell).observe(document.querySelector("main"));
  });
} else {
  addEventListener("message", ({ data, source }) => {
    const player = document.querySelector("iframe");
    if (player?.contentWindow === source && data.fp4refHeight > 0) player.style.height = `${data.fp4refHeight}px`;
  });
}
