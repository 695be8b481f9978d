"""Chances of new rows by the model that lies beside this file, with NumPy alone.

    python predict.py ROWS > PREDICTIONS.csv

Workbench copies this module as it is into the folder of a model that is taken away (`write_predictor`). The
model is `m`: name -> array, number, text or list, as `model.npz` holds them.
"""

import csv
import datetime
import io
import json
import re
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

BLANKS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None")
"""Texts that stand for an empty cell in a feature column (not in a target, where any text is a class)."""
_MARKS = (
    "-|--|–|—|?|.|na|n/a|n.a.|nan|-nan|null|none|nil|unknown|missing|<na>|nat|#n/a|#n/a n/a|#na|1.#ind"
    "|\\n|-1.#ind|1.#qnan|-1.#qnan|#div/0!|#name?|#null!|#num!|#ref!|#value!|#spill!|#calc!|(empty)|(blank)|"
)
MARKS = frozenset(_MARKS.split("|"))
"""Marks of an empty cell among numbers and dates, in small letters: pandas' list, Excel's errors."""
_MONEY = (
    "(?:[A-Z]{0,2}[$€£¥₹₽₩₺₴₪฿₫₦₱]|USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|RUB|BRL|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK"
    r"|HUF|TRY|MXN|ZAR|KRW|SGD|HKD|Rs\.?|Fr\.|kr\.?|zł|Kč|Ft|lei)?"
)
_GROUPED = r"[1-9]\d{0,2}(?:([\s'’])\d{3}(?:\5\d{3})*)(?:[.,]\d+)?"
AMOUNT = (
    rf"(\()?([-+]?)\s*{_MONEY}\s*([-+]?)\s*({_GROUPED}|\d[\d.,]*(?:[eE][-+]?\d+)?|[.,]\d+)"
    rf"\s*(%?)(?:\.-)?\s*{_MONEY}(\))?"
)
"""A number as people write it: a bracket, signs, digits, the mark between groups, per cent, a bracket."""
ZONES = {"Z": 0, "UTC": 0, "GMT": 0, "CET": 60, "CEST": 120, "BST": 60} | {
    f"{place}{season}T": 60 * (i - 8 + (season == "D")) for i, place in enumerate("PMCE") for season in "SD"
}
"""Minutes east of UTC of zones that are written with letters."""
_MONTHS = (
    "jän=Jan|januar=January|jänner=January|februar=February|mär=Mar|mrz=Mar|märz=March|mai=May|juni=June"
    "|juli=July|sept=Sep|okt=Oct|oktober=October|dez=Dec|dezember=December"
    "|jan=Jan|feb=Feb|mar=Mar|apr=Apr|jun=Jun|jul=Jul|aug=Aug|sep=Sep|oct=Oct|nov=Nov|dec=Dec"
)
MONTHS = dict(pair.split("=") for pair in _MONTHS.split("|"))
"""German names of months and those that a dot may follow, in small letters, in English."""


def read(path: str, encoding: str) -> Any:
    """The rows of a CSV file as {column: text}, or the array of an NPY file."""
    if path.endswith(".npy"):
        return np.load(path)
    csv.field_size_limit(10_000_000)
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:  # as the pool's file was
        text = data.decode(encoding)
        print(f"{path} is no UTF-8 and is read as {encoding}.", file=sys.stderr)
    delimiter = max(",;\t|", key=text.partition("\n")[0].count)
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def bare(text: str) -> str:
    """A number without currency, brackets, per cent, and spaces or apostrophes between groups of digits."""
    match = re.fullmatch(AMOUNT, text.replace("\u2212", "-").replace("–", "-"))
    if not match or bool(match[1]) != bool(match[7]) or bool(match[1]) + len(match[2] + match[3]) > 1:
        return text
    digits = match[4].replace(match[5] or " ", "") + "e-2" * bool(match[6])
    return "-" * bool(match[1]) + match[2] + match[3] + digits


def number(cell: Any, e: Any) -> float | None:
    """A cell as a number: NaN where it is empty, None where it is no number."""
    if not isinstance(cell, str):
        return np.nan if cell is None else float(cell)
    text, sign, between = bare(cell.strip()), e["sign"], {",": ".", ".": ","}.get(e["sign"], "")
    if between and between in text:  # points (or commas) may stand between groups of three digits
        grouped = rf"[-+]?[1-9]\d{{0,2}}(\{between}\d{{3}})+(\{sign}\d*)?([eE][-+]?\d+)?"
        text = text.replace(between, "") if re.fullmatch(grouped, text) else "?"
    text = text.replace(",", ".") if sign == "," else text
    sound = re.fullmatch(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?)", text, re.I)
    return np.nan if cell.strip().lower() in MARKS else float(text) if sound else None


def zoneless(text: str) -> tuple[str, int]:
    """A date as its formats write it, without a zone, and the zone's minutes east of UTC."""
    text = re.sub(r" ?\([^)]*\)$", "", " ".join(text.split()))  # "(Central European Standard Time)"
    text = re.sub(r"[^\W\d_]{3,9}\b\.?", lambda m: MONTHS.get(m[0].lower().rstrip("."), m[0]), text)
    text = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", re.sub(r"(?i)(?<=\d) ?([ap])\.?m\b\.?", r" \1M", text))
    zone = re.search(rf"(?<=[\dM]) ?({'|'.join(ZONES)})(?![A-Za-z])", text)
    offset = re.search(r"(?<=[\dMTC]) ?([-+])(\d\d?):?(\d\d)?(?= \d{4}$|$)", text) if ":" in text else None
    east = int(f"{offset[1]}1") * (60 * int(offset[2]) + int(offset[3] or 0)) if offset else 0
    for match in filter(None, (offset, zone)):
        text = text[: match.start()] + text[match.end() :]
    return text, east + (ZONES[zone[1]] if zone else 0)


def date(cell: Any, e: Any) -> float | None:
    """A date as days since 1 January 1970: NaN where it is empty, None where it is no such date."""
    if cell is None or str(cell).strip().lower() in MARKS:
        return np.nan
    try:
        if isinstance(cell, str):
            (text, east), form, when = zoneless(cell), e["format"], datetime.datetime
            text += "-01-01"[len(text) - 4 :] if len(text) in (4, 7) and form[:1] != "%" else ""
            cell = when.strptime(text, form) if form[:1] == "%" else when.fromisoformat(text)
            cell = cell if form[:2] not in ("%H", "%I") else cell.replace(year=1970)
            cell -= datetime.timedelta(minutes=east)
    except ValueError:
        return None
    return (cell - datetime.datetime(1970, 1, 1, tzinfo=cell.tzinfo and datetime.UTC)) / datetime.timedelta(1)


def numbers(m: Any, e: Any, cells: list[Any]) -> Any:
    """A column of numbers or dates as features: empty cells filled, a flag for them where there is one."""
    take = date if e["kind"] == "date" else number
    entries = [take(cell, e) for cell in cells]
    odd = [str(cell) for cell, v in zip(cells, entries, strict=True) if v is None]
    if odd:  # these are no numbers, or the decimal sign is another one
        n, sign = sum(v is None or v == v for v in entries), "." if e["sign"] == "," else ","
        words = f"{len(odd)} of {n} filled cells of {e['name']!r} are no {e['kind']}, such as {odd[0]!r}"
        if 1 < len(odd) == n or sum(take(cell, e | {"sign": sign}) is None for cell in cells) < len(odd):
            raise ValueError(f"{words}: write them as in the pool, and mind the decimal sign.")
        print(f"{words}, and count as empty.", file=sys.stderr)
    values = np.array([np.nan if v is None else v for v in entries], float)
    missing = ~np.isfinite(values)
    for i in np.flatnonzero(missing) if e["fill"] is None else []:
        raise ValueError(f"Row {i + 1}, column {e['name']!r}: {cells[i]!r} is no {e['kind']}.")
    values[missing] = e["fill"]
    if e["scale"] is not None:
        values = np.clip((values - e["centre"]) / e["scale"], -5.0, 5.0)
    return np.column_stack([values, missing]) if e["flag"] else values[:, None]


def categories(m: Any, e: Any, cells: list[Any]) -> Any:
    """A column of categories as one 0/1 feature a category."""
    place: dict[Any, int] = {name: k for k, name in enumerate([*e["categories"], *[None] * e["blank"]])}
    out = np.zeros((len(cells), len(place)))
    for i, cell in enumerate(cells):
        is_whole = isinstance(cell, float) and cell.is_integer()
        text: Any = "" if cell is None else str(int(cell) if is_whole else cell)
        text = e["fill"] if text in BLANKS else text
        if text not in place:
            raise ValueError(f"Row {i + 1}, column {e['name']!r}: {cell!r} is none of {list(place)[:20]}.")
        out[i, place[text]] = 1.0
    return out / (e["scale"] or 1.0)


def text_column(m: Any, e: Any, cells: list[Any]) -> Any:
    """A column of texts beside others."""
    return texts(m, e["blocks"], cells) / np.float32(e["scale"])


def table(m: Any, rows: Any) -> Any:
    """Rows, {column: cell} each, as features [n, D] by the recipe of the pool's columns."""
    if lacking := [e["name"] for e in m["recipe"] if any(e["name"] not in row for row in rows)]:
        raise ValueError(f"The rows lack the columns {lacking}.")
    by = {"numbers": numbers, "categories": categories, "text_column": text_column}
    return np.column_stack([by[e["by"]](m, e, [row[e["name"]] for row in rows]) for e in m["recipe"]])


def plain(m: Any, rows: Any) -> Any:
    """An array [n, D], or rows {column: number}, as features [n, D]."""
    if len(rows) and isinstance(rows[0], dict):
        rows = [[row[name] for name in m["names"]] for row in rows]
    X = np.asarray(rows, float).reshape(len(rows), -1)
    if X.shape[1] != len(m["names"]) or not np.isfinite(X).all():
        raise ValueError(f"The rows must be finite numbers in {len(m['names'])} columns.")
    return X * m["factor"]


def weighted(m: Any, block: Any, text: str) -> Any:
    """Places and TF-IDF weights, of length 1, of the terms of a text."""
    text, terms, kind = text[: block["longest"]].lower(), [], block["dtype"]
    if block["pattern"]:  # words and pairs of words
        words = re.findall(block["pattern"], text)
        terms = words + [f"{a} {b}" for a, b in pairwise(words)]
    for word in [] if block["pattern"] else [f" {w} " for w in text.split()]:  # pieces of words
        for n in range(2, min(5, len(word)) + 1):
            terms += [word[i : i + n] for i in range(len(word) - n + 1)]
    places = [place for t in terms if (place := m["place"][block["terms"]].get(t)) is not None]
    at, counts = np.unique(np.array(places, int), return_counts=True)
    w = ((1 + np.log(counts.astype(kind))) * m[block["weights"]][at]).astype(kind)
    return at, (w / max(np.sqrt((w * w).sum(dtype=float)), 1e-300)).astype(kind)


def texts(m: Any, blocks: Any, cells: Any) -> Any:
    """Texts as unit vectors [n, D]: the axes of their weighted terms."""
    out = np.zeros((len(cells), m[blocks[0]["axes"]].shape[1]), blocks[0]["dtype"])
    for i, cell in enumerate(cells):
        text = "" if cell is None or cell != cell else str(cell)
        terms = [(block, *weighted(m, block, text)) for block in blocks]
        rows = [(m[b["axes"]][at] * m[b["scales"]][at, None]) * w[:, None] for b, at, w in terms]
        out[i] = np.concatenate(rows).sum(axis=0)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return (out / np.where(length > 1e-9, length, 1.0).astype(out.dtype)).astype(np.float32)


def texts_of(m: Any, rows: Any) -> Any:
    """Rows of texts as features [n, D]."""
    return texts(m, m["blocks"], cells_of(m, rows))


def cells_of(m: Any, rows: Any) -> Any:
    """The texts of rows: texts already, or {column: text}."""
    return [row[m["column"]] if isinstance(row, dict) else row for row in rows]


def of_names(m: Any, cells: Any) -> Any:
    """Scores of texts by the names of the classes [n, C]: the guess that the model begins with."""
    out = np.zeros((len(cells), len(m["classes"])))
    for i, cell in enumerate(cells):
        for block in m["guess"]:
            at, w = weighted(m, block, cell)
            out[i] += w @ m[block["axes"]][at]
    telling = m["guess_telling"]
    out[:, ~telling] = out[:, telling].mean(axis=1, keepdims=True)
    has_terms = out.std(axis=1, keepdims=True) > 1e-12
    return m["guess_weight"] * np.where(has_terms, out - out.mean(axis=1, keepdims=True), 0.0)


def pixels(m: Any, rows: Any) -> Any:
    """Images [n, H, W(, 3)] as their pixels."""
    X = np.asarray(rows).reshape(len(rows), -1) / np.float32(m["white"])
    if X.shape[1] != int(np.prod(m["shape"])):
        raise ValueError(f"Images must be of {m['shape']} values; these have {X.shape[1]} each.")
    return X.astype(np.float32)


def resized(image: Any, size: Any) -> Any:
    """Box average of an image to [*size(, 3)]."""
    for axis, n in enumerate(size):
        m, step = np.arange(image.shape[axis]), image.shape[axis] / n
        half, centre = max(step, 1.0) / 2, (np.arange(n)[:, None] + 0.5) * step
        # step by step as Pillow rounds, which decides at the edges of a box
        inside = (m >= np.floor(centre - half + 0.5)) & (m < np.floor(centre + half + 0.5))
        place = (m - centre + 0.5) * (0.5 / half)
        W = inside & (place > -0.5) & (place <= 0.5)
        image = np.moveaxis(np.tensordot(W / W.sum(axis=1, keepdims=True), image, (1, axis)), 0, axis)
    return image.astype(np.float32)


def copies_of(m: Any, image: Any, resize: Any = resized) -> Any:
    """Copies of an image [h, w(, 3)], in [0, 1]: the whole, and where there are two what stands out in it."""
    image = np.asarray(image, np.float32) / np.float32(m["white"])
    if image.ndim == 3 and not m["colour"]:
        image = image @ np.array([0.299, 0.587, 0.114], np.float32)
    if image.ndim == 2 and m["colour"]:
        image = np.repeat(image[..., None], 3, axis=2)
    if m["copies"] == 1:
        return [on_canvas(m["canvas"], image, resize)]
    factor = min(1.0, 2 * max(m["canvas"]) / max(image.shape[:2]))
    if factor < 1:
        image = resize(image, [max(1, round(s * factor)) for s in image.shape[:2]])
    return [on_canvas(m["canvas"], part, resize) for part in (image, standing_out(image))]


def standing_out(image: Any) -> Any:
    """The square around what differs from an image's border; all of it where nothing does."""
    planes = np.atleast_3d(image)
    border = np.concatenate([planes[0], planes[-1], planes[:, 0], planes[:, -1]])
    usual = np.median(border, axis=0)
    noise = np.quantile(np.linalg.norm(border - usual, axis=1), 0.95)
    differing = np.maximum(np.linalg.norm(planes - usual, axis=2) - noise, 0.0)
    shares = [differing.sum(axis=axis).cumsum() for axis in (1, 0)]
    if not shares[0][-1] > 1e-6:
        return image
    ends = [np.searchsorted(s, s[-1] * np.array([0.01, 0.99])) for s in shares]
    half = 0.65 * max(float(high - low) for low, high in ends)
    r, c = (slice(max(0, int(sum(end) / 2 - half)), int(sum(end) / 2 + half) + 1) for end in ends)
    return image[r, c]


def on_canvas(canvas: Any, image: Any, resize: Any) -> Any:
    """An image [h, w(, 3)] on the canvas; what it does not fill has its border's mean."""
    factor = min(c / s for c, s in zip(canvas, image.shape, strict=False))
    size = [max(1, min(c, round(s * factor))) for c, s in zip(canvas, image.shape, strict=False)]
    small = image if image.shape[:2] == tuple(canvas) else resize(image, size)
    if size == list(canvas):
        return small
    out = np.empty((*canvas, *image.shape[2:]), np.float32)
    out[:] = np.concatenate([small[0], small[-1], small[:, 0], small[:, -1]]).mean(axis=0)
    top, left = (canvas[0] - size[0]) // 2, (canvas[1] - size[1]) // 2
    out[top : top + size[0], left : left + size[1]] = small
    return out


def gradients(image: Any) -> Any:
    """Oriented gradients: cells of 4 x 4 pixels, 9 bins, blocks of 2 x 2 (Dalal & Triggs 2005)."""
    planes = np.atleast_3d(image)
    rows, columns = np.zeros_like(planes), np.zeros_like(planes)
    rows[1:-1] = planes[2:] - planes[:-2]
    columns[:, 1:-1] = planes[:, 2:] - planes[:, :-2]
    best = np.hypot(rows, columns).argmax(axis=2)[..., None]
    r, c = (np.take_along_axis(g, best, 2)[..., 0].astype(float) for g in (rows, columns))
    angle, n, k = np.rad2deg(np.arctan2(r, c)) % 180, r.shape[0] // 4, r.shape[1] // 4
    size = np.hypot(r, c)[: 4 * n, : 4 * k, None]
    bins = size * (np.clip(angle // 20, 0, 8)[: 4 * n, : 4 * k, None] == np.arange(9))
    cells = bins.reshape(n, 4, k, 4, 9).sum(axis=(1, 3)) / 16
    blocks = np.lib.stride_tricks.sliding_window_view(cells, (2, 2), (0, 1)).transpose(0, 1, 3, 4, 2)
    blocks = blocks.reshape(n - 1, k - 1, -1)
    for cap in (0.2, np.inf):
        blocks = np.minimum(blocks / np.sqrt((blocks**2).sum(axis=2, keepdims=True) + 1e-10), cap)
    return blocks.reshape(-1).astype(np.float32)


def patches(m: Any, image: Any) -> Any:
    """Similarity of the patches of 6 x 6 pixels to each centre, a quarter of the image at a time."""
    view = np.lib.stride_tricks.sliding_window_view(np.atleast_3d(image), (6, 6), axis=(0, 1))
    view = view[:: m["stride"], :: m["stride"]]
    z = view.reshape(*view.shape[:2], -1)
    z = z - z.mean(axis=2, keepdims=True)
    z = (z / np.sqrt((z**2).mean(axis=2, keepdims=True) + 0.01) - m["patch_mean"]) @ m["whitening"]
    squares = (z**2).sum(axis=2, keepdims=True) + (m["centres"] ** 2).sum(axis=1) - 2 * z @ m["centres"].T
    far = np.sqrt(np.maximum(squares, 0.0))
    code = np.maximum(far.mean(axis=2, keepdims=True) - far, 0.0)
    h, w = code.shape[0] // 2, code.shape[1] // 2
    parts = code[:h, :w], code[:h, w:], code[h:, :w], code[h:, w:]
    return np.concatenate([part.mean(axis=(0, 1)) for part in parts])


def shapes(m: Any, rows: Any) -> Any:
    """Images of any size as features [n, D]: gradients beside patches of each copy, projected."""
    descriptors = [
        [part for c in copies_of(m, row) for part in (gradients(c), patches(m, c))] for row in rows
    ]
    parts = [
        unit((np.stack(part) - m[f"block{i}.0"]) / m[f"block{i}.1"])
        for i, part in enumerate(zip(*descriptors, strict=True))
    ]
    return unit((np.hstack(parts) - m["mean"]) @ m["axes"].T)


def unit(X: Any) -> Any:
    """Rows of length 1."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 1e-12, length, 1.0)


def vectors(m: Any, rows: Any) -> Any:
    """Vectors [n, d] of the same encoder as features."""
    X = unit(np.asarray(rows, np.float32) - m["vector_mean"])
    return X if m["vector_axes"].size == 0 else X @ m["vector_axes"].T


def smoothed(m: Any, X: Any) -> Any:
    """Rows as they lean on their ten nearest neighbours in the pool, hop by hop."""
    layers, stay, size = m["layers"], np.float32(m["stay"]), m["lean_size"]
    Z = np.clip((X.astype(float) - m["lean_shift"]) / m["lean_scale"], -m["lean_clip"], m["lean_clip"])
    Z, pool = Z.astype(np.float32), layers[0].astype(np.float32)
    gaps = (pool**2).sum(axis=1) - 2 * Z @ pool.T
    at = np.argpartition(gaps, min(16, len(pool)) - 1, axis=1)[:, :16]
    exact = ((pool[at].astype(float) - Z[:, None]) ** 2).sum(axis=2)
    order = np.lexsort((at, exact), axis=1)[:, :10]
    at, far = (np.take_along_axis(a, order, 1) for a in (at, np.sqrt(exact).astype(np.float32).astype(float)))
    w = np.exp(-2 * (far / np.where(far[:, -1:] > 0, far[:, -1:], 1.0)) ** 2)
    degree = 1 + w.sum(axis=1, keepdims=True)
    share = (w / np.sqrt(degree * m["degrees"][at])).astype(np.float32)
    self_weight, layer = (1 / degree).astype(np.float32), Z
    for above in layers[:-1]:
        around = np.einsum("mk,mkd->md", share, above[at].astype(np.float32))
        layer = (1 - stay) * (self_weight * layer + around) + stay * Z
    gap = np.abs(Z - pool[at[:, 0]]).max(axis=1)
    copies = gap <= 1e-3 * np.maximum(np.abs(Z).max(axis=1), 1e-6)
    layer[copies] = layers[-1][at[copies, 0]]
    return np.hstack([Z / size[0], layer / size[1]][not m["beside"] :]).astype(np.float32)


def indicators(m: Any, X: Any) -> Any:
    """Columns of codes as one 0/1 column a value."""
    columns, codes = X[:, m["columns"]], np.isfinite(m["values"])
    columns[:, codes] = columns[:, codes] == m["values"][codes]
    return columns


def scores(m: Any, X: Any) -> Any:
    """Columns as the normal quantiles of their ranks."""
    return np.stack(
        [np.interp(x, k, s) for x, k, s in zip(X.T, m["knots"], m["scores"], strict=True)], axis=1
    )


def covariance(m: Any, A: Any, B: Any) -> Any:
    """k(a, b) [n, p] of scaled rows; the kernel's values are the model's."""
    A, B, name = A / m["length"], B / m["length"], m["kernel"]
    r2 = np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0.0)
    r = np.sqrt({"matern32": 3, "matern52": 5}.get(name, 1) * np.maximum(r2, 1e-36))
    shape = {"matern32": 1 + r, "matern52": 1 + r + r * r / 3}.get(name, 1.0)
    K = m["variance"] * shape * np.exp(-r2 / 2 if name == "squared-exponential" else -r)
    return K + m["slope"] * (A @ B.T) + m["offset"]


def scaled(m: Any, X: Any) -> Any:
    """Features as the model sees them."""
    return np.clip((X - m["shift"]) / m["scale"], -m["clip"], m["clip"])


def spread(m: Any, Z: Any, K: Any) -> Any:
    """The latents' variances [n, C]: the prior's, less what the labels say."""
    prior = m["variance"] + m["offset"] + m["slope"] * ((Z / m["length"]) ** 2).sum(axis=1)
    reduction = (K[:, : len(m["directions"])] @ m["directions"]) ** 2 @ m["of_class"]
    return np.maximum(prior[:, None] - reduction, 0.0)


def softmax(F: Any) -> Any:
    """Chances [n, C] of scores [n, C]."""
    e = np.exp(F - F.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@cache
def nodes(n: int, deviation: float) -> Any:
    """Nodes and weights of an expectation over a standard normal, for functions 1 / deviation wide."""
    x, w = np.polynomial.hermite_e.hermegauss(n)
    if deviation > 3.5:
        x = np.linspace(-6.5, 6.5, int(np.ceil(13 * deviation / 0.9 / 16)) * 16)
        w = np.exp(-x * x / 2)
    return x, w / w.sum()


def expected(mean: Any, variance: Any, log_of: Any, step: float) -> Any:
    """E[a(f_k) / sum_c a(f_c)] [n, C] of independent Gaussians, for log a; 1 / sum as an integral."""
    s, out = np.sqrt(variance), np.empty(mean.shape)
    low, high = log_of(mean - 4.5 * s).max(axis=1) - 3.7, log_of(mean + 4.5 * s).max(axis=1) + 14.0
    size, wide = 4 * np.ceil(((high + np.log(mean.shape[1]) - low) / step + 1) / 4), s.max(axis=1)
    kind = np.where(wide <= 2, 0, np.where(wide <= 3.5, 1, np.ceil(wide))).astype(int)
    for i in range(len(mean)):
        x, w = nodes(32 if kind[i] else 20, float(kind[i]))
        start = np.exp(np.minimum(log_of(mean[i][:, None] + s[i][:, None] * x) - low[i], 700.0))
        t = start[:, None] * np.exp(-step * np.arange(size[i]))[:, None]
        e = np.exp(-t)
        below = np.maximum(e @ w, 1e-300)
        out[i] = ((t * e) @ w / below * np.exp(np.log(below).sum(axis=0))).sum(axis=1)
    return out / out.sum(axis=1, keepdims=True)


def log_sigma(f: Any) -> Any:
    """Logarithm of the logistic function."""
    return -np.logaddexp(0.0, -f)


def regression(m: Any, X: Any, guess: Any) -> Any:
    """Chances [n, C] of a logistic regression; a class without labels has a fixed small share."""
    out = np.full((len(X), len(m["classes"])), m["least"])
    out[:, m["present"]] = m["share"] * softmax(X @ m["coefficients"].T + m["intercept"] + guess)
    return out


READERS = {
    "table": table,
    "plain": plain,
    "texts": texts_of,
    "pixels": pixels,
    "shapes": shapes,
    "vectors": vectors,
}
"""Kind of a model's rows -> the function from rows to features."""


def chances(m: Any, X: Any, guess: Any = 0.0) -> Any:
    """Chances [n, C] of features [n, D] and the guess [n, C] that the model begins with."""
    if "layers" in m:
        X = smoothed(m, X)
    if "knots" in m:
        X = scores(m, np.asarray(X, float))
    if "values" in m:
        X = indicators(m, np.asarray(X, float))
    Z = scaled(m, X)
    if "coefficients" in m:
        return regression(m, Z, guess)
    K = covariance(m, Z, m["points"])
    F = K @ m["weights"] + m["mean_offset"] + guess
    if "beta" in m:
        return softmax(m["beta"] * F)
    log_of, step = (log_sigma, 0.75) if m["logistic"] else (np.asarray, 1.0)
    p = expected(F, spread(m, Z, K), log_of, step)
    return softmax(m["power"] * np.log(np.maximum(p, 1e-300)))


@cache
def load() -> Any:
    """The model that lies beside this file."""
    m = dict(np.load(Path(__file__).with_name("model.npz")))
    return m | json.loads(m.pop("document").tobytes())


def predict_proba(rows: Any) -> Any:
    """Chances [n, C] of rows, columns as in `load()["classes"]`."""
    m = load()
    X = READERS[m["reader"]](m, rows)
    guess = of_names(m, cells_of(m, rows)) if "guess" in m else np.zeros((len(X), 1))
    starts = range(0, max(len(X), 1), 1000)
    return np.concatenate([chances(m, X[i : i + 1000], guess[i : i + 1000]) for i in starts])


def main(path: str) -> None:
    """Print the predictions of a file's rows as CSV."""
    classes, P = load()["classes"], predict_proba(read(path, load()["encoding"]))
    lines = [[i, classes[p.index(max(p))], max(p), *p] for i, p in enumerate(P.tolist())]
    names = ["row", "prediction", "confidence", *(f"p({name})" for name in classes)]
    csv.writer(sys.stdout, lineterminator="\n").writerows([names, *lines])


if __name__ == "__main__":
    main(sys.argv[1])
