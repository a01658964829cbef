// The hands of those who choose concepts: arrows in lists, the search field, and a draft that outlives a reload.
// Without this file every button still works.
"use strict";

(() => {
  const find = (selector) => document.querySelector(selector);
  const rows = () => [...document.querySelectorAll("#found [data-row]")];
  const form = () => find("#chosen") && find("#chosen").closest("form");
  const handled = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };

  // --- keys
  let wanted = false; // Enter was pressed before what was typed had been found
  const chooseFirst = () => {
    const [field, first] = [find("#typed"), rows()[0]];
    wanted = field.value.trim() !== find("#found").dataset.typed.trim();
    if (!wanted && first) first.click();
  };
  const move = (row, by) => {
    const all = rows();
    const next = all[all.indexOf(row) + by];
    if (next) next.focus();
    else if (by < 0) find("#typed").focus();
  };
  const openRow = (row) => {
    const button = row.parentElement.querySelector(".open");
    if (button) button.click();
    else if (row.value.startsWith("open ")) row.click();
  };
  const isMirrored = document.documentElement.dir === "rtl"; // arrows mean where they point
  const inField = { ArrowDown: () => { if (rows()[0]) rows()[0].focus(); }, Enter: chooseFirst };
  const inList = {
    ArrowDown: (row) => move(row, 1),
    ArrowUp: (row) => move(row, -1),
    [isMirrored ? "ArrowLeft" : "ArrowRight"]: openRow,
    Escape: (row) => row.blur(), // so that Enter means Done again
    [isMirrored ? "ArrowRight" : "ArrowLeft"]: () => { const up = [...document.querySelectorAll(".crumbs button")].pop(); if (up) up.click(); },
  };
  document.addEventListener("keydown", (event) => {
    const field = find("#typed");
    if (!field || event.altKey || event.isComposing) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.code === "Enter" && find("#done")) { handled(event); find("#done").click(); }
      return;
    }
    const row = event.target.closest && event.target.closest("#found [data-row]");
    const act = event.target === field ? inField[event.key] : row && inList[event.key];
    if (act) {
      handled(event);
      act(row);
    } else if (event.code === "KeyF" && !event.shiftKey && !event.target.matches("textarea, input:not([type=checkbox]), select")) {
      handled(event);
      field.closest("details").open = true;
      field.focus();
      field.select();
    }
  }, { capture: true });

  // --- after each act the place in the list, and what was typed
  let at = -1;
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target.id === "found") at = document.activeElement === find("#typed") ? -1 : rows().indexOf(document.activeElement);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!find("#found")) return;
    const source = event.detail.requestConfig && event.detail.requestConfig.elt;
    if (event.target.id === "work") { wanted = false; begin(); return; }
    const field = find("#typed");
    if (source === field) return;
    field.value = find("#found").dataset.typed;
    // What was wrong with the answer may be mended by now.
    if (find("#notice")) find("#notice").replaceChildren();
    if (source && / searched$/.test(source.value) && at >= 0) {
      field.focus(); // for the next word
      keep();
      return;
    }
    const opened = source && /^(open|show) /.test(source.value);
    if (document.activeElement === document.body && (at >= 0 || opened)) {
      const all = rows();
      const next = all[opened ? 0 : Math.min(at, all.length - 1)];
      if (next) next.focus({ preventScroll: !opened });
    }
    keep();
  });

  // Only then do the buttons that came do what they should.
  document.addEventListener("htmx:afterSettle", () => { if (wanted && find("#found")) chooseFirst(); });

  // --- a button of the panel posts to the address of its form, which then shows the panel again and stores nothing
  const send = (source, values) => htmx.ajax("POST", form().getAttribute("action"), { source, target: "#found", swap: "outerHTML", values });
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || button.name !== "do") return;
    handled(event);
    if (button.value === "find") find("#done").click();
    else send(button);
  }, { capture: true });

  // --- what is chosen outlives a reload, and the log-in after a session that ended, if the same unit is shown again
  const KEYS = ["lease", "question"];
  const place = () => `${location.pathname} ${KEYS.map((name) => form() && form().elements[name] ? form().elements[name].value : "").join(" ")}`;
  const chosen = () => ["answer", "way"].map((name) => [name, [...document.querySelectorAll(`#chosen [name=${name}]`)].map((input) => input.value)]);
  const keep = () => {
    try { sessionStorage.setItem("chosen", JSON.stringify([place(), Object.fromEntries(chosen())])); } catch { /* full, or forbidden: it lasts as long as the page */ }
  };
  const restore = () => {
    if (!form() || find("#chosen [name=answer]")) return;
    let [where, values] = ["", {}];
    try { [where, values] = JSON.parse(sessionStorage.getItem("chosen")) || ["", {}]; } catch { /* likewise */ }
    if (where !== place() || !values.answer.length) return;
    send(find("#typed"), values);
  };
  const begin = () => {
    const finder = find(".finder");
    // Where it would cover what is to be read.
    if (finder && matchMedia("(max-width: 46.49rem)").matches) finder.open = false;
    restore();
  };
  begin();
})();
