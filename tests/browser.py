"""A browser without a window, told by the protocol of its developer tools what to do on a page."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None) if os.name == "posix" else None
REASON = "no Chromium on PATH (apt-get install chromium)"
PATIENCE = 60
"""The seconds within which the browser must answer."""


CONNECT = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The program that becomes the browser, with the ends of both pipes where it expects them."""


class Browser:
    """Chromium; its commands and answers are texts that end in a zero, on descriptors 3 and 4."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                CONNECT,
                str(commands),
                str(answers),
                PROGRAM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={folder}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(commands, answers),
        )
        os.close(commands)
        os.close(answers)
        self._number = 0
        self._read = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Return the answer to a command. What happens meanwhile comes to `events`."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            command["sessionId"] = session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (message := self._next()).get("id") != self._number:
            self.events.append(message)
        assert "error" not in message, message["error"]
        return message["result"]

    def wait(self, event: str, **params: Any) -> None:
        """Wait for an event with these parameters."""
        while not any(
            e.get("method") == event and params.items() <= e["params"].items() for e in self.events
        ):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], max(0, end - time.monotonic()))
            assert ready, f"the browser has not answered for {PATIENCE} seconds"
            part = os.read(self._answers, 1 << 20)
            assert part, "the browser has ended"
            self._read += part
        line, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)


class OpenPage:
    """A page that was opened from its file."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self._browser = browser
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call("Page.navigate", url=path.as_uri())
        browser.wait("Page.loadEventFired")

    def _call(self, method: str, **params: Any) -> Any:
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, after what is due now."""
        answer = self._call(
            "Runtime.evaluate",
            expression=f"new Promise(f => requestAnimationFrame(() => setTimeout(f))).then(() => {expression})",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the text that an element shows."""
        shown: str = self.value(
            f"(e => e.innerText ?? e.textContent)(document.querySelector({json.dumps(selector)}))"
        )
        return shown

    def count(self, selector: str) -> int:
        """Return the number of elements that are shown."""
        found: int = self.value(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".filter(e => e.getClientRects().length).length"
        )
        return found

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Move the pointer to a place in an element, as fractions of its width and height."""
        self._at = self.value(
            f"(e => {{ e.scrollIntoView({{ block: 'center' }}); const r = e.getBoundingClientRect();"
            f"return [r.x + r.width * {across}, r.y + r.height * {down}] }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        self._mouse("mouseMoved", button="none")

    def click(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        self.point(selector, across, down)
        self._mouse("mousePressed")
        self._mouse("mouseReleased")

    def _mouse(self, kind: str, button: str = "left") -> None:
        x, y = self._at
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    def write(self, selector: str, text: str) -> None:
        """Click at a field, and write into it in place of what is there."""
        self.click(selector)
        self.value(f"document.querySelector({json.dumps(selector)}).select()")
        self._call("Input.insertText", text=text)

    def download(self, selector: str, folder: Path) -> str:
        """Click at what saves a file, and return the content of the file."""
        self._browser.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(folder),
            eventsEnabled=True,
        )
        self.click(selector)
        self._browser.wait("Browser.downloadProgress", state="completed")
        (saved,) = folder.iterdir()
        return saved.read_text()

    def choose(self, selector: str, value: str) -> None:
        """Choose from a list."""
        self.value(
            f"(e => {{ e.value = {json.dumps(value)};"
            " e.dispatchEvent(new Event('input', { bubbles: true }));"
            f" e.dispatchEvent(new Event('change')) }})(document.querySelector({json.dumps(selector)}))"
        )

    def dark(self, dark: bool) -> None:
        """Say what the system prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def check(self) -> None:
        """Assert that no script has failed, and that nothing but the file was asked for."""
        self.value("0")
        events = self._browser.events
        problems = [
            e["params"]
            for e in events
            if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
        ]
        assert not problems
        asked = [
            e["params"]["request"]["url"]
            for e in events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        assert len(asked) == 1 and asked[0].startswith("file:"), asked
