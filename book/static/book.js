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
    const at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
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

// The first use of a word of the glossary on a page opens its meaning.
function explainWords(article, words) {
  const names = Object.keys(words).sort((a, b) => b.length - a.length);
  const any = new RegExp(`(?<![\\w.:-])(${names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})s?(?![\\w-])`, "g");
  const left = new Set(names), skip = "a, button, code, pre, summary, h1, h2, h3, h4, label, svg, .cell_output, .fp4ref-player, [popover]";
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest(skip) || !node.parentElement.closest("p, li, dd, td") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (let node of texts) {
    any.lastIndex = 0;
    for (let found; left.size && (found = any.exec(node.data)); ) {
      const [text, name] = found;
      if (!left.delete(name)) continue;
      const use = node.splitText(found.index);
      node = use.splitText(text.length);
      use.replaceWith(wordButton(text, name, ...words[name]));
      any.lastIndex = 0;
    }
  }
}

function wordButton(text, name, meaning, anchor) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "fp4-word", textContent: text });
  const note = Object.assign(document.createElement("div"), { className: "fp4-meaning", id: `meaning-of-${anchor}-${name.length}`, textContent: `${meaning} ` });
  note.popover = "auto"; // Escape and a tap elsewhere close it
  const up = location.pathname.includes("/notebooks/") ? "../" : "";
  note.append(Object.assign(document.createElement("a"), { href: `${up}glossary.html#${anchor}`, textContent: `${name} in the glossary` }));
  button.popoverTargetElement = note;
  note.addEventListener("toggle", () => {
    const at = button.getBoundingClientRect();
    note.style.left = `${Math.max(8, Math.min(at.left, innerWidth - note.offsetWidth - 8))}px`;
    note.style.top = `${at.bottom + note.offsetHeight + 8 > innerHeight ? Math.max(8, at.top - note.offsetHeight - 4) : at.bottom + 4}px`;
  });
  document.body.append(note);
  return button;
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-filter]").forEach(addFilter);
  document.querySelectorAll(".bd-article div.highlight").forEach((block) => { if (block.querySelector("pre")) addCopyButton(block); });
  const article = document.querySelector(".bd-article");
  if (article && typeof GLOSSARY !== "undefined" && !location.pathname.endsWith("glossary.html")) explainWords(article, GLOSSARY);
});
