"""Names of another home's files, wherever they stand in a document."""

from workbench.store.pool_files import _moved


def test_a_path_is_moved_where_it_starts_a_text_or_stands_in_it() -> None:
    document = {
        "spec": "/old/home/pools/a.csv",
        "with": ["images:/old/home/pools/b", "/old/homely/c.csv", "plain", 3, None],
        "windows": "C:\\old\\pools\\d.csv",
    }
    assert _moved(document, ["/old/home", "C:\\old"], "/new") == {
        "spec": "/new/pools/a.csv",
        "with": ["images:/new/pools/b", "/old/homely/c.csv", "plain", 3, None],
        "windows": "/new/pools/d.csv",
    }
