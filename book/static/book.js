// Search results: a page that was opened from a file cannot read other files, so it
// shows titles only.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// The button of the home page plays the player below it.
document.addEventListener("click", ({ target }) => {
  if (target.matches("[data-hero]")) document.querySelector(".fp4ref-player [data-act=play]")?.click();
});
