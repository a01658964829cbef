// Presses that nobody meant: the second tap of a double tap, and a press on a sheet that has just opened. Sheets are placed beside
// the button that opens them, never under the finger. Keys are queue.js's, except for a key that bounces.
"use strict";

(() => {
  const OPENED_MS = 300; // nobody reads a sheet faster
  const TWICE_MS = 700; // the taps of a double tap are never further apart
  const NEAR_PX = 24;
  const GAP_PX = 6;
  const STORE = "press";

  const find = (selector) => document.querySelector(selector);
  const isWork = () => find(".answers, #answers, #settle, #together");

  // --- sheets: when they opened, and where they lie
  const opened = new WeakMap();
  let bounce = { code: "", at: -Infinity }; // the key that opened a sheet
  let lastCode = "";
  const age = (details) => performance.now() - (opened.has(details) ? opened.get(details).at : -Infinity);
  // Whoever opens it by a key and presses somewhere means it.
  const justTapped = (details) => opened.has(details) && !opened.get(details).byKey && age(details) < OPENED_MS;

  const place = (details) => {
    const sheet = details.querySelector(":scope > .sheet");
    if (!sheet) return;
    const button = details.querySelector("summary").getBoundingClientRect();
    const bar = (details.closest(".answers, #settle") || document.body).getBoundingClientRect();
    const [above, below] = [button.top, innerHeight - button.bottom];
    const set = (name, pixels) => sheet.style.setProperty(name, pixels === null ? "auto" : `${Math.round(pixels)}px`);
    sheet.dataset.placed = "";
    set("--from-below", above >= below ? innerHeight - above + GAP_PX : null);
    set("--from-above", above >= below ? null : button.bottom + GAP_PX);
    set("--most", Math.max(above, below) - 2 * GAP_PX);
    const width = sheet.offsetWidth;
    const isMirrored = document.documentElement.dir === "rtl";
    const start = isMirrored ? Math.max(button.right - width, bar.left) : Math.min(button.left, bar.right - width);
    set("--from-left", Math.max(Math.min(start, innerWidth - width - GAP_PX), GAP_PX));
  };
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      if (!target.matches("details[open]") || opened.has(target)) {
        if (!target.open) opened.delete(target);
        continue;
      }
      opened.set(target, { at: performance.now(), byKey: Boolean(lastCode) });
      if (target.querySelector(":scope > .sheet")) bounce = { code: lastCode, at: performance.now() };
      place(target);
    }
  }).observe(document, { subtree: true, attributeFilter: ["open"] });
  addEventListener("resize", () => { for (const sheet of document.querySelectorAll("[open] > .sheet")) place(sheet.parentElement); });

  // --- menus of the page's head close when something else is pressed, and on Escape
  const closeMenus = (except, which = ".menu[open], .keys[open]") => { for (const menu of document.querySelectorAll(which)) if (menu !== except) menu.open = false; };
  document.addEventListener("click", (event) => closeMenus(event.target.closest(".menu, .keys")));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeMenus(null, ".menu[open]"); }); // queue.js closes the keys

  // --- the last press, also that on the page before
  let swaps = 0;
  let last = null;
  document.addEventListener("htmx:afterSwap", (event) => { if (event.target.id === "work") swaps += 1; });
  try { last = JSON.parse(sessionStorage.getItem(STORE)); } catch { /* forbidden: then only this page's presses are known */ }
  if (last) last = { ...last, at: last.at - performance.timeOrigin, swaps: -1 };
  const note = (press) => {
    last = press;
    const { x, y, meaning, at } = press;
    try { sessionStorage.setItem(STORE, JSON.stringify({ x, y, meaning, at: at + performance.timeOrigin })); } catch { /* likewise */ }
  };

  const CONTROLS = "button, summary, a[href], label, input:is([type=checkbox], [type=radio], [type=submit])";
  const controlOf = (target) => {
    const control = target.closest(CONTROLS);
    return control && control.matches("label") ? control.control : control;
  };
  // Two controls mean the same if they send the same, or have the same words.
  const meaningOf = (control) => (control ? [control.tagName, control.name || "", control.name ? control.value : control.textContent.trim()].join(" ") : "");

  const isUnmeant = (event, control) => {
    const details = event.target.closest("details");
    if (details && details.matches(":has(> .sheet)") && justTapped(details)) return true;
    if (event.target.closest("#answers, #settle") && justTapped(find("#veil"))) return true;
    const since = last ? performance.now() - last.at : -1;
    // Concepts are taken away one after another at the same place, and nothing is sent by it.
    const isAgain = since >= 0 && since < (control && control.name === "do" ? OPENED_MS : TWICE_MS) && Math.hypot(event.clientX - last.x, event.clientY - last.y) < NEAR_PX;
    if (!isAgain || !control) return false;
    // A double tap on a button opens its sheet, and does not close it again.
    if (control === last.control) return control.matches("summary") && control.parentElement.open && age(control.parentElement) < TWICE_MS;
    return meaningOf(control) !== last.meaning || (event.detail > 1 && swaps !== last.swaps);
  };
  window.addEventListener("click", (event) => {
    if (!event.isTrusted || !event.detail) return; // by a key
    lastCode = "";
    const [control, at] = [controlOf(event.target), performance.now()];
    if (isWork() && isUnmeant(event, control)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (last) note({ ...last, at }); // a third tap belongs to the first as well
      return;
    }
    note({ x: event.clientX, y: event.clientY, at, control, meaning: meaningOf(control), swaps });
  }, { capture: true });

  // --- a key that bounces would choose from the sheet that it opened; any other key is meant
  window.addEventListener("keydown", (event) => {
    lastCode = event.code;
    const isTyped = event.target.matches && event.target.matches("textarea, input");
    if (isTyped || event.code !== bounce.code || performance.now() - bounce.at >= OPENED_MS || event.code === "Escape") return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
})();
