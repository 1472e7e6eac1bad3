"""Firefox by WebDriver BiDi, which it speaks itself: no driver program is needed, only `websockets`."""

import base64
import itertools
import json
import re
import subprocess
import threading
import time

from websockets.sync.client import connect

ARGUMENTS = ("--headless", "--no-remote", "--remote-debugging-port", "0", "about:blank")

PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.active-protocols": 1,  # WebDriver BiDi alone
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
"""A browser that asks nobody for anything by itself."""

KEYS = {"Enter": "\ue007", "PageUp": "\ue00e", "Escape": "\ue00c"}


class Firefox:
    """A Firefox with one tab; a context manager.

    Parameters
    ----------
    program : str
        Its path.
    folder : Path
        For its profile; empty.
    dark, still : bool
        What it says of colors and motion.
    """

    def __init__(self, program, folder, *, dark=False, still=False):
        self._program, self._folder = program, folder
        self._numbers = itertools.count(1)
        self._preferences = {
            **PREFERENCES,
            "layout.css.prefers-color-scheme.content-override": 0 if dark else 1,
            "ui.prefersReducedMotion": int(still),
        }
        self.errors, self.asked = [], []

    def __enter__(self):
        rows = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in self._preferences.items()]
        (self._folder / "user.js").write_text("\n".join(rows))
        self._process = subprocess.Popen(
            [self._program, "--profile", str(self._folder), *ARGUMENTS],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            for line in self._process.stderr:
                if found := re.search(r"listening on (ws://\S+)", line):
                    break
            else:
                raise RuntimeError(f"{self._program} ended without offering WebDriver BiDi")
            threading.Thread(target=self._process.stderr.read, daemon=True).start()  # so that it never waits for us
            self._socket = connect(f"{found[1]}/session", max_size=None, compression=None, open_timeout=60).__enter__()
            self.ask("session.new", capabilities={})
            events = ["log.entryAdded", "network.beforeRequestSent"]
            self.ask("session.subscribe", events=events)
            self.tab = self.ask("browsingContext.getTree")["contexts"][0]["context"]
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.terminate()
        self._process.wait(20)
        self._process.stderr.close()

    def ask(self, method, **parameters):
        """Return the answer to a command; note what happens meanwhile."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            said = json.loads(self._socket.recv(timeout=60))
            if said.get("id") == number:
                if said["type"] == "error":
                    raise RuntimeError(f"{method}: {said['error']}: {said['message']}")
                return said["result"]
            happened = said.get("params", {})
            if said.get("method") == "log.entryAdded" and happened["level"] == "error":
                self.errors.append(happened["text"])
            elif said.get("method") == "network.beforeRequestSent" and not happened["request"]["url"].startswith(
                "data:"
            ):
                self.asked.append(happened["request"]["url"])

    def size(self, width, height):
        """Set the size of what the page has."""
        self.ask("browsingContext.setViewport", context=self.tab, viewport={"width": width, "height": height})

    def goto(self, url):
        """Load a page."""
        self.ask("browsingContext.navigate", context=self.tab, url=url, wait="complete")

    def evaluate(self, code):
        """Return the value of an expression, as JSON has it."""
        target, code = {"context": self.tab}, f"JSON.stringify({code})"
        answer = self.ask("script.evaluate", expression=code, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer
        return json.loads(answer["result"].get("value", "null"))

    def text(self, where):
        """Return the text of an element."""
        return self.evaluate(f"document.querySelector({json.dumps(where)})?.innerText ?? ''")

    def shows(self, where, words):
        """Wait until an element has a text."""
        for _ in range(400):
            if words in self.text(where):
                return
            time.sleep(0.05)
        raise AssertionError(f"{where}: found {self.text(where)!r}, expected {words!r}")

    def press(self, *keys):
        """Press keys one after the other, where the focus is."""
        keys = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keys", "actions": actions})

    def click(self, where):
        """Click the middle of an element."""
        code = f"document.querySelector({json.dumps(where)})"
        self.evaluate(f"{code}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"{code}.getBoundingClientRect()")
        x, y = round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)
        moves = [
            {"type": "pointerMove", "x": x, "y": y},
            *({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up")),
        ]
        self._act({"type": "pointer", "id": "mouse", "actions": moves})

    def _act(self, source):
        self.ask("input.performActions", context=self.tab, actions=[source])

    def picture(self):
        """Return what it shows, as PNG."""
        return base64.b64decode(self.ask("browsingContext.captureScreenshot", context=self.tab)["data"])
