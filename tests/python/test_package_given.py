"""Labels, classes, rows, numbers, states and tables as people give them, and errors about those that cannot be."""

import numpy as np
import pyarrow as pa
import pytest
import wellread as wr
import wellread.torch

torch = pytest.importorskip("torch")


def test_labels_of_mixed_kinds_are_refused(parquet):
    for label, other in ((("a", 1), "int"), (["a", 1.5], "float"), (("a", True), "bool"), ((1, ("a", "b")), "int")):
        for make in (wr.DataLoader, lambda *args, **more: wellread.torch.Dataset(*args, classes=True, **more)):
            with pytest.raises(ValueError, match=r"labels") as error:
                make(parquet, labels=[label] * 40)
            # Nested ones of several lengths are no array at all.
            if not isinstance(label[1], tuple):
                assert f"labels mix str and {other} (rows 0 and 0)" in str(error.value)
                assert "make a column of each (dataset.with_columns), and give their names to columns=" in str(
                    error.value
                )
    with pytest.raises(ValueError, match=r"labels mix str and int \(rows 3 and 0\)"):
        wr.DataLoader(parquet, labels=[(1, 2)] * 3 + [("a", "b")] * 37)
    texts = [(f"A{row}", "x") for row in range(40)]
    assert next(iter(wr.DataLoader(parquet, 4, labels=texts)))[1] == [list(pair) for pair in texts[:4]]
    # torch's own datasets keep tuples, and torch makes a part of each kind.
    assert wellread.torch.Dataset(parquet, labels=[("a", 1)] * 40)[3][1] == ("a", 1)


def test_labels_come_from_generators_and_views_of_dictionaries(parquet):
    wanted = [row % 3 for row in range(40)]
    named = dict(enumerate(wanted))
    for make in (lambda: (label for label in wanted), named.values, lambda: map(int, wanted), lambda: iter(wanted)):
        loader = wr.DataLoader(parquet, 40, labels=make())
        assert [next(iter(loader))[1].tolist() for _ in range(2)] == [wanted] * 2
        assert wr.DataLoader(parquet, 40, labels=make(), classes=True).classes == [0, 1, 2]
        assert [label for _, label in wellread.torch.Dataset(parquet, labels=make())] == wanted
        assert wellread.torch.Dataset(parquet, labels=make(), classes=[2, 1, 0])[1][1] == 1
    for labels in (np.array(5), torch.tensor(5), 5):
        for make in (wr.DataLoader, wellread.torch.Dataset):
            with pytest.raises((TypeError, ValueError), match="^labels must be"):
                make(parquet, labels=labels)


def test_classes_may_be_of_any_library(parquet):
    jnp = pytest.importorskip("jax.numpy")
    numbers, texts = [row % 3 for row in range(40)], [f"A{row % 3}" for row in range(40)]
    for classes in (torch.tensor([2, 0, 1]), np.array([2, 0, 1]), jnp.array([2, 0, 1]), pa.array([2, 0, 1])):
        loader = wr.DataLoader(parquet, 3, labels=numbers, classes=classes)
        assert loader.classes == [2, 0, 1] and next(iter(loader))[1].tolist() == [1, 2, 0]
        assert [type(name) for name in loader.classes] == [int] * 3
    for classes in (
        pa.array(["A2", "A0", "A1"]),
        pa.chunked_array([["A2"], ["A0", "A1"]]),
        np.array(["A2", "A0", "A1"]),
    ):
        assert wr.DataLoader(parquet, 3, labels=texts, classes=classes).class_to_idx == {"A2": 0, "A0": 1, "A1": 2}
    for classes in (np.array(2), torch.tensor(2)):
        with pytest.raises(TypeError, match="classes must be True, or the list of classes"):
            wr.DataLoader(parquet, labels=numbers, classes=classes)
