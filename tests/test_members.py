"""Names of members of a zip, as the programs that pack one write them."""

import io
import zipfile

import pytest

from workbench.members import ZipMembers

UTF8 = 0x800


def packed(*names: tuple[bytes, bool]) -> bytes:
    """A zip with a member of each name: its bytes, and whether the flag says that they are UTF-8."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for i in range(len(names)):
            archive.writestr(f"{i:060d}", b"%d" % i)
    data = stream.getvalue()
    for i, (name, flagged) in enumerate(names):
        # as long a name in its place: lengths and offsets stay, and slashes in front of it are cut off below
        data = data.replace(f"{i:060d}".encode(), b"d" * (59 - len(name)) + b"/" + name)
        if flagged:
            for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
                start = [j for j in range(len(data)) if data.startswith(mark, j)][i] + at
                data = data[:start] + UTF8.to_bytes(2, "little") + data[start + 2 :]
    return data


def names_of(data: bytes) -> list[str]:
    members = ZipMembers(zipfile.ZipFile(io.BytesIO(data)), "a.zip")
    assert sorted(map(members.read, members.sizes)) == [b"%d" % i for i in range(len(members.sizes))]
    return [name.lstrip("d").removeprefix("/") for name in members.sizes]


@pytest.mark.parametrize(
    ("raw", "flagged", "name"),
    [
        ("Bär/Möwe.png".encode(), True, "Bär/Möwe.png"),  # Python, 7-Zip
        ("Bär/Möwe.png".encode(), False, "Bär/Möwe.png"),  # Finder
        ("Ba\u0308r/1.png".encode(), False, "Ba\u0308r/1.png"),
        ("犬/1.png".encode(), False, "犬/1.png"),
        ("Bär/Möwe.png".encode("cp437"), False, "Bär/Möwe.png"),  # Explorer
        (b"cat\\b\xe4r.png", False, "cat/bΣr.png"),
        (b"cat\\1.png", False, "cat/1.png"),  # old .NET
        ("B┤r/1.png".encode(), True, "B┤r/1.png"),
    ],
)
def test_a_members_name_in_a_zip_is_the_one_that_was_meant(raw: bytes, flagged: bool, name: str) -> None:
    assert set(names_of(packed((b"a.png", False), (raw, flagged)))) == {"a.png", name}
