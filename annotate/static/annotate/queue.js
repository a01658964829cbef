// The annotator's hands, and the adjudicator's: keys by physical position, active time, and what to do when the line is gone.
// Without this file every button still works: it adds no function of its own to the page.
"use strict";

(() => {
  const GRACE_MS = 300; // a press meant for the post before must not answer the next one
  const CHANGED_MS = 1000; // nor one meant for the language before, which takes longer to notice
  const MOST_REASONS = 9; // as many as there are digits
  const IDLE_MS = 30000; // without a sign of life for this long, time no longer counts as active

  const find = (selector) => document.querySelector(selector);
  const form = () => find("#answers");

  // --- active time: the time a unit is visible, less every pause longer than IDLE_MS
  let shownAt = 0;
  let active = 0;
  let alive = 0;
  let counting = false;
  const tick = () => {
    const now = performance.now();
    if (counting) active += Math.min(now - alive, IDLE_MS);
    alive = now;
    counting = !document.hidden;
  };
  const started = () => {
    const search = find("#picker input[type=search]");
    if (search) search.hidden = false; // without this file it would find nothing
    shownAt = performance.now();
    active = 0;
    alive = shownAt;
    counting = !document.hidden;
    hold();
  };
  for (const sign of ["keydown", "pointermove", "pointerdown", "scroll", "touchstart", "visibilitychange"]) {
    document.addEventListener(sign, tick, { capture: true, passive: true });
  }
  // Where nothing can be answered, as before the first post, no press can be meant for another.
  const guardLeft = () => {
    const guard = find("#asked.changed") ? CHANGED_MS : GRACE_MS;
    return find(".answers, #answers, #settle") ? Math.max(0, shownAt + guard - performance.now()) : 0;
  };
  const tooSoon = () => guardLeft() > 0;
  // As long as keys are not heard, they look dim.
  let held = 0;
  const hold = () => {
    const left = guardLeft();
    clearTimeout(held);
    document.body.classList.toggle("guarded", left > 0);
    if (left) held = setTimeout(hold, left);
  };

  // --- one request at a time; a press while one is under way does nothing
  let busy = false;
  const SLOW_MS = 400; // what takes longer is said to be under way
  let slow = 0;
  let waits = null; // the sentence that says so
  let sentComment = "";
  const comment = () => (find("#answers [name=comment]") || { value: "" }).value;
  const setBusy = (value) => {
    busy = value;
    clearTimeout(slow);
    if (waits) waits.remove();
    if (!busy) {
      document.body.classList.remove("sending");
      return;
    }
    sentComment = comment();
    slow = setTimeout(() => {
      document.body.classList.add("sending");
      waits = find("#work[data-sending]") ? say("sending") : null;
    }, SLOW_MS);
  };
  // A search under way waits for nobody: the form sends itself after it.
  // Nor does what the page asks by itself, of which nothing is said if it fails.
  const asker = ({ detail }) => (detail.requestConfig || detail).elt; // of a swap, detail.elt is what the answer goes to
  const byItself = (event) => asker(event).matches("#rest");
  document.addEventListener("htmx:beforeRequest", (event) => { if (!byItself(event)) setBusy(!event.detail.elt.matches("[type=search]")); });
  document.addEventListener("htmx:afterRequest", (event) => { if (!byItself(event)) setBusy(false); });
  document.addEventListener("submit", (event) => {
    if (busy || (event.target === form() && tooSoon())) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    tick();
    const field = event.target.querySelector("[name=active_ms]");
    if (field) field.value = Math.round(active);
  }, { capture: true });

  // What the browser sends by itself leaves the page, once.
  window.addEventListener("submit", (event) => { if (!event.defaultPrevented) setBusy(true); });
  window.addEventListener("pageshow", () => setBusy(false));

  // --- the reasons that are offered for a decision, each as a button that fills the field in, and has a key
  const mark = (field) => {
    for (const button of document.querySelectorAll(".reasons button")) button.setAttribute("aria-pressed", button.value === field.value);
    if (field.value) find("#unreasoned").hidden = true;
  };
  const offerReasons = () => {
    const [field, offered] = [find(":is(#settle, #together) [name=reason]"), find("#reasons")];
    if (!offered) return;
    const row = document.createElement("div");
    row.className = "reasons";
    const reasons = new Set([...offered.options].map(({ value }) => value)); // one's own may be one of the page's
    row.append(...[...reasons].slice(0, MOST_REASONS).map((value, index) => {
      const [button, cap, words] = ["button", "kbd", "bdi"].map((name) => document.createElement(name));
      Object.assign(button, { type: "button", value });
      button.dataset.shiftKey = `Digit${index + 1}`;
      cap.textContent = `⇧${index + 1}`;
      words.textContent = value;
      button.append(cap, words);
      button.addEventListener("click", () => { field.value = value; mark(field); });
      return button;
    }));
    offered.replaceWith(row); // what is in sight need not be offered again while one types
    field.addEventListener("input", () => mark(field));
    field.addEventListener("invalid", (event) => {
      event.preventDefault(); // the page's own sentence replaces the browser's
      find("#unreasoned").hidden = false;
      field.focus();
    });
    mark(field);
  };

  // --- keys: beside the digits, the letters of the hand that the person has chosen
  const HANDS = { left: "ASDERTXVB", right: "JKLUIOPNM" };
  const hand = [...(HANDS[document.documentElement.dataset.keys] || "")].map((letter) => `Key${letter}`);
  // A letter that the page has for something else stays what it is; concepts have keys of their own.
  const isFree = (code) => code && !find(`[data-key=${code}], .concepts`);
  const meant = (code) => (hand.includes(code) && isFree(code) ? `Digit${hand.indexOf(code) + 1}` : code);
  const HELP = ["?", "؟"]; // what keyboards print for a question mark
  const typing = (target) => target.matches("textarea, input:not([type=radio], [type=checkbox]), select");
  const veiled = () => find("#veil:not([open])");
  // The focus goes into what opens, and back to the work from what closes.
  const close = (details) => {
    if (!details || !details.open) return false;
    if (details.contains(document.activeElement)) (veiled() || find("#post") || document.body).focus({ preventScroll: true });
    details.open = false;
    return true;
  };
  const open = (details) => {
    details.open = true;
    const first = details.querySelector("input:not([hidden]), .sheet button, [tabindex]");
    if (first) first.focus({ preventScroll: true });
  };
  const toggle = (details) => { if (!close(details)) open(details); };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const code = meant(event.code);
    const undefinedSheet = find("#undefined");
    const picker = find("#picker");
    const flags = find("#flag");
    const keys = find("#keys");
    if (code === "Escape") {
      if (undefinedSheet) delete undefinedSheet.dataset.wantsComment;
      const open = [undefinedSheet, picker, flags, find("#guidelines"), keys];
      if (open.some(close)) event.preventDefault();
      if (typing(event.target)) event.target.blur();
      return;
    }
    if (typing(event.target)) {
      const offered = event.shiftKey && event.target.name === "reason" && !event.target.value && find(`[data-shift-key=${code}]`);
      if (offered) {
        event.preventDefault();
        offered.click();
        event.target.blur(); // the next key decides
        return;
      }
      if (event.key !== "Enter" || event.repeat || tooSoon()) return;
      if (picker && picker.contains(event.target)) {
        event.preventDefault();
        const first = picker.querySelector(".list button.first");
        if (first) first.click();
      } else if (flags && flags.contains(event.target)) {
        if (event.shiftKey) return; // a line's end
        event.preventDefault();
        flags.querySelector("[value=question]").click();
      } else if (undefinedSheet && undefinedSheet.dataset.wantsComment && event.target.value.trim()) {
        event.preventDefault();
        undefinedSheet.querySelector("[value$=unlisted]").click();
      }
      return;
    }
    if (keys && HELP.includes(event.key)) {
      event.preventDefault();
      toggle(keys);
      return;
    }
    // A button reached by Tab keeps its own Space and Enter.
    const onControl = event.target.matches("button, summary, a");
    if (onControl && (code === "Space" || code === "Enter")) return;
    // While the reasons or the flags are shown, digits mean them and no language.
    const reasons = undefinedSheet && undefinedSheet.open && (code === "KeyQ" || code.startsWith("Digit"));
    const flagged = flags && flags.open && code.startsWith("Digit");
    const wanted = flagged
      ? flags.querySelector(`[data-flag-key=${code}]`)
      : reasons
      ? undefinedSheet.querySelector(code === "KeyQ" ? ".sheet button" : `[data-reason-key=${code}]`)
      : (event.shiftKey && find(`[data-shift-key=${code}]`)) || find(`[data-key=${code}]`);
    // What has not been read is not answered; it may be skipped.
    if (veiled() && wanted && wanted.closest("#answers, #settle") && wanted.name !== "skip") return;
    const known = wanted || (code === "KeyG" && find("#guidelines")) || code === "KeyC";
    if (!known) return;
    event.preventDefault();
    if (event.repeat || busy || tooSoon()) return;
    if (code === "KeyG" && !wanted) {
      toggle(find("#guidelines"));
    } else if (code === "KeyC" && !wanted) {
      const field = find("[name=comment]");
      if (field) field.focus();
    } else if (wanted.matches("summary")) {
      for (const other of [undefinedSheet, picker, flags]) if (other && !other.contains(wanted)) other.open = false;
      open(wanted.parentElement);
    } else {
      wanted.click();
    }
  });

  // --- a veil that is lifted: keys go to the work again, and not to the veil
  document.addEventListener("toggle", (event) => {
    if (event.target.id === "veil" && event.target.open) find("#post").focus({ preventScroll: true });
  }, { capture: true });

  // --- clicks: opening one sheet closes the other; a language that is not on the list must be named
  document.addEventListener("click", (event) => {
    for (const details of document.querySelectorAll("#undefined, #picker, #flag")) {
      if (!details.contains(event.target)) details.open = false;
    }
    // Whoever turns to something else than the comment no longer means "not on the list".
    if (find("#undefined") && !event.target.closest(".comment")) delete find("#undefined").dataset.wantsComment;
    const unlisted = event.target.closest("[value$=unlisted]");
    const comment = find("[name=comment]");
    if (unlisted && comment && !comment.value.trim()) {
      event.preventDefault();
      find("#undefined").dataset.wantsComment = "1";
      find("#undefined").open = false; // on a phone it lies over the comment
      comment.placeholder = find("#undefined").dataset.ask;
      comment.focus();
    }
  }, { capture: true });

  // --- flags: what disturbs is gone from the screen at once, whatever becomes of the request; a question has words
  document.addEventListener("click", (event) => {
    const button = event.target.closest("#flag [name=flag]");
    if (!button) return;
    const words = find("#flag [name=words]");
    if (button.value === "question" && !words.value.trim()) {
      event.preventDefault();
      event.stopPropagation();
      words.focus();
      return;
    }
    if (button.value === "disturbing") find("#post").hidden = true;
    tick();
    find("#answers [name=active_ms]").value = Math.round(active);
  }, { capture: true });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "flagged") return;
    close(find("#flag"));
    const words = find("#flag [name=words]");
    words.value = "";
    words.blur(); // else keys would go to a field that is gone, until the browser notices
    find("#notice").replaceChildren();
  });

  // --- the picker filters as one types, by English name, own name or code
  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "");
  const startAnew = (details) => {
    const field = details.querySelector("input[type=search]");
    if (!field || !field.value) return;
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  // No "toggle": a browser that is busy tells of a picker that was closed and opened again as if nothing had been.
  new MutationObserver((changes) => { for (const { target } of changes) startAnew(target); })
    .observe(document, { subtree: true, attributeFilter: ["open"] });
  document.addEventListener("input", (event) => {
    const picker = event.target.closest("#picker");
    if (!picker || event.target.type !== "search") return;
    const query = plain(event.target.value.trim());
    let first = null;
    for (const button of picker.querySelectorAll(".list button")) {
      const hit = plain(button.textContent).includes(query);
      button.hidden = !hit;
      button.classList.remove("first");
      // What begins with the query comes before what only contains it.
      if (hit && query && (!first || (!plain(first.textContent.trim()).startsWith(query) && plain(button.textContent.trim()).startsWith(query)))) first = button;
    }
    if (first) first.classList.add("first");
    picker.querySelector(".none").hidden = Boolean(picker.querySelector(".list button:not([hidden])"));
  });

  // --- what htmx brings: the next unit, or bad news
  let wroteOn = false;
  const isAnswer = (event) => asker(event).matches("#answers");
  const say = (name) => {
    const paragraph = document.createElement("p");
    paragraph.className = "notice";
    paragraph.textContent = find("#work").dataset[name];
    find("#notice").replaceChildren(paragraph);
    return paragraph;
  };
  // A screen reader hears the text and the counts; a text under a veil stays unheard.
  const MOST_HEARD = 500;
  const announce = () => {
    const region = find("#announced");
    if (!region) return;
    const heard = [veiled() ? null : find("#post"), find("#work > .empty"), ...document.querySelectorAll(".tally > span")];
    region.textContent = heard.filter(Boolean).map(({ innerText }) => innerText.trim().replace(/\s+/g, " ").slice(0, MOST_HEARD)).join(". ");
  };
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "work") return;
    for (const details of document.querySelectorAll("#undefined, #picker, #flag")) details.open = false;
    if (find("#flag")) find("#flag [name=words]").value = "";
    if (find("#undefined")) delete find("#undefined").dataset.wantsComment;
    started();
    const post = veiled() || find("#post");
    if (wroteOn) say("late");
    announce();
    // For screen readers, and so that no key goes to a button that is gone.
    if (post) post.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    labelKeys();
  });
  // Long lists of buttons that are here already, and stay the same, are not sent again.
  document.addEventListener("htmx:configRequest", (event) => {
    const choices = find("#choices");
    if (choices) event.detail.headers["Assay-Shown"] = choices.dataset.shown;
    if (find("#flag")) event.detail.headers["Assay-Flag"] = "1";
    // The form after a page that is older than the session has a new token, which all later forms need.
    const token = event.detail.parameters.csrfmiddlewaretoken;
    const work = find("#work");
    if (token && work) work.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": token }));
    // A button with an address of its own has it once, where browsers without scripts find it.
    const button = event.detail.elt;
    if (button.getAttribute("hx-post") === "") event.detail.path = button.getAttribute("formaction");
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (byItself(event)) {
      event.detail.shouldSwap &&= event.detail.xhr.status === 200;
      return;
    }
    if (event.detail.xhr.status >= 500) {
      event.detail.shouldSwap = false;
      say(isAnswer(event) ? "unsaved" : "failed");
    }
    // What was typed meanwhile is about the unit that goes now: drafts.js keeps it for that one.
    wroteOn = event.detail.target.id === "work" && event.detail.shouldSwap && comment() !== sentComment;
  });
  for (const failure of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(failure, (event) => {
      if (byItself(event)) return;
      say(isAnswer(event) ? "offline" : "unsent");
    });
  }

  // --- letter keys are positions: show what this keyboard prints there, where the browser tells
  let layout = null;
  const printed = (code) => ((layout && layout.get(code)) || code.slice("Key".length)).toUpperCase();
  const labelKeys = () => {
    for (const [name, before] of hand.length ? [["key", ""], ["reason-key", ""], ["flag-key", ""], ["shift-key", "⇧"]] : []) {
      for (const button of document.querySelectorAll(`[data-${name}^=Digit]`)) {
        const [letter, cap] = [hand[button.getAttribute(`data-${name}`).at(-1) - 1], button.querySelector("kbd")];
        if (cap && isFree(letter)) cap.textContent = before + printed(letter);
      }
    }
    if (!layout) return;
    for (const cap of document.querySelectorAll("kbd[data-code]")) {
      if (layout.get(cap.dataset.code)) cap.textContent = printed(cap.dataset.code);
    }
  };
  if (navigator.keyboard && navigator.keyboard.getLayoutMap) {
    navigator.keyboard.getLayoutMap().then((map) => { layout = map; labelKeys(); }, () => {});
  }
  offerReasons();
  labelKeys();
  started();
})();
