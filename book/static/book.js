// Search results: a page that was opened from a file cannot read other files, so it
// shows titles only.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// The button of the home page plays the player below it.
document.addEventListener("click", ({ target }) => {
  if (target.matches("[data-hero]")) document.querySelector(".fp4ref-player [data-act=play]")?.click();
});

// A button on each listing copies it, without the numbers of its lines.
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy"); // pages without a secure address have no clipboard
  area.remove();
  return done;
}

function addCopyButton(block) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "fp4-copy", textContent: "Copy" });
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    const listing = block.querySelector("pre").cloneNode(true);
    listing.querySelectorAll(".linenos").forEach((number) => number.remove());
    button.textContent = (await copied(listing.textContent)) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.append(button);
}

// Where the page asks for it, its entries fold, and a field picks those with some words.
function addFilter(place) {
  const entries = [...document.querySelectorAll(".bd-article section")].filter((each) => each.querySelector(":scope > h3")).map(fold);
  const parts = [...document.querySelectorAll(".bd-article section:has(> h2)")].filter((each) => each.querySelector(".fp4-fold"));
  place.innerHTML = `<label>Entries with these words <input type="search" autocomplete="off"></label>
    <button type="button" data-fold="open">Open all</button> <button type="button" data-fold="">Close all</button> <output></output>`;
  const field = place.querySelector("input"), count = place.querySelector("output");
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of entries) each.section.hidden = !words.every((word) => each.text.includes(word));
    for (const part of parts) part.hidden = !part.querySelector("section:has(.fp4-fold):not([hidden])");
    const left = entries.filter((each) => !each.section.hidden);
    if (words.length && left.length <= 3) for (const each of left) each.details.open = true;
    count.textContent = `${left.length} of ${entries.length}`;
  };
  const openAddressed = () => {
    const at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const section = at?.closest("section:has(> .fp4-fold)") ?? at?.parentElement?.closest("section:has(> .fp4-fold)");
    if (!section) return;
    if (section.hidden) { field.value = ""; show(); }
    section.querySelector(".fp4-fold").open = true;
    at.scrollIntoView();
  };
  field.addEventListener("input", show);
  place.addEventListener("click", ({ target }) => {
    if ("fold" in target.dataset) for (const each of entries) each.details.open = !!target.dataset.fold;
  });
  addEventListener("hashchange", openAddressed);
  addEventListener("beforeprint", () => { for (const each of entries) each.details.open = true; });
  show();
  openAddressed();
}

// An entry's heading becomes the line that opens it.
function fold(section) {
  const text = section.textContent.toLowerCase(), details = document.createElement("details"), summary = document.createElement("summary");
  const heading = section.querySelector(":scope > h3");
  details.className = "fp4-fold";
  heading.before(details);
  summary.append(heading);
  details.append(summary);
  while (details.nextSibling) details.append(details.nextSibling);
  return { section, details, text };
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-filter]").forEach(addFilter);
  document.querySelectorAll(".bd-article div.highlight").forEach((block) => { if (block.querySelector("pre")) addCopyButton(block); });
});
