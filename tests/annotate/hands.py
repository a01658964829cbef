"""A person with a keyboard in a real browser. Key presses have the physical key and the character, as those of a
real keyboard do.
"""

import pytest

from annotate.models import Judgment

# The characters of the same keys in three layouts.
RUSSIAN = {"Digit1": "1", "Digit2": "2", "KeyQ": "й", "KeyW": "ц", "KeyZ": "я", "KeyG": "п", "KeyC": "с", "Space": " "}
ARABIC = {"Digit1": "١", "Digit2": "٢", "KeyQ": "ض", "KeyW": "ص", "KeyZ": "ئ", "KeyG": "ل", "KeyC": "ؤ", "Space": " "}
FRENCH = {"Digit1": "&", "Digit2": "é", "KeyQ": "a", "KeyW": "z", "KeyZ": "w", "KeyG": "g", "KeyC": "c", "Space": " "}
# Longer than the time in which the page ignores key presses, because they were meant for the previous post.
PAST_GUARD_MS = 350
# Until htmx has settled new content, the content has the old classes, and the browser submits forms without htmx.
SETTLING = ".htmx-settling, .htmx-added"


def let_guard_pass(page):
    """Advance the page's clock past the guard. The result does not depend on the speed of the machine."""
    move_clock(page, PAST_GUARD_MS)


def move_clock(page, ms):
    page.wait_for_load_state()
    page.wait_for_selector(SETTLING, state="detached")
    page.evaluate("ms => { window.skippedMs += ms; }", ms)


def stop_clock(page):
    """Stop the page's clock, so that it only moves when a test advances it."""
    page.evaluate("() => { const now = performance.now() - skippedMs; performance.now = () => now + skippedMs; }")


def tap(page, selector):
    """Tap an element, and wait for the click that the browser sends later. Do not use this for links to other pages."""
    tapped(page, lambda: page.tap(selector))


def tapped(page, act):
    before = page.evaluate("window.clicks")
    act()
    page.wait_for_function("before => window.clicks > before", arg=before)


def posts_of(page):
    """Return a list that collects the URLs to which the page sends answers from now on."""
    posted = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    return posted


def lose_reply(page, ending):
    """Drop the next response from a URL with this ending, after the server has processed the request.

    The page itself drops the response, because the browser sometimes starts to intercept requests too late.
    """
    page.evaluate(
        """ending => {
          const { open, send } = XMLHttpRequest.prototype;
          XMLHttpRequest.prototype.open = function (method, url, ...rest) {
            if (url.endsWith(ending)) {
              XMLHttpRequest.prototype.open = open;
              this.send = body => { this.onload = this.onerror; send.call(this, body); };
            }
            return open.call(this, method, url, ...rest);
          };
        }""",
        ending,
    )


class Hands:
    """A person with a keyboard."""

    def __init__(self, page, layout):
        self.page, self.layout = page, layout
        self.keyboard = page.context.new_cdp_session(page)

    def press(self, code, repeat=False):
        key = self.layout.get(code, code)
        down = {"type": "keyDown", "code": code, "key": key, "autoRepeat": repeat}
        if len(key) == 1:
            down["text"] = key
        self.keyboard.send("Input.dispatchKeyEvent", down)
        self.keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", "code": code, "key": key})

    def press_and_wait(self, code, after=PAST_GUARD_MS):
        """Press a key after this much time, and wait until the page shows the next unit, or none."""
        move_clock(self.page, after)
        self.page.evaluate("document.querySelector('#work').firstElementChild.dataset.old = ''")
        self.press(code)
        self.page.wait_for_selector("#work > :first-child:not([data-old])", state="attached")
        self.page.wait_for_selector(SETTLING, state="detached")

    @property
    def post(self):
        return self.page.inner_text("#post")


@pytest.fixture
def at_work(new_page):
    """Return a function: at_work(task, annotator, layout) opens the queue as this person, with the first post."""

    def begin(task, annotator, layout=RUSSIAN, **options):
        page = new_page(user=annotator.user, **options)
        page.goto(f"/tasks/{task.name}/")
        page.click("button:has-text('Start')")
        page.wait_for_selector("#post")
        return Hands(page, layout)

    return begin


def answers_of(annotator):
    live = Judgment.objects.filter(annotator=annotator, voided_at=None).order_by("pk")
    return [(judgment.kind, judgment.label, judgment.reason) for judgment in live]


def worst_contrast(page):
    """Return the minimum contrast between visible text and its background, from 1 to 21 (WCAG 2.2)."""
    return page.evaluate(
        """() => {
          const parse = colour => colour.match(/[\\d.]+/g).map(Number);
          const linear = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
          const light = ([r, g, b]) => [r, g, b].map(linear)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
          const ground = node => { for (; node; node = node.parentElement) {
            const c = parse(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } };
          let worst = 99;
          for (const node of document.querySelectorAll("body *")) {
            if (!node.checkVisibility() || ![...node.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
            const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node) || [255, 255, 255])];
            worst = Math.min(worst, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
          }
          return worst;
        }
        """
    )


def sent(answer):
    """Return the form fields for an answer such as "de", or for an answer with a reason such as "und mixed"."""
    label, _, reason = answer.partition(" ")
    return {"answer": label, "reason": reason}
