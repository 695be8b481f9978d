"""`workbench pools`, `classifiers`, `policies` and `projects`."""

from __future__ import annotations

import inspect

from workbench.cli.values import print_table


def list_pools(known: bool) -> None:
    """The pools that come with the program, and (`known`) data sets known by name."""
    from workbench.pools import POOLS

    rows: list[tuple[object, ...]] = [
        (p.name, p.kind, f"{p.n_items:,}", p.n_features, p.n_classes, p.summary) for p in POOLS.values()
    ]
    if known:
        from workbench.pools.datasets.catalogue import catalogue

        rows += [
            (
                e.full_name,
                "image" if e.group == "images" else "table",
                f"{e.n_items:,}",
                e.n_features,
                e.n_classes,
                f"here: {e.path}" if e.path else e.how,
            )
            for e in catalogue()
        ]
    print_table(("name", "kind", "items", "features", "classes", "what"), rows)


def describe_pool(name: str) -> None:
    """One pool as it loads."""
    import numpy as np

    from workbench.pools import load_pool

    pool = load_pool(name)
    counts = "unknown"
    if pool.truth is not None and pool.has_truth:
        found = np.bincount(pool.truth[pool.truth >= 0], minlength=len(pool.classes))
        counts = ", ".join(f"{c} {n:,}" for c, n in zip(pool.classes, found.tolist(), strict=True))
    rows = [
        ("name", pool.name),
        ("title", pool.title),
        ("what", pool.description),
        ("kind", pool.kind),
        ("items", f"{len(pool):,}"),
        ("features", f"{pool.n_features:,}"),
        ("classes", counts),
        ("fingerprint", pool.fingerprint),
    ]
    print_table(("field", "value"), [(k, v) for k, v in rows if v])


def list_classifiers() -> None:
    """The registered classifiers."""
    from workbench.classifiers import CLASSIFIERS

    rows = []
    for e in CLASSIFIERS.values():
        limits = [text for text, so in (("two classes", e.binary_only), ("images", e.image_only)) if so]
        uncertainty = "latents" if e.has_latent else "probabilities"
        rows.append((e.name, uncertainty, ", ".join(limits), e.cost, e.summary))
    print_table(("name", "gives", "only for", "cost of a fit", "what"), rows)


def describe_classifier(name: str) -> None:
    """The options of a classifier, for --set."""
    from workbench.classifiers import CLASSIFIERS
    from workbench.registry import load_own

    entry = None if ":" in name else CLASSIFIERS[name]
    target = load_own(name, "classifier", "fit", "predict_proba") if entry is None else entry.load()
    fixed = {} if entry is None else entry.options
    if entry is not None:
        print(f"{entry.title}. {entry.summary} Source: {entry.source}.")
    parameters = inspect.signature(target).parameters.values()
    rows = [(p.name, "required" if p.default is p.empty else repr(p.default)) for p in parameters]
    print_table(("option", "default"), [row for row in rows if row[0] not in fixed])


def list_policies() -> None:
    """The registered policies and selectors, those of other packages last."""
    from workbench.policies import POLICIES

    rows = [(e.name, e.kind, ", ".join(sorted(e.needs)), e.summary, e.warning) for e in POLICIES.values()]
    print_table(("name", "kind", "needs", "what", "mind"), rows)


def list_projects() -> None:
    """The projects in the database."""
    from workbench.store import Store

    store = Store.open()
    rows = []
    for p in store.projects():
        asked = [one for one in store.questions(p.id) if not one.aside]
        labels = ", ".join(f"{store.n_labelled(one)}" for one in asked)
        rows.append((p.id, p.name, p.pool["name"], len(asked), labels, p.created[:16], p.changed[:16]))
    print_table(("id", "name", "pool", "questions", "labels", "made", "changed"), rows)
