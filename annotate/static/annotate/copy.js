// A link that is shown once is marked whole when its field is entered, and copied by a button.
"use strict";

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  field.addEventListener("focus", () => field.select());
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // Without TLS browsers keep the clipboard from scripts but for this.
      document.execCommand("copy");
    }
    button.nextElementSibling.textContent = button.dataset.done;
  });
}
