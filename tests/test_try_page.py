"""The page that analyses results in a browser: in Chromium, with CPython in the place of Pyodide.

What the stand-in runs is the wheel that the page loads, without the modules that Pyodide lacks.
"""

import base64
import functools
import http.server
import json
import runpy
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from test_without_processes import BLOCKED

import browsers
import polarbear as pb

MAKE = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "try" / "make.py"))
HEADERS = {"Access-Control-Allow-Origin": "*"}

PYODIDE = """
const ask = async (what, body) => {
  const answer = await fetch("%s" + what, { method: "POST", body: JSON.stringify(body) });
  return answer.json();
};
const coded = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
let files = {};
export const loadPyodide = async () => ({
  loadedPackages: { %s },
  loadPackage: async (names) => {
    const wheel = await (await fetch(names.at(-1))).arrayBuffer();
    await ask("load", { names: names.slice(0, -1), wheel: coded(new Uint8Array(wheel)) });
  },
  runPythonAsync: async (code) => {
    const { value, report } = await ask("run", { code, files });
    files = { "report.html": report };
    return value === null ? undefined : { toJs: () => value };
  },
  FS: {
    writeFile: (name, bytes) => { files[name] = coded(bytes); },
    readFile: (name) => Uint8Array.from(atob(files[name]), (letter) => letter.charCodeAt(0)),
    unlink: (name) => { delete files[name]; },
  },
});
"""

CPYTHON = """
import base64, json, pathlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, {wheel!r})
asked = json.load(sys.stdin)
names = {{}}
for program in asked["programs"]:
    exec(program, names)
value = eval(asked["call"], names) if asked["call"] else None
assert pathlib.Path(sys.modules["polarbear"].__file__).is_relative_to({wheel!r})
json.dump(value, sys.stdout)
"""


class Runtime:
    """Answers what the stand-in for Pyodide asks, by CPython in a folder of its own."""

    def __init__(self, folder):
        self.folder, self.wheel = folder, folder / "wheel"
        self.packages, self.programs = None, []

    def answer(self, route):
        name = route.request.url.removeprefix(MAKE["RUNTIME"])
        if name == "pyodide.mjs":
            loaded = ", ".join(f"{package}: 'default'" for package in MAKE["PACKAGES"])
            body = PYODIDE % (MAKE["RUNTIME"], loaded)
            route.fulfill(body=body, content_type="text/javascript", headers=HEADERS)
        else:
            said = getattr(self, name)(json.loads(route.request.post_data))
            route.fulfill(json=said, headers=HEADERS)

    def load(self, asked):
        self.packages = asked["names"]
        archive = self.folder / "loaded.zip"
        archive.write_bytes(base64.b64decode(asked["wheel"]))
        zipfile.ZipFile(archive).extractall(self.wheel)
        return {}

    def run(self, asked):
        for name, content in asked["files"].items():
            (self.folder / Path(name).name).write_bytes(base64.b64decode(content or ""))
        call = asked["code"].replace("/tmp/", "")
        if "\n" in call:
            self.programs.append(call)
            call = ""
        program = CPYTHON.format(blocked=BLOCKED, wheel=str(self.wheel))
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps({"programs": self.programs, "call": call}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        report = self.folder / "report.html"
        content = base64.b64encode(report.read_bytes()).decode() if report.exists() else ""
        return {"value": json.loads(done.stdout), "report": content}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The page, served on this machine."""
    folder = tmp_path_factory.mktemp("try")
    MAKE["make"](folder)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    serve = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(bool(browsers.why_not()), reason=browsers.why_not())
def test_a_dropped_zip_becomes_a_report_and_nothing_is_uploaded(site, tmp_path):
    pb.example().to_csv(tmp_path / "runs.csv")
    with zipfile.ZipFile(tmp_path / "runs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "runs.csv", "runs.csv")
    (tmp_path / "notes.txt").write_text("Nothing to compare.")
    runtime = Runtime(tmp_path)
    with browsers.opened() as browser, browsers.Visit(browser, site) as visit:
        page = visit.page
        page.route(MAKE["RUNTIME"] + "**", runtime.answer)
        page.locator("#file").set_input_files(tmp_path / "runs.csv")
        browsers.expect(page.locator("#answer")).to_contain_text("Choose above whether small")
        page.get_by_label("small", exact=True).check()
        # Dropped, as by a hand; the other files are chosen.
        page.evaluate(
            """([name, text]) => {
              const dropped = new DataTransfer();
              const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
              dropped.items.add(new File([bytes], name));
              const event = new DragEvent("drop", { dataTransfer: dropped, cancelable: true });
              document.getElementById("drop").dispatchEvent(event);
            }""",
            ["runs.zip", base64.b64encode((tmp_path / "runs.zip").read_bytes()).decode()],
        )
        browsers.expect(page.locator("#state")).to_contain_text("The answer")
        browsers.expect(page.locator("#answer")).to_contain_text("CMA-ES")
        report = page.frame_locator("#report")
        browsers.expect(report.locator("h1")).to_contain_text("CMA-ES")
        page.locator("#file").set_input_files(tmp_path / "notes.txt")
        browsers.expect(page.locator("#state")).to_have_text("PolarBear cannot read this:")
        browsers.expect(page.locator("#answer")).to_contain_text("notes.txt")
        assert runtime.packages == [*MAKE["PACKAGES"]]
        assert not visit.errors
        there = {url for url in visit.requests if not url.startswith((MAKE["RUNTIME"], "blob:"))}
        assert all(url.startswith(site) for url in there)
        # Nor could anything be sent to another place.
        assert page.evaluate(
            "fetch('https://example.org').then(() => 'sent', () => 'refused')"
        ) == ("refused")
