"""Pictures and arrays in zips, folders and files of their own, as other programs write them."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.trials._sound import npz
from benchmarks.trials._wild_file import AB, IDS, N, WildFile, X, png, table_of


def _packed(members: Mapping[str, bytes], flag: int | None = None, encoding: str = "utf-8") -> bytes:
    """A zip whose names have these bytes, with or without the flag that says UTF-8."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number, data in enumerate(members.values()):
            archive.writestr(f"{number:04d}", data)
    if flag is None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return stream.getvalue()
    return _renamed(stream.getvalue(), [name.encode(encoding) for name in members], flag)


def _renamed(data: bytes, names: Sequence[bytes], flag: int) -> bytes:
    """A zip of members called 0000, 0001, ... with other names, in its directory and before each member."""
    local, at = [], 0
    for name in names:
        head = bytearray(data[at : at + 30])
        (size,), (length,) = struct.unpack_from("<I", head, 18), struct.unpack_from("<H", head, 26)
        body = data[at + 30 + length : at + 30 + length + size]
        struct.pack_into("<H", head, 6, flag)
        struct.pack_into("<H", head, 26, len(name))
        local.append(bytes(head) + name + body)
        at += 30 + length + size
    directory, start = [], 0
    for name, member in zip(names, local, strict=True):
        entry = bytearray(data[at : at + 46])
        struct.pack_into("<H", entry, 8, flag)
        struct.pack_into("<H", entry, 28, len(name))
        struct.pack_into("<I", entry, 42, start)
        directory.append(bytes(entry) + name)
        start, at = start + len(member), at + 50
    whole = b"".join(local)
    listed = b"".join(directory)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(names), len(names), len(listed), len(whole), 0)
    return whole + listed + end


def _grey(i: int) -> Any:
    return (np.arange(16 * 20).reshape(16, 20) % 97 + 5 * i).astype(np.uint8)


def zips() -> list[WildFile]:
    """Zips and folders of pictures as systems pack them."""
    shots = {f"{label}/{i}.png": png(_grey(i)) for i, label in enumerate(AB)}
    umlauts = {f"{('Bär', 'Möwe')[i % 2]}/{i}.png": png(_grey(i)) for i in range(N)}
    mac = {f"photos/{path}": data for path, data in umlauts.items()}
    forks = {f"__MACOSX/photos/{path.replace('/', '/._')}": b"\0\5\x16\7fork" for path in umlauts}
    junk = {"photos/.DS_Store": b"\0\0\0\1Bud1", "photos/Thumbs.db": b"\xd0\xcf", "photos/desktop.ini": b"["}
    backs = {path.replace("/", "\\"): data for path, data in shots.items()}
    german: dict[str, Any] = {"kind": "image", "classes": ("Bär", "Möwe"), "pixels": {0: ((16, 20), 0)}}
    plain: dict[str, Any] = {"kind": "image", "classes": ("cat", "dog"), "pixels": {0: ((16, 20), 0)}}
    splits = {f"{('train', 'test')[i % 3 == 2]}/{AB[i]}/{i}.png": png(_grey(i)) for i in range(N)}
    capitals = {f"{label}/IMG_{i}.JPG": png(_grey(i), "JPEG") for i, label in enumerate(AB)}
    decomposed = {path.replace("ä", "a\u0308"): data for path, data in umlauts.items()}
    return [
        WildFile("python.zip", _packed(shots), ids=["cat/0.png"], **plain),
        WildFile("finder.zip", _packed({**mac, **forks, **junk}, 0), **german),
        WildFile("ditto.zip", _packed({**mac, **forks}, 0x800), **german),
        WildFile("seven-zip.zip", _packed(umlauts, 0x800), ids=["Bär/0.png"], **german),
        WildFile("explorer.zip", _packed(umlauts, 0, "cp437"), **german),
        WildFile("backslashes.zip", _packed(backs, 0), ids=["cat/0.png"], **plain),
        WildFile("spaces.zip", _packed({f"my photos/{k}": v for k, v in shots.items()}), **plain),
        WildFile("capitals.zip", _packed(capitals), kind="image", classes=("cat", "dog")),
        WildFile("decomposed.zip", _packed(decomposed, 0x800), kind="image", labels=["Ba\u0308r"]),
        WildFile(
            "with-readme.zip", _packed({**shots, "README.txt": b"photos"}), notes=("README.txt",), **plain
        ),
        WildFile("kaggle.zip", _packed(splits), kind="image", classes=("cat", "dog")),
        WildFile(
            "archive.zip",
            _packed({"archive/train.csv": table_of(id=IDS, x=X, label=AB).to_csv(index=False).encode()}),
            ids=IDS[:2],
            uses={"id": "id", "label": "class"},
        ),
        WildFile("classes", {**shots, ".DS_Store": b"\0"}, **plain),
        WildFile("unsorted", {path.replace("/", "-"): data for path, data in shots.items()}, kind="image"),
        WildFile(
            "isic",
            {
                "metadata.csv": b"isic_id,age,diagnosis\n"
                + b"".join(b"ISIC_%04d,%d,%s\n" % (i, 30 + i, AB[i].encode()) for i in range(N)),
                **{f"ISIC_{i:04d}.jpg": png(np.full((16, 20), 5 * i, np.uint8), "JPEG") for i in range(N)},
            },
            kind="image",
            uses={"isic_id": "picture"},
            pixels={2: ((16, 20), 10)},
        ),
        WildFile(
            "table-beside",
            {
                "metadata.csv": b"file_name,label\n"
                + b"".join(b"%d.png,%s\n" % (i, AB[i].encode()) for i in range(N)),
                **{f"{i}.png": png(_grey(i)) for i in range(N)},
            },
            labels=AB[:3],
            **plain,
        ),
    ]


def _rotated() -> bytes:
    from PIL import Image

    image = Image.fromarray(np.repeat(np.repeat(np.array([[200, 0], [0, 0], [0, 0]], np.uint8), 8, 0), 8, 1))
    about = Image.Exif()
    about[0x0112] = 6  # the camera was turned: the top of the scene is on the right
    stream = io.BytesIO()
    image.save(stream, "PNG", exif=about)
    return stream.getvalue()


def pictures() -> list[WildFile]:
    """Pictures of all modes and depths, by their shape and their first pixel."""
    from PIL import Image

    step = (np.arange(16 * 20).reshape(16, 20) % 60 + 40).astype(np.uint8)
    colour = np.stack([step, step // 2, 255 - step], axis=-1)
    clear = np.dstack([colour, np.full(step.shape, 0, np.uint8)])
    deep = step.astype(np.uint16)
    palette = Image.fromarray(colour).quantize(16)
    pages = [Image.fromarray(step + k) for k in range(3)]
    streams = {name: io.BytesIO() for name in ("palette", "pages", "frames", "tiff", "clear")}
    palette.save(streams["palette"], "PNG")
    palette.save(streams["clear"], "PNG", transparency=int(np.asarray(palette)[0, 0]))
    pages[0].save(streams["pages"], "TIFF", save_all=True, append_images=pages[1:])
    pages[0].save(streams["frames"], "GIF", save_all=True, append_images=pages[1:])
    Image.fromarray(step).save(streams["tiff"], "TIFF", compression="tiff_lzw")
    first = palette.convert("RGB").getpixel((0, 0))
    assert isinstance(first, tuple)
    shape, white = (16, 20), [255, 255, 255]
    of: dict[str, tuple[bytes, tuple[int, ...], Any]] = {
        "grey.png": (png(step), shape, 40),
        "colour.png": (png(colour), (16, 20, 3), [40, 20, 215]),
        "clear.png": (png(clear), (16, 20, 3), white),
        "grey-alpha.png": (_with_alpha(step), shape, 40),
        "palette.png": (streams["palette"].getvalue(), (16, 20, 3), list(first)),
        "palette-clear.png": (streams["clear"].getvalue(), (16, 20, 3), white),
        "bits.png": (png((step > 50) * np.uint8(255), "PNG", "1"), shape, 0),
        "eight-in-sixteen.png": (png(deep), shape, 40),
        "twelve.tif": (png(deep * 40), shape, 100),
        "sixteen.tif": (png(deep * 600, "TIFF"), shape, 93),
        "sixteen.pgm": (png(deep * 600, "PPM"), shape, 93),
        "fraction.tif": (png((step / 100).astype(np.float32), "TIFF"), shape, 102),
        "lzw.tif": (streams["tiff"].getvalue(), shape, 40),
        "pages.tif": (streams["pages"].getvalue(), shape, 40),
        "frames.gif": (streams["frames"].getvalue(), (16, 20, 3), [40, 40, 40]),
        "plain.bmp": (png(colour, "BMP"), (16, 20, 3), [40, 20, 215]),
        "lossless.webp": (png(colour, "WEBP", lossless=True), (16, 20, 3), [40, 20, 215]),
        "plain.ppm": (png(colour, "PPM"), (16, 20, 3), [40, 20, 215]),
        "turned.png": (_rotated(), (16, 24), 0),
    }
    found = []
    for name, (data, size, pixel) in of.items():
        stem, _, ending = name.partition(".")
        folder = {f"{i}.{ending}": data for i in range(2)}
        found.append(WildFile(f"{stem}-{ending}", folder, n=2, kind="image", pixels={1: (size, pixel)}))
    # JPEGs: their pixels are near, not equal, so a picture of one colour
    for name, mode, value in (
        ("grey", "L", 90),
        ("colour", "RGB", [90, 90, 90]),
        ("cmyk", "CMYK", [90, 90, 90]),
    ):
        data = png(np.full((16, 24), 90, np.uint8), "JPEG", mode, quality=100)
        folder = {f"{i}.jpg": data for i in range(2)}
        size = (16, 24) if mode == "L" else (16, 24, 3)
        found.append(WildFile(f"{name}-jpg", folder, n=2, kind="image", pixels={0: (size, value)}))
    return found


def _with_alpha(step: Any) -> bytes:
    from PIL import Image

    image = Image.fromarray(step)
    image.putalpha(Image.new("L", image.size, 255))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def arrays() -> list[WildFile]:
    """Files of arrays as teaching libraries and old sets have them."""
    rng = np.random.default_rng(0)
    images, table = rng.integers(0, 256, (N, 14, 14), dtype=np.uint8), rng.normal(size=(N, 3))
    codes = np.arange(N) % 2
    idx = b"\0\0\x08\x03" + struct.pack(">3I", *images.shape) + images.tobytes()
    named = np.array(["cat", "dog"])
    svm = "".join(f"{2 * c - 1} 1:{row[0]:.3f} 3:{row[2]:.3f}\n" for c, row in zip(codes, table, strict=True))
    case = partial(WildFile, kind="image", pixels={1: ((14, 14), int(images[1, 0, 0]))}, options={})
    split = {"x_train": images[:18], "y_train": codes[:18], "x_test": images[18:], "y_test": codes[18:]}
    return [
        case("keras.npz", npz(**split), classes=("0", "1")),
        case("medmnist.npz", npz(images=images, labels=codes), classes=("0", "1")),
        case("named.npz", npz(X=images, y=codes, classes=named), labels=["cat", "dog"]),
        case("train-images-idx3-ubyte.gz", gzip.compress(idx)),
        WildFile("ids.npz", npz(X=table, y=named[codes], ids=np.array(IDS)), ids=IDS[:2], labels=AB[:2]),
        WildFile("a9a.svm", svm.encode(), classes=("-1", "1")),
    ]
