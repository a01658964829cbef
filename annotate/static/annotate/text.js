// Writing a text: Ctrl+Enter saves it, its length is counted as the server counts it, and the next one can be written at once.
// Without this file the buttons still work.
"use strict";

(() => {
  const find = (selector) => document.querySelector(selector);
  const length = (text) => [...text.normalize("NFC").trim().replace(/\s+/gu, " ")].length;
  const count = () => {
    const [field, shown] = [find("#text"), find("#length")];
    if (!field || !shown) return;
    shown.dataset.range ||= shown.textContent;
    const written = length(field.value);
    shown.textContent = written ? `${written} / ${shown.dataset.most}` : shown.dataset.range;
    shown.classList.toggle("over", written > Number(shown.dataset.most));
  };
  const begin = () => {
    count();
    // On a phone the keyboard would cover what is to be read.
    const field = find("#text[data-first]");
    if (field && matchMedia("(pointer: fine)").matches) field.focus({ preventScroll: true });
  };
  document.addEventListener("input", ({ target }) => { if (target.id === "text") count(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing || event.repeat) return;
    const save = find("#save");
    if (!save || !save.checkVisibility()) return;
    event.preventDefault();
    save.click();
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => { if (target.id === "work") begin(); });
  // htmx would copy the size of a field that somebody has dragged as an inline style, which the page's policy forbids.
  document.addEventListener("htmx:beforeSwap", () => find("#text")?.removeAttribute("style"));
  document.addEventListener("htmx:afterSettle", count); // settling puts attributes back
  begin();
})();
