// What does not scroll is no stop of the Tab key: a table or code that fits into its frame.
"use strict";

(() => {
  const frames = document.querySelectorAll(".text pre, .text .wide");
  const watch = new ResizeObserver(() => {
    for (const frame of frames) {
      if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
      else frame.removeAttribute("tabindex");
    }
  });
  for (const frame of frames) watch.observe(frame);
})();
