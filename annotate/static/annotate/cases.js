// The hands on the adjudicators' list: go from case to case, and mark those that are settled together. What opens the first case,
// and reasons, are queue.js's. Without this file the links, the marks and the button still work.
"use strict";

(() => {
  const STEPS = { ArrowUp: -1, KeyK: -1, ArrowDown: 1, KeyJ: 1 };
  const rows = () => [...document.querySelectorAll("#cases tbody tr")];
  const at = () => rows().findIndex((row) => row.contains(document.activeElement));
  const marks = () => [...document.querySelectorAll("#cases [name=case]")];
  const form = document.querySelector("#together");
  const all = document.querySelector("#mark-all");

  if (form) {
    for (const hidden of form.querySelectorAll("#mark-all, .legend")) hidden.hidden = false; // without this file they would do nothing
    all.addEventListener("click", () => {
      const wanted = marks().some((mark) => !mark.checked); // the same key again takes the marks back
      for (const mark of marks()) mark.checked = wanted;
    });
  }

  const KEYS = {
    KeyX: (row) => row && row.querySelector("[name=case]"),
    // A mark has the focus: Enter would begin with the first case, and means this one.
    Enter: (row) => row && document.activeElement.matches("[name=case]") && row.querySelector("a"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.metaKey || event.isComposing) return;
    if (event.ctrlKey) {
      if (event.code !== "Enter" || event.repeat || !form) return;
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    if (event.target.matches("textarea, input:not([type=checkbox]), select")) return;
    const step = STEPS[event.code];
    if (step) {
      const row = rows()[Math.max(at() + step, 0)];
      if (!row) return;
      event.preventDefault();
      row.querySelector("a").focus();
      return;
    }
    const wanted = KEYS[event.code] && KEYS[event.code](rows()[at()]);
    if (!wanted) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat) wanted.click();
  });
})();
