"""Encoders: whatever makes vectors of items, checked, replayed, and never chosen by a file."""

import json
import pickle
import sys
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.pools.features.test_shapes import photos
from tests.pools.images.test_images import png, zipped
from tests.pools.onnx_file import colour_means
from workbench import registry
from workbench.engine.efficientnet import read_weights
from workbench.errors import InputError
from workbench.pools import encoders, feature_map_from_json, load_pool
from workbench.pools.encoders import ENCODERS, open_encoder
from workbench.pools.named_features import split_sets
from workbench.registry import FileName, trust

HERE = "tests.pools.encoders.test_encoders"
TEXTS = [
    f"my {what} is {how}" for what in ("card", "phone", "house") for how in ("lost", "late", "here", "old")
]
TABLE = ("question\n" + "\n".join(TEXTS)).encode()


def brightness(items):
    """Three numbers an image: its mean, and the means of its halves."""
    return [[np.mean(i), np.mean(i[: len(i) // 2]), np.mean(i[len(i) // 2 :])] for i in items]


def lengths(items):
    return np.array([[len(text), text.count(" "), text.count("a"), 1.0] for text in items])


def too_few(items):
    return np.zeros((1, 3))


def broken(items):
    raise KeyError("no such token")


def not_finite(items):
    return np.full((len(items), 2), np.nan)


@pytest.fixture
def trusted(monkeypatch):
    monkeypatch.setattr(registry, "_trusted", {f"{HERE}:{name}" for name in globals()})


def texts(features, **options):
    return load_pool(TABLE, file_name="q.csv", text_column="question", features=features, **options)


def test_a_function_of_ones_own_gives_features_and_the_items_stay(trusted):
    pool = load_pool(zipped(photos(12)), file_name="p.zip", features=f"{HERE}:brightness")
    assert pool.features.shape == (12, 3)
    np.testing.assert_allclose(np.linalg.norm(pool.features, axis=1), 1.0, atol=1e-5)
    assert pool.items.show(0).image.ndim in (2, 3)
    saved = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    again = saved.transform([pool.items.show(i).image for i in range(12)])
    np.testing.assert_allclose(again, pool.features, atol=1e-5)


def test_sets_are_joined_as_blocks_of_equal_length(trusted):
    name = f"pieces+{HERE}:lengths"
    pool, alone = texts(name), texts(f"{HERE}:lengths")
    block = pool.features[:, -alone.n_features :]
    np.testing.assert_allclose(block * np.sqrt(2), alone.features, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(pool.features, axis=1), 1.0, atol=1e-5)
    saved = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    np.testing.assert_allclose(saved.transform(TEXTS), pool.features, atol=1e-5)
    assert pool.fingerprint != alone.fingerprint
    with pytest.raises(InputError, match="names a set twice"):
        texts(f"pieces+{HERE}:lengths+pieces")


def test_a_function_that_nobody_vouched_for_is_never_called(monkeypatch):
    monkeypatch.setattr(registry, "_trusted", set())
    for name in (f"{HERE}:broken", f"pieces+{HERE}:broken", "os:system", FileName("os:system")):
        with pytest.raises(InputError, match="names code of its own"):
            texts(name)
    document = {"kind": "encoder", "encoder": "os:getcwd", "items": "text", "column": "q"}
    vectors = {"kind": "vectors", "source": "x", "mean": "AACAPw==", "axes": None}
    with pytest.raises(InputError):
        feature_map_from_json(document | {"vectors": vectors}).transform(["a"])


def test_a_model_of_another_library_is_only_loaded_where_a_person_named_it(monkeypatch):
    monkeypatch.setattr(registry, "_trusted", set())
    monkeypatch.setattr(encoders, "find_spec", lambda name: object())
    loaded = []
    monkeypatch.setattr(encoders, "load_target", lambda target: lambda name: loaded.append(name))
    for name, kind in (("sentence-transformers:some/folder", "text"), ("timm:local-dir:x", "image")):
        with pytest.raises(InputError, match="names code of its own"):
            open_encoder(name, kind)
    assert loaded == []
    registry.trust("sentence-transformers:some/folder")
    open_encoder("sentence-transformers:some/folder", "text")
    assert loaded == ["some/folder"]


class Sentences:
    """Stands in for sentence_transformers.SentenceTransformer."""

    def __init__(self, name):
        if name != "my/model":
            raise OSError("We couldn't connect to the hub\nand couldn't find them in the cached files.")

    def encode(self, texts, show_progress_bar):
        assert all(type(text) is str for text in texts) and not show_progress_bar
        return lengths(texts).astype(np.float32)


class Means:
    """Stands in for a model of timm: means of each channel."""

    def eval(self):
        return self

    def __call__(self, batch):
        assert batch.shape[1:] == (3, 8, 8) and len(batch) <= 32
        return SimpleNamespace(numpy=lambda: batch.mean(axis=(2, 3)))


def library_of_pictures(name, pretrained, num_classes):
    assert (pretrained, num_classes) == (True, 0)
    if name != "local-dir:net":
        raise RuntimeError(f"Unknown model ({name})")
    return Means()


@pytest.fixture
def libraries(monkeypatch):
    """Modules in the places of sentence-transformers, timm and torch; the real ones weigh gigabytes."""
    data = SimpleNamespace(
        resolve_model_data_config=lambda model: {"size": 8},
        create_transform=lambda size: (
            lambda picture: np.moveaxis(np.asarray(picture.resize((size, size)), np.float32), 2, 0)
        ),
    )
    monkeypatch.setattr(encoders, "find_spec", lambda name: object())
    for name, content in {
        "sentence_transformers": {"SentenceTransformer": Sentences},
        "timm": {"create_model": library_of_pictures, "data": data},
        "torch": {"Tensor": type("Tensor", (), {}), "inference_mode": nullcontext, "stack": np.stack},
    }.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    names = ("sentence-transformers:my/model", "sentence-transformers:x", "timm:local-dir:net", "timm:x")
    monkeypatch.setattr(registry, "_trusted", set(names))


def test_models_of_other_libraries_read_texts_and_photos_of_any_size(libraries):
    encode = open_encoder("sentence-transformers:my/model", "text")
    np.testing.assert_array_equal(encode(TEXTS), lengths(TEXTS))
    encode = open_encoder("timm:local-dir:net", "image")
    grey, colour = np.full((5, 9), 40, np.uint8), np.full((12, 7, 3), (10, 20, 30), np.uint8)
    found = encode([grey, colour] * 20)  # more than one batch
    np.testing.assert_allclose(found, [[40, 40, 40], [10, 20, 30]] * 20)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("sentence-transformers:x", "text", "couldn't find them in the cached files. Models are looked for"),
        ("timm:x", "image", r"Unknown model \(x\)\. Models are looked for on this machine alone"),
    ],
)
def test_a_model_that_is_not_on_this_machine_is_one_sentence(libraries, name, kind, said):
    with pytest.raises(InputError, match=said) as caught:
        open_encoder(name, kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("too_few", r"returned \[1, 3\] for 12 items"),
        ("broken", "failed: KeyError"),
        ("not_finite", "not finite"),
    ],
)
def test_what_an_encoder_does_wrong_is_one_sentence(trusted, name, said):
    with pytest.raises(InputError, match=said):
        texts(f"{HERE}:{name}")


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    for entry in ENCODERS.values():
        with pytest.raises(InputError, match=f"pip install {entry.package}"):
            open_encoder(entry.name + ("x" if entry.name.endswith(":") else ""), entry.kind)
    with pytest.raises(InputError, match="these items are images"):
        open_encoder("wordllama", "image")
    with pytest.raises(InputError, match=r"takes its columns|read images or texts"):
        load_pool(b"a,b\n1,2\n3,4\n5,6\n", file_name="t.csv", features="wordllama")


def test_a_plus_in_the_name_of_a_file_parts_nothing():
    assert split_sets("embeddings:a+b.npz") == ["embeddings:a+b.npz"]
    assert split_sets("shapes+efficientnet+embeddings:a.npz#v") == [
        "shapes",
        "efficientnet",
        "embeddings:a.npz#v",
    ]
    assert split_sets("pieces+package.module:function") == ["pieces", "package.module:function"]


class Command:
    def __reduce__(self):
        return print, ("run",)


def test_a_file_of_weights_that_names_anything_but_tensors_is_not_read(tmp_path: Path, capsys):
    path = tmp_path / "net.pth"
    path.write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C) * 3 + pickle.dumps({"w": Command()}))
    digest = sha256(path.read_bytes()).hexdigest()
    with pytest.raises(InputError, match=r"names builtins\.print, which is no tensor"):
        read_weights(path, digest)
    assert capsys.readouterr().out == ""
    with pytest.raises(InputError, match="not the file that is expected"):
        read_weights(path, "0" * 64)


@pytest.mark.slow  # alone: real weights of packages, where they are installed
def test_the_encoders_with_weights_inside_their_packages_know_what_is_alike():
    vectors = open_encoder("wordllama", "text")(["my card is lost", "I lost my card", "the weather is fine"])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3
    digits = load_pool("digits")
    images = [digits.items.show(i).image for i in range(200)]
    found = open_encoder("efficientnet", "image")(images)
    assert found.shape == (200, 1280)
    found -= found.mean(axis=0)
    alike = found @ found.T - 1e9 * np.eye(200)
    assert np.mean(digits.truth[:200][alike.argmax(axis=1)] == digits.truth[:200]) > 0.6


def coloured(n=6):
    """Images of one colour each, of several sizes, every other one grey."""
    shades = np.linspace(20, 235, n).astype(np.uint8)
    return [
        np.full((10 + i, 14), shade, np.uint8) if i % 2 else np.tile([shade, 0, 255 - shade], (12, 9, 1))
        for i, shade in enumerate(shades)
    ]


def test_an_onnx_file_encodes_images_of_any_size(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    images = [image.astype(np.uint8) for image in coloured()]
    expected = [[np.mean(i if i.ndim == 2 else i[..., c]) / 255 for c in range(3)] for i in images]
    # as many images at once as it likes, four at once and no others, a size of its own
    for name, shape in (("free", ["n", 3, 16, 16]), ("four", [4, 3, 16, 16]), ("large", ["n", 3, "h", "w"])):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(colour_means(shape))
        np.testing.assert_allclose(open_encoder(str(path), "image")(images), expected, atol=0.01)
    files = zipped({f"{i}.png": png(image) for i, image in enumerate(images)})
    pool = load_pool(files, file_name="p.zip", features=str(tmp_path / "free.onnx"))
    assert pool.features.shape == (6, 3) and pool.items.show(1).image.shape == (11, 14)
    saved = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    with pytest.raises(InputError, match=r"names the file .*free\.onnx.* a file may name no other"):
        saved.transform(images)
    trust("*")
    saved = feature_map_from_json(json.loads(json.dumps(pool.feature_map.to_json())))
    np.testing.assert_allclose(saved.transform(images), pool.features, atol=1e-5)


def test_an_onnx_file_that_does_not_do_is_one_sentence(tmp_path: Path, monkeypatch):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "net.onnx"
    cases = (
        (b"no network", "is no ONNX file that onnxruntime can open"),
        (
            colour_means(["n", 4, 8, 8]),
            r"takes images \['n', 4, 8, 8\]; an encoder of images takes one input",
        ),
        (colour_means(["n", 3, 8, 8], ("images", "more")), r"more \[1, 3\]; an encoder of images takes one"),
    )
    for content, said in cases:
        path.write_bytes(content)
        with pytest.raises(InputError, match=said):
            open_encoder(str(path), "image")
    with pytest.raises(InputError, match="for texts use a function of yours"):
        open_encoder(str(path), "text")
    with pytest.raises(InputError, match=r"There is no file gone\.onnx"):
        open_encoder(str(tmp_path / "gone.onnx"), "image")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match="pip install onnxruntime"):
        open_encoder(str(path), "image")
