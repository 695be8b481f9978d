"""Pictures of every page, light and dark, wide and narrow: `make screenshots ARGS=folder`.

A contact sheet of each page (four widths, both themes) lies beside them, `sheet-NAME.png`, and all of them
on one page, `index.html`. Without a folder the pictures and the film of the documents are made
(docs/images; `ARGS="--only desk"` for some of them).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import film, own_projects
from benchmarks.driving import PATIENCE, ROOT, Server, chromium, own_home, settled, visit
from workbench.app.lessons.lessons import EXPERIMENTS, LESSONS

PICTURES = ROOT / "docs" / "images"
FILM = PICTURES / "desk.gif"
# those of docs/teaching.md: names of `Pages.all` that the script refers to, with what else the address says
TAUGHT = {
    "lesson-over-confident": "",
    "lesson-guess": "",
    "lesson-tally": "",
    "lesson-useless": "",
    "lesson-inducing": "&points=16",
    "lesson-looking": "&questions=40",
    "lesson-rivals": "",
    "uncertainty": "",
    "uncertainty-points": "",
    "lessons": "",
    "calibration-gibbs": "",
}
# those of docs/label-your-data.md that need a project of their own -> most pixels of height
DESK = {"desk-classes": 820, "desk-review": 900}
CUT = DESK | {"compare": 790, "lesson-guess": 580}
GAP = 12
SCHEMES = ("light", "dark")
OWN = tuple(own_projects.KINDS)
OF_OWN = ("label", "compare", "uncertainty", "calibration", "adversarial", "history")
WIDTHS = {"wide": 1440, "medium": 1024, "narrow": 800, "phone": 400}
# two pictures that show most of what can go wrong
QUICK = {"light": ("wide",), "dark": ("phone",)}
HEIGHT = (
    "Math.max(...[...document.querySelectorAll('[data-testid=stMain] .block-container, "
    "[data-testid=stMainBlockContainer]')].map(e => e.scrollHeight), 700)"
)
# a table with something of everything, half of it labelled
GAPS = "id,age,joined,plan,comment,label\n" + "".join(
    f"u{i},{'' if i == 3 else 20 + 7 * i % 50},{1 + i % 28:02}.03.2024,{('basic', 'plus', '')[i % 3]},"
    f"The {('lamp', 'chair', 'shelf')[i % 3]} of order {i} {('came late', 'is fine')[i % 2]},"
    f"{('complaint', 'praise')[i % 2] if i < 20 else ''}\n"
    for i in range(100)
)


class Pages:
    """Addresses of a server with two labelled projects and a comparison.

    Args:
        browser: a Chromium.
        server: with an empty home.
        seeds: of the comparison.
        own: with the projects of `OWN`.
    """

    def __init__(self, browser: Any, server: Server, seeds: int = 3, *, own: bool = True) -> None:
        self.server = server
        made = server.home / "screenshots.json"
        if made.is_file():
            self.__dict__ |= json.loads(made.read_text(encoding="utf-8"))
            return
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(PATIENCE)
        self.points = self._project(page, "three-gaussians", 40)
        self.digits = self._project(page, "digits", 60)
        visit(page, f"{server.url}/compare?project={self.digits}")
        for key, value in (("compare-seeds", str(seeds)), ("compare-budget", "40")):
            page.locator(f".st-key-{key} input").fill(value)
            page.locator(f".st-key-{key} input").press("Enter")
        settled(page)
        page.click(".st-key-start-comparison button")
        page.wait_for_selector(".st-key-comparison-bar")
        self.comparison = page.url.partition("comparison=")[2].partition("&")[0]
        page.wait_for_selector(".st-key-comparison-table", timeout=6 * PATIENCE)
        page.close()
        ids = {name: getattr(self, name) for name in ("points", "digits", "comparison")}
        with own_home(server.home):
            from workbench.store import Store

            store = Store.open()
            names = OWN if own else ()
            self.own = {name: own_projects.project(name, server.home / "files", store) for name in names}
            store.close()
        made.write_text(json.dumps(ids | {"own": self.own}), encoding="utf-8")

    def _project(self, page: Any, pool: str, budget: int) -> str:
        visit(page, self.server.url)
        page.click(f".st-key-start-{pool} button")
        # where an earlier run was broken off, the page asks whether to go on with its project
        page.wait_for_selector(".st-key-oracle, .st-key-start-a-new-one button")
        if page.locator(".st-key-start-a-new-one button").count():
            page.click(".st-key-start-a-new-one button")
            page.wait_for_selector(".st-key-oracle")
        settled(page)
        page.locator("[class*=st-key-budget-] input").fill(str(budget))
        page.locator("[class*=st-key-budget-] input").press("Enter")
        settled(page)
        page.click(".st-key-oracle-budget button")
        page.wait_for_function(
            "n => document.querySelector('[data-testid=stSidebar]').innerText.includes(n + ' of ')",
            arg=str(budget),
            timeout=4 * PATIENCE,
        )
        page.wait_for_selector(".st-key-error-curve")
        # the random baseline stands as well
        page.wait_for_function("!document.body.innerText.includes('Random baseline:')", timeout=6 * PATIENCE)
        return str(page.url.partition("project=")[2].partition("&")[0])

    def beginning(self) -> str:
        """The id of another project on the digits, with a model that still errs."""
        with own_home(self.server.home):
            from workbench.sessions import Session
            from workbench.store import Store

            store = Store.open()
            session = Session.create("digits", name="Handwritten digits", store=store, annotator="Ann")
            assert session.pool.truth is not None
            for ask in session.ask(15):
                session.tell(ask.id, session.pool.classes[session.pool.truth[ask.item]])
            session.refit()
            store.close()
        return session.id

    def all(self) -> dict[str, tuple[str, Callable[[Any], None] | None]]:
        """Name -> address and what to do there before the picture."""
        digits, points = f"?project={self.digits}", f"?project={self.points}"
        return {
            "data": ("/", None),
            "data-options": ("/", self._options),
            "data-upload": ("/", self._upload),
            "label": (f"/label{digits}", self._baseline),
            "label-empty": ("/label", None),
            "label-points": (f"/label{points}", None),
            "compare": ("/compare" + digits, None),
            "compare-done": (f"/compare{digits}&comparison={self.comparison}", None),
            "compare-stop": (f"/compare{digits}&comparison={self.comparison}", self._stop),
            "compare-round": (f"/compare{digits}&comparison={self.comparison}", self._round),
            "uncertainty": ("/uncertainty" + digits, self._neighbours),
            "uncertainty-two": ("/uncertainty" + digits, self._pair),
            "uncertainty-points": ("/uncertainty" + points, None),
            "uncertainty-blend": ("/uncertainty" + points, self._blend),
            "uncertainty-pair": ("/uncertainty" + points, self._pair),
            "uncertainty-functions": ("/uncertainty" + points, self._functions),
            "calibration": ("/calibration" + digits, None),
            "calibration-none": ("/calibration", None),
            **{
                f"calibration-{name}": (f"/calibration?experiment={name}", self._experiment)
                for name in EXPERIMENTS
            },
            "lessons": ("/lessons", None),
            "lesson-guess": ("/lessons?lesson=useless&class=1", None),
            "lesson-tally": ("/lessons?lesson=useless&class=1", self._tally),
            "adversarial": ("/adversarial" + digits, None),
            "adversarial-done": ("/adversarial" + digits, self._attack),
            **{f"lesson-{one.name}": (f"/lessons?lesson={one.name}", self._lesson) for one in LESSONS},
            "lesson-together": ("/lessons?lesson=together", None),
            "lesson-join": ("/lessons?lesson=useless&class=1", self._join),
            "lesson-class": ("/lessons?lesson=argmax&class=1", self._lesson),
            "history": ("/history" + digits, None),
            "lost": ("/label?project=gone", None),
            **{
                f"own-{name}-{page}": (f"/{page}?project={identity}", None)
                for name, identity in self.own.items()
                for page in OF_OWN
            },
        }

    def of_the_desk(self) -> dict[str, tuple[str, Callable[[Any], None] | None]]:
        """As `all`, of `DESK`; the projects are made here, for no other picture needs them."""
        with own_home(self.server.home):
            from workbench.store import Store

            store = Store.open()
            questions = own_projects.project("questions", self.server.home / "files", store)
            digits = own_projects.digits_with_slips(store)
            store.close()
        return {
            "desk-classes": (f"/label?project={questions}", self._typed),
            "desk-review": (f"/history?project={digits}", self._gallery),
        }

    @staticmethod
    def _typed(page: Any) -> None:
        page.wait_for_selector(".desk .guess .bar", timeout=6 * PATIENCE)
        page.keyboard.type("cash")
        page.locator(".desk input.search").wait_for()

    @staticmethod
    def _gallery(page: Any) -> None:
        page.get_by_text("likely wrong", exact=False).first.wait_for(timeout=6 * PATIENCE)
        page.get_by_text("Gallery", exact=True).click()
        page.wait_for_selector(".review .tile img, .tile img")

    @staticmethod
    def _options(page: Any) -> None:
        page.click(".st-key-options-three-gaussians button")
        page.wait_for_selector("[role=dialog]")
        page.wait_for_timeout(400)

    @staticmethod
    def _lesson(page: Any) -> None:
        settled(page)
        skip = page.locator(".st-key-guess-skip button")
        if skip.count():
            skip.click()
        page.wait_for_selector("[class*=st-key-save-lesson-]", state="attached", timeout=6 * PATIENCE)

    @staticmethod
    def _join(page: Any) -> None:
        settled(page)
        page.click(".st-key-lesson-share button")
        page.wait_for_selector("img[alt^='QR code']")

    @staticmethod
    def _tally(page: Any) -> None:
        """A class of seven, each in a browser of their own."""
        # of an earlier picture
        page.click(".st-key-lesson-share button")
        page.click(".st-key-clear-guesses button")
        page.keyboard.press("Escape")
        settled(page)
        others = [page.context.browser.new_context(viewport={"width": 400, "height": 700}) for _ in range(6)]
        pages = [page, *(other.new_page() for other in others)]
        for one, guess in zip(pages, ("30", "5", "15", "20", "33.3", "50", "70"), strict=True):
            one.set_default_timeout(PATIENCE)
            if one is not page:
                visit(one, page.url)
            one.locator(".st-key-guess input").fill(guess)
            one.locator(".st-key-guess input").press("Tab")
            one.click(".st-key-guess-show button")
            one.get_by_text("You guessed").wait_for()
        page.get_by_text("7 guesses of this class").wait_for()
        for other in others:
            other.close()

    @staticmethod
    def _attack(page: Any) -> None:
        settled(page)
        page.click(".st-key-start-attack button")
        page.wait_for_selector(".st-key-attack-downloads", timeout=6 * PATIENCE)

    @staticmethod
    def _experiment(page: Any) -> None:
        settled(page)
        start = page.locator(".st-key-start-experiment button").first
        if start.count():
            start.click()
        page.wait_for_selector("[class*=st-key-save-lesson-]", state="attached", timeout=6 * PATIENCE)

    @staticmethod
    def _stop(page: Any) -> None:
        page.get_by_text("When to stop", exact=True).click()
        page.wait_for_selector(".st-key-stop-panels", timeout=3 * PATIENCE)

    @staticmethod
    def _round(page: Any) -> None:
        page.get_by_text("One round, looked at", exact=True).click()
        page.wait_for_selector(".st-key-round-map", timeout=3 * PATIENCE)

    @staticmethod
    def _baseline(page: Any) -> None:
        # the server may have been started anew, and computes it again
        page.wait_for_selector(".st-key-error-curve")
        page.wait_for_function("!document.body.innerText.includes('Random baseline:')", timeout=6 * PATIENCE)

    @staticmethod
    def _neighbours(page: Any) -> None:
        # the map of neighbours comes with an extra package; its axes have no titles
        page.wait_for_function(
            "document.querySelector('[data-testid=stMain] .js-plotly-plot .xy') && "
            "(document.body.innerText.includes('needs the package') || "
            "![...document.querySelectorAll('[data-testid=stMain] .xtitle')].some(e => e.textContent))",
            timeout=3 * PATIENCE,
        )

    @staticmethod
    def _blend(page: Any) -> None:
        page.get_by_text("Probabilities as colour", exact=True).click()

    @staticmethod
    def _pair(page: Any) -> None:
        page.get_by_text("Side by side", exact=True).click()
        page.wait_for_function(
            "(() => { const g = document.querySelector('[data-testid=stMain] .js-plotly-plot');"
            " return g && g._fullLayout && g._fullLayout.xaxis2; })()",
            timeout=3 * PATIENCE,
        )

    @staticmethod
    def _functions(page: Any) -> None:
        page.get_by_text("Class functions", exact=True).click()
        page.wait_for_selector(".st-key-class-bands")

    @staticmethod
    def _upload(page: Any) -> None:
        page.wait_for_selector("[data-testid=stFileUploader]")
        page.set_input_files(
            "[data-testid=stFileUploader] input",
            {"name": "people.csv", "mimeType": "text/csv", "buffer": GAPS.encode()},
        )
        page.wait_for_selector(".st-key-columns")


def pictures(
    browser: Any, url: str, paths: Mapping[int, Path], scheme: str, act: Callable[[Any], None] | None
) -> None:
    """One page at some widths, opened once at the first of them.

    Args:
        browser: a Chromium.
        url: of the page.
        paths: width -> where the picture goes.
        scheme: "light" or "dark".
        act: what is done on the page first.
    """
    context = browser.new_context(viewport={"width": next(iter(paths)), "height": 1000}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    visit(page, url)
    if act is not None:
        act(page)
    settled(page)
    for width, path in paths.items():
        page.set_viewport_size({"width": width, "height": 1000})
        # figures fade in, and take their new width a little later
        page.wait_for_timeout(1200)
        height = page.evaluate(HEIGHT)
        page.set_viewport_size({"width": width, "height": min(int(height) + 20, 3000)})
        # no figure shows its tools
        page.mouse.move(1, 1)
        page.wait_for_timeout(500)
        path.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(path))
    context.close()


def draw_page(
    browser: Any, url: str, name: str, act: Callable[[Any], None] | None, folder: Path, *, quick: bool
) -> None:
    """One page in both themes."""
    for scheme in SCHEMES:
        sizes = QUICK[scheme] if quick else tuple(WIDTHS)
        paths = {WIDTHS[size]: folder / f"{name}-{scheme}-{size}.png" for size in sizes}
        # a phone opens the page with its menu folded away
        phone = {w: paths.pop(w) for w in list(paths) if w == WIDTHS["phone"]}
        for some in filter(None, (paths, phone)):
            pictures(browser, url, some, scheme, act)


def contact_sheet(folder: Path, name: str) -> Path | None:
    """One picture of a page at all widths, light above dark; None where none was drawn."""
    from PIL import Image

    rows = []
    for scheme in SCHEMES:
        paths = [folder / f"{name}-{scheme}-{size}.png" for size in WIDTHS]
        rows.append([Image.open(path).convert("RGB") for path in paths if path.is_file()])
    shown = [one for row in rows for one in row]
    if not shown:
        return None
    small = {id(one): one.resize((one.width * 2 // 5, one.height * 2 // 5)) for one in shown}
    heights = [max((small[id(one)].height for one in row), default=0) for row in rows]
    width = max(sum(small[id(one)].width + GAP for one in row) for row in rows)
    sheet = Image.new("RGB", (width + GAP, sum(heights) + GAP * (len(rows) + 1)), (128, 128, 128))
    top = GAP
    for row, height in zip(rows, heights, strict=True):
        left = GAP
        for one in row:
            sheet.paste(small[id(one)], (left, top))
            left += small[id(one)].width + GAP
        top += height + GAP
    path = folder / f"sheet-{name}.png"
    sheet.quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def index(folder: Path) -> None:
    """All contact sheets on one page."""
    names = sorted(path.stem.removeprefix("sheet-") for path in folder.glob("sheet-*.png"))
    body = "".join(
        f'<h2>{name}</h2><img src="sheet-{name}.png" alt="{name} at four widths in both themes">\n'
        for name in names
    )
    page = (
        f"<!doctype html><meta charset=utf-8><title>Pages</title><style>img{{max-width:100%}}</style>{body}"
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def for_docs(browser: Any, server: Server, pages: Pages, only: str) -> None:
    """The pictures that documents refer to, small; the lessons' without the menu."""
    from PIL import Image

    names = tuple(only.split(","))
    every = pages.all() | (pages.of_the_desk() if any(one.startswith(names) for one in DESK) else {})
    wanted = {"label": "", "data": "", "data-upload": "", "compare": ""} | dict.fromkeys(DESK, "") | TAUGHT
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, more in wanted.items():
        if not name.startswith(names):
            continue
        # a page that only asks says less than one that answers
        address, act = every["compare-done" if name == "compare" else name]
        lesson = name.startswith("lesson-")
        path = PICTURES / f"{name}.png"
        more += "&class=1" if lesson and "class=1" not in address else ""
        pictures(browser, server.url + address + more, {1000 if lesson else 1400: path}, "light", act)
        with Image.open(path) as full:
            cut = full.crop((0, 0, full.width, min(full.height, CUT.get(name, full.height))))
            few = cut.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
        print(path)
    if FILM.name.startswith(names):
        film.film(browser, f"{server.url}/label?project={pages.beginning()}", FILM)
        print(FILM)


def main(arguments: list[str] | None = None) -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where every page is drawn, light and dark")
    parser.add_argument("--only", default="", help="names that begin with this; several with commas between")
    parser.add_argument("--home", type=Path, help="kept between runs, so that the next is quicker")
    parser.add_argument("--quick", action="store_true", help="wide in light and a phone in dark alone")
    given = parser.parse_args(arguments)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        home = given.home or temporary
        if given.folder is not None:
            given.folder.mkdir(parents=True, exist_ok=True)
        # whoever draws is called Ann
        server = Server(Path(home), {"WORKBENCH_WARM": "1", "LOGNAME": "Ann"}).start()
        try:
            # a picture in a document should have something to say
            own = given.folder is not None
            pages = Pages(browser, server, seeds=3 if own else 8, own=own)
            if given.folder is None:
                for_docs(browser, server, pages, given.only)
                return 0
            for name, (address, act) in pages.all().items():
                if not name.startswith(tuple(given.only.split(","))):
                    continue
                # one page that cannot be drawn leaves the others
                try:
                    draw_page(browser, server.url + address, name, act, given.folder, quick=given.quick)
                except Exception as error:
                    failed.append(name)
                    print(f"{name}: {str(error).splitlines()[0]}", flush=True)
                    continue
                print(contact_sheet(given.folder, name), flush=True)
                index(given.folder)
        finally:
            server.stop()
            if given.folder is not None:
                (given.folder / "server.log").write_text(server.log, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
