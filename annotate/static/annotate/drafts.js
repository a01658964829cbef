// What was typed outlives a reload, a lost line and a session that ended. A draft stays in its tab, belongs to one person, one form and
// one text on the screen, and goes once the server has accepted it. Passwords, files and hidden fields are never kept.
"use strict";

(() => {
  const { content: person, dataset: sentences } = document.querySelector("meta[name=person]") || {};
  const SENT = "drafts sent"; // those of the form that was sent last, and the number by which the server names it
  const UNSENT = "drafts unsent"; // who pressed something when their session had ended, and what was typed beside it
  const COOKIE = "accepted"; // kept.py sets it
  const TYPED = "textarea[name], input[name]:not([type]), input[name]:is([type=text], [type=email], [type=number], [type=tel], [type=url])";

  const load = (key) => { try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; } };
  const store = (key, value) => { try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* full, or forbidden: it lasts as long as the page */ } };
  const drop = (key) => { try { sessionStorage.removeItem(key); } catch { /* likewise */ } };

  const fieldsOf = (form) => [...form.elements].filter((field) => field.matches(TYPED));
  // Without its white space, which differs between a whole page and what htmx fetches.
  const post = () => (document.querySelector("#post") || { textContent: "" }).textContent.replace(/\s+/g, " ").trim();
  const keyOf = (field) => {
    const { form } = field;
    const place = new URL(form.getAttribute("action") || location.pathname, location.href).pathname;
    const number = fieldsOf(form).filter(({ name }) => name === field.name).indexOf(field);
    return ["draft", person, place, form.dataset.draft || "", field.name, number].join(" ");
  };
  const isPosted = (form) => (form.getAttribute("method") || "").toLowerCase() === "post";
  const isKept = (field) => person && field.form && isPosted(field.form);
  const keep = (field) => {
    // On a page that shows again what was typed, as a preview does, it still began with what was there before.
    const draft = load(keyOf(field));
    const began = draft && draft.post === post() ? draft.began : field.defaultValue;
    if (field.value === began) drop(keyOf(field));
    else store(keyOf(field), { post: post(), began, typed: field.value });
  };
  document.addEventListener("input", ({ target }) => { if (target.matches && target.matches(TYPED) && isKept(target)) keep(target); });

  // --- what was accepted goes, and what was not comes back, where its form is shown again for the same text
  const accepted = () => {
    const [, number] = document.cookie.match(new RegExp(`(?:^|; )${COOKIE}=(\\w+)`)) || [];
    const sent = load(SENT);
    if (!number || !sent || sent.number !== number) return;
    sent.keys.forEach(drop);
    drop(SENT);
    document.cookie = `${COOKIE}=; Max-Age=0; Path=/; SameSite=Lax`;
  };
  // Of a form: whose it is, and which fields lie in one panel with what was pressed.
  const pressedIn = (form, pressed) => {
    const beside = form ? fieldsOf(form).filter((field) => field.closest("details") && field.closest("details").contains(pressed)) : [];
    return { person, beside: beside.map(keyOf) };
  };
  const tellUnsent = (restored) => {
    const unsent = person && load(UNSENT);
    if (!unsent) return;
    drop(UNSENT);
    if (unsent.person !== person) return;
    for (const field of restored.filter((each) => unsent.beside.includes(keyOf(each)))) {
      for (let panel = field.closest("details"); panel; panel = panel.parentElement.closest("details")) panel.open = true;
    }
    const notice = document.querySelector("#notice") || Object.assign(document.createElement("div"), { role: "alert" });
    if (!notice.isConnected) document.querySelector("main").prepend(notice);
    notice.replaceChildren(Object.assign(document.createElement("p"), { className: "notice", textContent: sentences.unsent }));
  };
  // A form that says so tells of what came back, and offers to begin anew.
  const tellRestored = (restored) => {
    const shown = restored.filter(({ form }) => form.dataset.restored);
    if (!shown.length) return;
    const [{ form }] = shown;
    const notice = Object.assign(document.createElement("p"), { className: "notice", textContent: `${form.dataset.restored} ` });
    notice.setAttribute("role", "status");
    const clear = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: form.dataset.clear });
    clear.addEventListener("click", () => {
      notice.remove();
      for (const field of shown) {
        field.value = field.defaultValue;
        for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
      }
      shown[0].focus();
    });
    notice.append(clear);
    form.before(notice);
  };
  const restore = () => {
    const restored = [];
    for (const field of document.querySelectorAll(TYPED)) {
      const draft = isKept(field) && field.value === field.defaultValue && load(keyOf(field));
      // What began with another text might undo what somebody else has changed since.
      if (!draft || draft.post !== post() || draft.began !== field.defaultValue) continue;
      field.value = draft.typed;
      restored.push(field);
    }
    for (const field of restored) field.dispatchEvent(new Event("input", { bubbles: true }));
    tellRestored(restored);
    return restored;
  };

  // --- a form that the browser sends: the server says in a cookie that it was accepted
  window.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !isPosted(form) || !person) return;
    const typed = fieldsOf(form).filter((field) => field.value.trim());
    if (!typed.length) return;
    const number = crypto.getRandomValues(new Uint32Array(2)).join("");
    typed.forEach(keep);
    store(SENT, { number, keys: typed.map(keyOf), unsent: pressedIn(form, event.submitter || form) });
    const hidden = form.querySelector("input[name=draft]") || form.appendChild(Object.assign(document.createElement("input"), { type: "hidden", name: "draft" }));
    hidden.value = number;
  });

  // --- what htmx sends. sent: field's key -> what it said
  let sent = [];
  let pressed = {};
  // What asks, which is not what the answer goes to: of a swap, detail.elt is that.
  const byItself = ({ detail }) => (detail.requestConfig || detail).elt.matches("#rest, [hx-trigger*=every], textarea");
  const isLogIn = (xhr) => new URL(xhr.responseURL || location.href).pathname.endsWith("/login/");
  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt.closest("form");
    if (byItself(event)) return;
    pressed = pressedIn(form, event.detail.elt);
    sent = form ? fieldsOf(form).filter(isKept).map((field) => [keyOf(field), field.value, post()]) : [];
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (isLogIn(xhr)) {
      event.detail.shouldSwap = false;
      // The session is over: the whole page goes to the log-in, and comes back here.
      if (byItself(event)) return;
      store(UNSENT, pressed);
      location.assign(location.href);
      return;
    }
    if (byItself(event) || xhr.status >= 400 || !target.matches("#work, #flagged")) return;
    for (const [key, typed, about] of sent) {
      const draft = load(key);
      const goes = target.id === "work" || key.includes(" words ");
      if (draft && goes && draft.typed === typed && draft.post === about) drop(key);
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => { if (event.target.id === "work") restore(); });

  accepted();
  // Once all scripts look at their fields.
  document.addEventListener("DOMContentLoaded", () => setTimeout(() => tellUnsent(restore())));
  // With JavaScript what was typed comes back in its form; without it the log-in carries it on.
  const [carried, sentLast] = [document.querySelector("#carried"), load(SENT)];
  if (carried && sentLast && carried.dataset.draft === sentLast.number) {
    carried.remove();
    store(UNSENT, sentLast.unsent);
  }
})();
