// export: a picture as an SVG file.

// The picture as a file of its own: colours resolved, text twin inside.
function exportSvg(svg, label, description) {
  const copy = svg.cloneNode(true);
  const from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
  const keep = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font", "text-anchor", "opacity", "image-rendering"];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    to[i].setAttribute("style", keep.map((k) => `${k}:${style.getPropertyValue(k)}`).join(";"));
  });
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  back.setAttribute("width", "100%"); back.setAttribute("height", "100%");
  back.setAttribute("fill", getComputedStyle(svg.closest(".fp4ref-player")).backgroundColor);
  copy.prepend(back);
  for (const [tag, words] of [["desc", description], ["title", label]]) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    node.textContent = words;
    copy.prepend(node);
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

function savePicture(player) {
  const { label, twin } = player.drawn, data = exportSvg(player.$(".fp4ref-picture svg"), label, twinText(twin));
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([data], { type: "image/svg+xml" }));
  a.download = `fp4ref-${player.view.id}-${player.step}.svg`;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
