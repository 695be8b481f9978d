import gzip
import io
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from tests.pools.helpers import needs
from workbench.errors import InputError
from workbench.pools import feature_map_from_json, load_pool
from workbench.pools.formats import images as images_room
from workbench.pools.images import decoding
from workbench.pools.images.decoding import decode_image

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, size=(12, 6, 5), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, size=(12, 6, 5, 3), dtype=np.uint8)


def png(array, **options) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, "PNG", **options)
    return stream.getvalue()


def zipped(files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return stream.getvalue()


def folder(images=GREY):
    return {f"pets/{'cat' if i % 2 else 'dog'}/{i:02d}.png": png(image) for i, image in enumerate(images)}


def test_a_zip_whose_folders_are_classes():
    pool = load_pool(zipped({**folder(), "__MACOSX/x.png": b"", "readme.txt": b"hi"}), file_name="pets.zip")
    assert pool.kind == "image" and pool.common_scale and pool.classes == ("cat", "dog") and len(pool) == 12
    index = list(pool.items.ids).index("pets/cat/03.png")
    np.testing.assert_array_equal(pool.items.show(index).image, GREY[3])
    np.testing.assert_allclose(pool.features[index], GREY[3].ravel() / 255, rtol=1e-6)
    assert pool.classes[pool.truth[index]] == "cat"
    assert pool.feature_map.columns[7] == "pixel_1_2"
    assert any("readme.txt" in note for note in pool.notes)


def test_unlabelled_images_and_plain_folders(tmp_path):
    flat = zipped({f"{i}.png": png(image) for i, image in enumerate(COLOUR)})
    pool = load_pool(flat, file_name="flat.zip")
    assert pool.truth is None and pool.n_features == 90
    np.testing.assert_array_equal(pool.items.show(0).image, COLOUR[0])
    for path, data in folder().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    same = load_pool(tmp_path)
    assert same.classes == ("cat", "dog") and len(same) == 12
    assert load_pool(tmp_path, labelled=False).truth is None
    (tmp_path / "pets" / "stray.png").write_bytes(png(GREY[0]))
    stray = load_pool(tmp_path)
    assert stray.classes == ("cat", "dog") and (stray.truth < 0).sum() == 1, "outside the folders: no label"
    with pytest.raises(InputError, match=r"'pets/stray.png' lies in no folder"):
        load_pool(tmp_path, labelled=True)


def test_mixed_sizes_and_modes_are_refused_and_brought_together_on_request():
    wide = {**folder(), "pets/cat/99.png": png(RNG.integers(0, 256, (8, 8), dtype=np.uint8))}
    with pytest.raises(InputError, match=r"mixes sizes.*resize=\(8, 8\)|mixes sizes.*resize=\(6, 5\)"):
        load_pool(zipped(wide), file_name="a.zip")
    pool = load_pool(zipped(wide), file_name="a.zip", resize=(6, 5))
    assert pool.n_features == 30 and any("6 x 5" in note for note in pool.notes)
    mixed = {**folder(), "pets/cat/99.png": png(COLOUR[0])}
    with pytest.raises(InputError, match='mode="grey"'):
        load_pool(zipped(mixed), file_name="a.zip")
    assert load_pool(zipped(mixed), file_name="a.zip", mode="grey").n_features == 30
    assert load_pool(zipped(mixed), file_name="a.zip", mode="colour").n_features == 90
    with pytest.raises(InputError, match="resize"):
        load_pool(zipped(mixed), file_name="a.zip", resize=0)


def test_one_image_is_no_pool_and_colour_is_not_grey():
    one = {"cat/1.png": png(GREY[0])}
    for name, data in [("a.zip", zipped(one)), ("a.npz", npz(X=GREY[:1]))]:
        with pytest.raises(InputError, match="at least 2"):
            load_pool(data, file_name=name)
    grey = load_pool(zipped(folder()), file_name="a.zip")
    with pytest.raises(InputError, match="6 x 5 colour; the pool's are 6 x 5 grey"):
        grey.feature_map.transform(COLOUR)


@pytest.mark.parametrize("as_folder", [False, True])
def test_broken_pictures_are_left_out_and_named(as_folder, tmp_path):
    files = {**folder(), "pets/cat/98.png": png(GREY[0])[:60], "pets/dog/97.png": b"not an image"}
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    source, called = (tmp_path, {}) if as_folder else (zipped(files), {"file_name": "a.zip"})
    pool = load_pool(source, **called)
    note = next(note for note in pool.notes if "cannot be read" in note)
    assert len(pool) == 12
    named = "'pets/cat/98.png', 'pets/dog/97.png'"
    assert note.startswith(f"2 pictures that cannot be read are left out: {named}. The first: ")
    with pytest.raises(InputError, match=r"98\.png' is not an image"):
        load_pool(source, corrupt="error", **called)
    with pytest.raises(InputError, match=r"'b\.png' is not an image that can be read: ") as refused:
        load_pool(zipped({"a.png": png(GREY[0]), "b.png": b"not an image"}), file_name="a.zip")
    assert "object at" not in str(refused.value)


def bomb(width: int, height: int) -> bytes:
    """A PNG that promises to be huge: the header alone is enough to refuse it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"0"))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [6_000, 12_000, 60_000])
def test_images_that_promise_too_much_are_refused_undecoded(side):
    with pytest.raises(InputError, match=r"limit is|too large"):
        decode_image(bomb(side, side), "x.png")


def test_zip_bombs_are_refused():
    big = zipped({"a/0.png": b"\0" * 30_000_000, "b/1.png": png(GREY[0])})
    assert len(big) < 100_000
    with pytest.raises(InputError, match=r"unpacked.*limit is 10 MB"):
        load_pool(big, file_name="a.zip", max_bytes=10 << 20)
    with pytest.raises(InputError, match=r"decoded.*limit"):
        load_pool(zipped(folder()), file_name="a.zip", resize=1000, max_bytes=5 << 20)


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"a.txt": b"x"}, "holds no images"),
        ({"a.png": png(GREY[0])}, "1 image"),
        ({"a/0.png": png(GREY[0]), "b/1.png": png(GREY[1])}, "2 folders for 2 images"),
    ],
)
def test_bad_zips(files, match):
    with pytest.raises(InputError, match=match):
        load_pool(zipped(files), file_name="a.zip")


def test_a_zip_of_a_table_and_what_explains_it_is_that_table():
    table = b"x,z,class\n" + b"".join(b"%d,%d,%s\n" % (i, i % 7, b"ab"[i % 2 :][:1]) for i in range(40))
    explained = {
        "data/leaves.csv": table,
        "data/leaves.names": b"about",
        "README.md": b"# About",
        "LICENSE": b"-",
    }
    inner = zipped(explained)
    for files in (explained, {"leaves.zip": inner}, {"leaves.zip": inner, "readme.txt": b"about"}):
        pool = load_pool(zipped(files), file_name="leaves.zip", target="class")
        assert (pool.name, len(pool), pool.classes) == ("leaves", 40, ("a", "b"))
    for files in ({"train.csv": table, "test.csv": table}, {"one.zip": inner, "other.zip": inner}):
        with pytest.raises(
            InputError, match=r"of tables (test\.csv, train|one\.zip, other).*Unpack it, and open"
        ):
            load_pool(zipped(files), file_name="two.zip")
    with pytest.raises(InputError, match="holds no images"):  # a zip in a zip in a zip is not looked into
        load_pool(zipped({"a.zip": zipped({"b.zip": inner})}), file_name="c.zip")


def test_not_a_zip_and_one_folder():
    with pytest.raises(InputError, match="not a zip"):
        load_pool(b"nope", file_name="a.zip")
    files = {f"pets/cat/{i}.png": png(image) for i, image in enumerate(GREY)}
    assert load_pool(zipped(files), file_name="a.zip").truth is None
    with pytest.raises(InputError, match="one folder of images only"):
        load_pool(zipped(files), file_name="a.zip", labelled=True)


def test_transparency_palettes_and_sixteen_bits():
    clear = np.zeros((4, 4, 4), dtype=np.uint8)
    assert (decode_image(png(clear), "x") == 255).all(), "laid on white"
    deep = (np.arange(16, dtype=np.uint16) * 4096).reshape(4, 4)
    np.testing.assert_array_equal(decode_image(png(deep), "x"), deep >> 8)
    palette = io.BytesIO()
    Image.fromarray(COLOUR[0]).convert("P").save(palette, "PNG")
    assert decode_image(palette.getvalue(), "x").shape == (6, 5, 3)


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_npz_of_images_in_every_range():
    y = np.arange(12) % 2
    pool = load_pool(npz(X=GREY, y=y), file_name="i.npz")
    fractions = load_pool(npz(X=GREY / 255, y=y), file_name="i.npz")
    np.testing.assert_allclose(pool.features, fractions.features, atol=1e-6)
    np.testing.assert_array_equal(pool.items.show(3).image, fractions.items.show(3).image)
    whole = load_pool(npz(X=GREY.astype(np.int64)[..., None], y=y), file_name="i.npz")
    np.testing.assert_array_equal(whole.features, pool.features)
    for bad, match in [
        (GREY.astype(float) * 2, "run from"),
        (GREY.astype(float) - 1, "run from"),
        (np.where(GREY > 200, np.nan, GREY / 255), "not finite"),
        (np.zeros((4, 5, 5, 4), np.uint8), "Drop transparency"),
    ]:
        with pytest.raises(InputError, match=match):
            load_pool(npz(X=bad), file_name="i.npz")


def test_pixels_are_of_one_size():
    pool = load_pool(npz(X=RNG.integers(0, 256, (9, 6, 5), np.uint8)), file_name="i.npz", features="pixels")
    again = feature_map_from_json(pool.feature_map.to_json())
    with pytest.raises(InputError, match=r"images are 7 x 5 grey; the pool's are 6 x 5 grey"):
        again.transform(np.zeros((2, 7, 5)))


def idx(array) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_files(tmp_path):
    y = (np.arange(12) % 3).astype(np.uint8)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(GREY)))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(y)))
    one = load_pool(tmp_path / "train-images-idx3-ubyte.gz")
    np.testing.assert_array_equal(one.truth, y)
    np.testing.assert_array_equal(one.items.show(4).image, GREY[4])
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(GREY[:5]))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(y[:5]))
    both = load_pool(tmp_path)
    assert len(both) == 17 and both.test.test.tolist() == list(range(12, 17))
    assert load_pool(idx(GREY), file_name="train-images-idx3-ubyte").truth is None
    for data, match in [
        (idx(GREY)[:-1], "cut short"),
        (b"\0\0\x08", "not an idx"),
        (b"\1\2\3\4", "not an idx"),
    ]:
        with pytest.raises(InputError, match=match):
            load_pool(data, file_name="train-images-idx3-ubyte")
    huge = b"\0\0\x08\x03" + struct.pack(">3I", 1 << 31, 1 << 31, 1 << 31)
    with pytest.raises(InputError, match="limit is"):
        load_pool(huge, file_name="train-images-idx3-ubyte")


def jpegs() -> list[bytes]:
    files = []
    for image in COLOUR:
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "JPEG", quality=95)
        files.append(stream.getvalue())
    return files


def test_jpegs_laid_end_to_end():
    files = jpegs()
    offsets = np.cumsum([0, *map(len, files)])
    octets = np.frombuffer(b"".join(files), np.uint8)
    arrays = {"jpeg_train": octets, "offset_train": offsets, "y_train": np.arange(12) % 2}
    pool = load_pool(npz(**arrays), file_name="c.npz")
    np.testing.assert_array_equal(pool.items.show(2).image, np.asarray(Image.open(io.BytesIO(files[2]))))
    with pytest.raises(InputError, match="offsets"):
        load_pool(npz(**{**arrays, "offset_train": offsets + 5}), file_name="c.npz")
    with pytest.raises(InputError, match=r"12 items, but classes of shape \[11\]"):
        load_pool(npz(**{**arrays, "y_train": np.zeros(11)}), file_name="c.npz")


def test_many_jpegs_are_decoded_once(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path))
    monkeypatch.setattr("workbench.pools.formats.arrays.WORTH", 5)
    files = jpegs()
    offsets = np.cumsum([0, *map(len, files)])
    data = npz(jpeg_train=np.frombuffer(b"".join(files), np.uint8), offset_train=offsets)
    first = load_pool(data, file_name="c.npz")
    (kept,) = tmp_path.glob("decoded-*/images.npy")

    def decoded(*given, **named):
        raise AssertionError("decoded again")

    with monkeypatch.context() as patch:
        patch.setattr("workbench.pools.images.decoding.decode_image", decoded)
        again = load_pool(data, file_name="c.npz")
    np.testing.assert_array_equal(again.features, first.features)
    np.testing.assert_array_equal(again.fingerprints, first.fingerprints)
    kept.write_bytes(b"cut short")
    np.testing.assert_array_equal(load_pool(data, file_name="c.npz").features, first.features)


@pytest.mark.slow  # alone: 70,000 pictures and their own split
def test_fashion_mnist_is_whole():
    needs("images/fashion_mnist.npz")
    pool = load_pool("images:fashion-mnist", features="pixels")
    assert len(pool) == 70_000 and pool.test.test[0] == 60_000 and pool.features.dtype == np.float32
    assert (np.bincount(pool.truth) == 7000).all() and pool.classes[9] == "ankle boot" and not pool.notes


@pytest.mark.parametrize(("kind", "mode"), [("JPEG", "RGB"), ("PNG", "RGBA"), ("PNG", "I;16"), ("PNG", "P")])
def test_photos_above_the_limit_of_images_are_decoded_at_reduced_size(
    kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "MAX_PIXELS", 10_000)
    stream = io.BytesIO()
    Image.new(mode, (300, 200), {"RGB": (200, 10, 30), "RGBA": (0, 0, 0, 0)}.get(mode, 7)).save(stream, kind)
    shown = decode_image(stream.getvalue(), "x", max_pixels=60_000, upright=True)
    assert shown.shape[0] * shown.shape[1] <= 10_000 and shown.shape[0] >= 50
    copy = decode_image(stream.getvalue(), "x", max_pixels=60_000, side=48, upright=True)
    assert copy.shape[:2] == (32, 48)
    if mode == "RGBA":
        assert (shown == 255).all(), "transparency is white"
    with pytest.raises(InputError, match="300 x 200 pixels; the limit is 59,999"):
        decode_image(stream.getvalue(), "x", max_pixels=59_999, side=48)


def test_a_pool_of_photos_takes_one_above_the_limit_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (decoding, images_room):
        monkeypatch.setattr(room, "MAX_PIXELS", 10_000)
    rng = np.random.default_rng(0)
    large = rng.integers(0, 255, (160, 240, 3), dtype=np.uint8)
    files = zipped(
        {"a/0.png": png(large), **{f"{'ab'[i % 2]}/{i}.png": png(large[:40, :40]) for i in range(1, 6)}}
    )
    pool = load_pool(files, file_name="p.zip", features="shapes")
    assert len(pool) == 6 and pool.items.show(0).image.size <= 3 * 10_000
    small = load_pool(files, file_name="p.zip", resize=8, max_pixels=10_000)
    assert len(small) == 5 and any("the limit is 10,000 pixels an image" in note for note in small.notes)


@pytest.mark.parametrize("mode", ["blue", ""])
def test_another_mode_is_refused_with_those_there_are(mode):
    content = zipped({f"{i}.png": png(np.full((4, 4), i, np.uint8)) for i in range(3)})
    with pytest.raises(InputError, match=rf"^mode='{mode}' is not one of 'grey', 'colour'\.$"):
        load_pool(content, file_name="a.zip", mode=mode)
