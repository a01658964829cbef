// The hands on a sheet: move from post to post, mark the odd ones out, send them all. Time, requests and bad news are
// queue.js's. Without this file the marks and the button still work.
"use strict";

(() => {
  const GRACE_MS = 300; // as in queue.js: a press meant for the sheet before marks nothing on this one
  const STORE = `sheet ${location.pathname}`;

  const form = () => document.querySelector("form.on-sheet");
  const rows = () => [...document.querySelectorAll(".posts > li")];
  const mark = (row) => row.querySelector("input:checked");

  let at = 0; // the row that the keys mean
  let shownAt = performance.now();

  const go = (index) => {
    const row = rows()[index];
    if (!row) return;
    at = index;
    mark(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };

  // --- what the button will send, in words
  const list = new Intl.ListFormat(document.documentElement.lang, { type: "unit" });
  const count = () => {
    const [place, marks] = [document.querySelector("#count"), rows().map((row) => mark(row).className)];
    const parts = ["yes", "no", "undefined", "skip"].map((name) => [marks.filter((each) => each === name).length, place.dataset[name]]);
    const said = parts.filter(([number]) => number).map(([number, words]) => words.replace("{number}", number));
    place.textContent = place.dataset.submit.replace("{answers}", list.format(said));
  };

  // --- marks outlive a reload, and the log-in after a session that ended
  const keep = () => {
    const marked = rows().map(mark).filter((input) => input.className !== "yes");
    const marks = Object.fromEntries(marked.map((input) => [input.name, input.value]));
    try { sessionStorage.setItem(STORE, JSON.stringify(marks)); } catch { /* full, or forbidden: they last as long as the page */ }
  };
  const restore = () => {
    let marks = {};
    try { marks = JSON.parse(sessionStorage.getItem(STORE)) || {}; } catch { /* likewise */ }
    for (const input of document.querySelectorAll(".posts input[type=radio]")) {
      if (marks[input.name] === input.value) input.checked = true;
    }
  };
  const changed = () => { count(); keep(); };

  const choose = (row, code) => {
    // The same key again takes the mark back.
    const key = mark(row).dataset.mark === code ? "KeyY" : code;
    const input = row.querySelector(`[data-mark=${key}]`);
    input.checked = true;
    input.focus({ preventScroll: true });
    changed();
  };

  const STEPS = { ArrowUp: -1, KeyK: -1, ArrowDown: 1, KeyJ: 1, Enter: 1 };
  document.addEventListener("keydown", (event) => {
    if (!form() || event.altKey || event.isComposing) return;
    const all = rows();
    if (event.ctrlKey || event.metaKey) {
      if (event.code !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) form().requestSubmit(document.querySelector("#submit"));
      return;
    }
    // A link or button reached by Tab keeps its own Enter.
    if (event.code === "Enter" && event.target.matches("button, summary, a")) return;
    if (event.code in STEPS) {
      event.preventDefault();
      if (event.code !== "Enter") go(Math.min(Math.max(at + STEPS[event.code], 0), all.length - 1));
      else if (event.repeat || performance.now() - shownAt < GRACE_MS) return;
      else if (at < all.length - 1) go(at + 1);
      else form().requestSubmit(document.querySelector("#submit"));
    } else if (["KeyN", "KeyU", "KeyS", "KeyY"].includes(event.code) && !event.shiftKey) {
      event.preventDefault();
      if (!event.repeat && performance.now() - shownAt >= GRACE_MS) choose(all[at], event.code);
    }
  });
  // By mouse or Tab: the keys mean the row that has the focus.
  document.addEventListener("focusin", (event) => {
    const row = event.target.closest(".posts > li");
    if (row) at = rows().indexOf(row);
  });
  document.addEventListener("click", (event) => {
    const row = event.target.closest(".posts > li");
    if (row && !event.target.closest(".marks") && !String(getSelection())) mark(row).focus({ preventScroll: true });
  });
  document.addEventListener("change", (event) => { if (event.target.closest(".posts")) changed(); });

  const started = () => {
    if (!form()) return;
    shownAt = performance.now();
    restore();
    changed();
    at = 0;
    mark(rows()[0]).focus({ preventScroll: true });
  };
  document.addEventListener("htmx:afterSwap", (event) => { if (event.target.id === "work") started(); });
  started();
})();
