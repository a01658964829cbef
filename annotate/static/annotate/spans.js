// Marks spans of a text, by mouse, by touch and by keys. The form's field `answer` lists the spans as START:END:LABEL, in code points; here
// they are counted as the browser does. queue.js presses the buttons of labels by their keys. Without this file the list is typed.
"use strict";

(() => {
  const SYMBOL = /[\p{Extended_Pictographic}\p{Sc}\p{Regional_Indicator}]/u;
  const ROOM = 96; // pixels kept free above and below what is chosen
  const find = (selector, from = document) => from.querySelector(selector);
  const typing = (target) => target.matches("textarea, input:not([type=radio], [type=checkbox]), select");
  // Screen readers hear everything; what needs an answer is also shown, in place of the legend.
  const say = (words, isShown = false) => {
    const region = find("#span-said");
    region.textContent = words;
    region.classList.toggle("unseen", !isShown);
    region.parentElement.classList.toggle("says", isShown);
  };
  // White space, and format characters such as marks of direction; but no joiner, number sign or tag, which belong to a character.
  const BLANK = /^(?![\u200c\u200d\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{e0020}-\u{e007f}])[\s\p{Cf}]$/u;

  let at = null; // the text on the screen; see begin
  let chosen = null; // what the next label marks: { start, end }, and the words between which it was chosen: { anchor, head }
  let spans = [];
  let before = []; // earlier lists, for undo

  // --- the text: its characters, its words, and where it is on the page
  const read = (text, language) => {
    const ends = new Map([[0, 0]]); // code point -> UTF-16 unit
    let unit = 0;
    for (const character of text) ends.set(ends.size, unit += character.length);
    const points = new Map([...ends].map(([point, place]) => [place, point]));
    const known = Intl.Segmenter.supportedLocalesOf(language || []); // words are found by dictionaries in some languages
    const segment = (granularity) => [...new Intl.Segmenter(known, { granularity }).segment(text)];
    const bounds = [...segment("grapheme").map(({ index }) => index), text.length];
    const words = segment("word")
      .filter(({ segment: word, isWordLike }) => isWordLike || SYMBOL.test(word))
      .map(({ index, segment: word }) => snapped(text, bounds, index, index + word.length));
    return { text, ends, points, bounds, words };
  };
  // Whole characters without blanks around them; null if nothing is left.
  const snapped = (text, bounds, from, to) => {
    const [letters, length] = [[...text.slice(from, to)], (kept) => kept.join("").length];
    const first = letters.findIndex((letter) => !BLANK.test(letter));
    if (first < 0) return null;
    const start = from + length(letters.slice(0, first));
    const end = to - length(letters.slice(letters.findLastIndex((letter) => !BLANK.test(letter)) + 1));
    return { start: bounds.findLast((bound) => bound <= start), end: bounds.find((bound) => bound >= end) };
  };
  const paragraphs = (text, nodes) => {
    let from = 0;
    return nodes.filter((node) => node.textContent).map((node) => {
      const start = text.indexOf(node.textContent, from);
      from = start + node.textContent.length;
      return { node, start, end: from };
    });
  };
  const parsed = (list, { ends }) => list.split(/\s+/).map((mark) => /^(\d+):(\d+):(.+)$/.exec(mark)).filter(Boolean)
    .map(([, start, end, label]) => ({ start: ends.get(Number(start)), end: ends.get(Number(end)), label }))
    .filter(({ start, end }) => start < end);
  const written = ({ start, end, label }) => `${at.points.get(start)}:${at.points.get(end)}:${label}`;
  const meets = (one, other) => one.start < other.end && other.start < one.end;
  const isSame = (one, other) => one.start === other.start && one.end === other.end && one.label === other.label;
  const labelled = (label) => {
    const button = [...document.querySelectorAll("#spans .options button")].find(({ value }) => value === label);
    const name = button ? find("b", button).textContent : label;
    return { name, tint: button ? button.className : "tint-grey", tag: label.length <= 4 ? label : name };
  };

  // --- the page: marks in paragraphs, and places of the text in them
  const paint = (text, { node, start, end }, marks, differs = () => false) => {
    const inside = marks.filter((span) => meets(span, { start, end }));
    const cuts = [...new Set([start, ...inside.flatMap((span) => [Math.max(span.start, start), Math.min(span.end, end)]), end])].sort((a, b) => a - b);
    const pieces = cuts.slice(1).map((to, index) => {
      const from = cuts[index];
      const over = inside.filter((span) => meets(span, { start: from, end: to })).sort((a, b) => b.end - b.start - (a.end - a.start));
      const words = document.createTextNode(text.slice(from, to));
      if (!over.length) return words;
      const [span] = over.slice(-1);
      const { tint, tag } = labelled(span.label);
      const mark = document.createElement("mark");
      mark.className = `${tint}${over.length > 1 ? " twice" : ""}${differs(span) ? " differs" : ""}`;
      const begun = over.filter((each) => each.start === from).map((each) => labelled(each.label).tag);
      if (begun.length && document.querySelectorAll("#spans .options button").length > 1) mark.dataset.tag = begun.join("+") || tag;
      mark.append(words);
      return mark;
    });
    node.replaceChildren(...pieces);
  };
  const place = (unit, isEnd) => {
    const paragraph = at.paragraphs.find(({ start, end }) => (isEnd ? start < unit && unit <= end : start <= unit && unit < end));
    if (!paragraph) return null;
    let left = unit - paragraph.start;
    const walk = document.createTreeWalker(paragraph.node, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (isEnd ? left <= node.length : left < node.length) return { node, offset: left, paragraph };
      left -= node.length;
    }
    return null;
  };
  const rangeOf = ({ start, end }) => {
    const [from, to] = [place(start, false), place(end, true)];
    if (!from || !to) return null;
    const range = document.createRange();
    range.setStart(from.node, from.offset);
    range.setEnd(to.node, to.offset);
    return range;
  };
  const unitAt = (node, offset) => {
    const paragraph = at.paragraphs.find((each) => each.node.contains(node));
    if (!paragraph) return null;
    const range = document.createRange();
    range.setStart(paragraph.node, 0);
    range.setEnd(node, offset);
    return paragraph.start + range.toString().length;
  };

  // --- what is chosen
  const show = () => {
    const range = chosen && rangeOf(chosen);
    const isMarked = range && spans.some(({ start, end }) => start === chosen.start && end === chosen.end);
    if (window.Highlight) {
      CSS.highlights.set("chosen-span", new Highlight(...(range && !isMarked ? [range] : [])));
      CSS.highlights.set("marked-span", new Highlight(...(isMarked ? [range] : []))); // its colour stays in sight
    } else if (range) getSelection().setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
    return range;
  };
  const choose = (span, words = { anchor: span, head: span }) => {
    chosen = span && { start: span.start, end: span.end, ...words };
    const range = show();
    if (!range) return;
    const { top, bottom, left, right } = range.getBoundingClientRect();
    const panel = (find("#answers") || document.head).getBoundingClientRect();
    const floor = panel.left < right && panel.right > left ? panel.top : innerHeight; // else it is beside the text
    if (top < ROOM) scrollBy(0, top - ROOM);
    else if (bottom > floor - ROOM / 2) scrollBy(0, bottom - floor + ROOM);
  };
  const heard = (span) => {
    const label = spans.find((each) => each.start <= span.start && each.end >= span.end);
    say(at.text.slice(span.start, span.end) + (label ? `, ${labelled(label.label).name}` : ""));
  };
  const wordFrom = (unit, step) => (step > 0 ? at.words.find(({ start }) => start >= unit) : at.words.findLast(({ end }) => end <= unit));
  const byWord = (step, extends_) => {
    const head = chosen ? chosen.head : { start: step > 0 ? 0 : at.text.length, end: step > 0 ? 0 : at.text.length };
    const next = wordFrom(step > 0 ? head.end : head.start, step);
    if (!next) return;
    const anchor = extends_ && chosen ? chosen.anchor : next;
    choose({ start: Math.min(anchor.start, next.start), end: Math.max(anchor.end, next.end) }, { anchor, head: next });
  };
  const byCharacter = (step, isStart) => {
    if (!chosen) return;
    const name = isStart ? "start" : "end";
    const moved = { start: chosen.start, end: chosen.end };
    do {
      moved[name] = step > 0 ? at.bounds.find((bound) => bound > moved[name]) : at.bounds.findLast((bound) => bound < moved[name]);
    } while (moved[name] !== undefined && BLANK.test(isStart ? at.text[moved.start] : at.text[moved.end - 1]));
    if (moved.start < moved.end) choose(moved);
  };
  // The word that is nearest on the line above or below.
  const byLine = (step) => {
    if (!chosen) return byWord(step, false);
    const rect = (word) => rangeOf(word).getBoundingClientRect();
    const here = rect(chosen.head);
    let line = null;
    let best = null;
    for (let word = wordFrom(step > 0 ? chosen.head.end : chosen.head.start, step); word; word = wordFrom(step > 0 ? word.end : word.start, step)) {
      const { top, left, right, height } = rect(word);
      if (Math.abs(top - here.top) < height / 2) continue;
      if (line !== null && Math.abs(top - line) > height / 2) break;
      line = top;
      const off = Math.abs((left + right) / 2 - (here.left + here.right) / 2);
      if (!best || off < best.off) best = { word, off };
    }
    return best ? choose(best.word) : undefined;
  };

  // --- what is marked
  const draw = () => {
    for (const paragraph of at.paragraphs) paint(at.text, paragraph, spans);
    find(".listed-spans").replaceChildren(...spans.map((span) => {
      const { name, tint } = labelled(span.label);
      const [item, button, words, small] = ["li", "button", "bdi", "small"].map((tag) => document.createElement(tag));
      Object.assign(button, { type: "button", className: tint, value: written(span) });
      words.textContent = at.text.slice(span.start, span.end);
      small.textContent = `${name} ×`;
      button.setAttribute("aria-label", `${find("#spans").dataset.remove}: ${words.textContent}, ${name}`);
      button.append(words, small);
      item.append(button);
      return item;
    }));
    show();
  };
  const set = (marks) => {
    const field = find("#spans textarea");
    before.push(field.value);
    spans = [...marks].sort((a, b) => a.start - b.start || a.end - b.end);
    field.value = spans.map(written).join("\n");
    field.dispatchEvent(new CustomEvent("input", { bubbles: true, detail: "spans" })); // drafts.js keeps it
    draw();
  };
  const isolated = (words) => `\u2068${words}\u2069`; // in any direction of writing
  const named = ({ start, end, label }) => `${labelled(label).name}: ${isolated(at.text.slice(start, end))}`;
  const mark = (label) => {
    const { one, overlap, choose: words, replaced } = find("#spans").dataset;
    if (!chosen) return say(words, true);
    const { start, end } = chosen;
    const kept = one !== undefined ? [] : spans.filter((span) => (overlap !== undefined ? !isSame(span, { start, end, label }) : !meets(span, chosen)));
    const gone = spans.filter((span) => !kept.includes(span) && (span.start !== start || span.end !== end)).map(named);
    set([...kept, { start, end, label }]);
    return say([...(gone.length ? [`${replaced} ${gone.join(", ")}`] : []), named({ start, end, label })].join(". "), gone.length > 0);
  };
  const remove = (isGone) => {
    if (!spans.some(isGone)) return;
    set(spans.filter((span) => !isGone(span)));
    say(find("#spans").dataset.removed);
  };
  const undo = () => {
    const list = before.pop();
    if (list === undefined) return;
    set(parsed(list, at));
    before.pop();
    say(find("#spans").dataset.undone);
  };
  const EDITS = { remove: () => chosen && remove((span) => meets(span, chosen)), undo };

  // --- hands
  document.addEventListener("keydown", (event) => {
    if (!at || event.isComposing || typing(event.target) || find("#veil:not([open])") || find("details[open] > .sheet")) return;
    const byWhole = event.ctrlKey || event.metaKey || event.altKey;
    if (byWhole && event.code === "KeyZ" && !event.altKey && before.length) undo();
    else if (["Backspace", "Delete"].includes(event.key) && !byWhole) EDITS.remove();
    else if (["ArrowUp", "ArrowDown"].includes(event.key) && !byWhole) byLine(event.key === "ArrowDown" ? 1 : -1);
    else if (["ArrowLeft", "ArrowRight"].includes(event.key)) {
      const from = place(chosen ? chosen.start : at.paragraphs[0].start, false);
      const isMirrored = from && getComputedStyle(from.paragraph.node).direction === "rtl";
      const step = (event.key === "ArrowRight") === isMirrored ? -1 : 1;
      if (byWhole) byCharacter(step, event.shiftKey);
      else byWord(step, event.shiftKey);
    } else return;
    event.preventDefault();
    if (event.key.startsWith("Arrow") && chosen) heard(chosen);
  });
  document.addEventListener("click", (event) => {
    if (!at || !event.target.closest) return;
    const button = event.target.closest("button");
    if (button && button.matches("#spans .options button")) mark(button.value);
    else if (button && button.dataset.edit) EDITS[button.dataset.edit]();
    else if (button && button.matches(".listed-spans button")) remove((span) => written(span) === button.value);
    else if (button && button.dataset.take !== undefined) set(parsed(button.dataset.take, at));
    else if (event.target.closest(".markable") && getSelection().isCollapsed) tap(event);
  });
  // A tap chooses the mark or the word under it.
  const tap = ({ clientX, clientY }) => {
    const spot = document.caretPositionFromPoint ? document.caretPositionFromPoint(clientX, clientY) : null;
    const range = spot ? { startContainer: spot.offsetNode, startOffset: spot.offset } : document.caretRangeFromPoint(clientX, clientY);
    const unit = range && unitAt(range.startContainer, range.startOffset);
    if (unit === null) return;
    const covers = ({ start, end }) => start <= unit && unit < end;
    choose(spans.findLast(covers) || at.words.find(covers) || at.words.find(({ start, end }) => start <= unit && unit <= end) || null);
  };
  // A mouse chooses whole words, unless Alt is held; the handles of touch choose characters.
  let byWords = false;
  for (const type of ["pointerdown", "pointermove", "pointerup"]) {
    document.addEventListener(type, ({ pointerType, altKey }) => { byWords = pointerType === "mouse" && !altKey; }, { capture: true, passive: true });
  }
  const widened = ({ start, end }) => {
    const around = (unit) => at.words.find((word) => word.start < unit && unit < word.end);
    return { start: (around(start) || { start }).start, end: (around(end) || { end }).end };
  };
  document.addEventListener("selectionchange", () => {
    const selection = getSelection();
    if (!at || selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    const [from, to] = [unitAt(range.startContainer, range.startOffset), unitAt(range.endContainer, range.endOffset)];
    const exact = from === null || to === null ? null : snapped(at.text, at.bounds, from, to);
    if (!exact) return;
    const span = byWords ? widened(exact) : exact;
    chosen = { ...span, anchor: span, head: span };
    show();
  });

  // --- a new text, here or by htmx; and what drafts.js brings back
  const begin = () => {
    [at, chosen, spans, before] = [null, null, [], []];
    const box = find("#spans");
    const zone = box && document.getElementById(`zone-${box.dataset.field}`);
    if (!zone) return;
    const text = JSON.parse(box.dataset.text);
    const field = find("dd", zone); // without an id, so that htmx's settling leaves its classes alone
    field.classList.add("markable");
    // Screen readers leave the arrow keys to the page once the text has the focus.
    const nodes = [...field.querySelectorAll("p")];
    nodes.forEach((node, index) => { node.setAttribute("role", "application"); if (!index) node.tabIndex = 0; });
    at = { ...read(text, field.lang), paragraphs: paragraphs(text, nodes) };
    spans = parsed(find("textarea", box).value, at);
    draw();
    ofOthers(text);
    nameByWords();
  };
  // Before an adjudicator: the marks of each person, with those outlined that not all have made.
  const ofOthers = (text) => {
    const answers = [...document.querySelectorAll("[data-spans]")].map((section) => [section, parsed(section.dataset.spans, at)]);
    for (const [section, marks] of answers) {
      const node = find(".text", section);
      paint(text, { node, start: 0, end: text.length }, marks, (span) => !answers.every(([, others]) => others.some((other) => isSame(span, other))));
    }
  };
  // Elsewhere on the page a span is called by its label and offsets; here its text is at hand.
  const CALLED = /(^|[;.] )([^;.]+?) (\d+)–(\d+)(?=[;:,]|$)/gu;
  const withWords = (name) => name.replace(CALLED, (all, before, label, start, end) => `${before}${isolated(`“${at.text.slice(at.ends.get(Number(start)), at.ends.get(Number(end)))}”`)} ${isolated(label)}`);
  const nameByWords = () => {
    for (const node of document.querySelectorAll(".why bdi, .compared th bdi, .dossier aside td b, .notice b")) node.textContent = withWords(node.textContent);
  };
  document.addEventListener("input", ({ target, detail }) => {
    if (!at || detail === "spans" || !target.matches("#spans textarea")) return;
    spans = parsed(target.value, at);
    draw();
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => { if (target.id === "work") begin(); });
  document.addEventListener("DOMContentLoaded", begin);
})();
