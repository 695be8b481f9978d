"""Pages driven without a browser: opened, and read."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(path.stem for path in sorted((ROOT / "pages").glob("*.py")))


def application() -> AppTest:
    """The application, whose first page has not run yet."""
    return AppTest.from_file(str(ROOT / "workbench" / "main.py"), default_timeout=600)


def place(name: str) -> str:
    """File of a page, as `switch_page` takes it."""
    return str(ROOT / "pages" / f"{name}.py")


def open_page(name: str, project: str | None = None, **more: str) -> AppTest:
    """A page that has run, with a project and further words of its address."""
    test = application()
    # the first page is there without a switch, and would be another one, without its state, at the next run
    if name != "data":
        test.switch_page(place(name))
    for key, value in {**({"project": project} if project else {}), **more}.items():
        test.query_params[key] = value
    test.run()
    assert not test.exception, test.exception
    return test


def texts(test: AppTest) -> str:
    """Words of a page outside of its widgets."""
    parts = [
        *test.markdown,
        *test.caption,
        *test.info,
        *test.error,
        *test.warning,
        *test.title,
        *test.subheader,
    ]
    return "\n".join(str(part.value) for part in parts).replace("\u00a0", " ")
