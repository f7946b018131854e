"""Which process runs which tests, and which tests are begun first, where several processes share them."""

from pathlib import Path

# Folders and files of minutes, the longest first. Short ones are left for the end: all processes end together.
LONG = (
    "cluster", "test_inference.py", "test_docs.py", "test_gallery.py", "test_bench_frameworks.py",
    "test_several_machines.py", "test_examples.py", "test_package_endurance.py", "test_engines.py",
    "test_package_torch.py", "test_package_ranks.py", "test_remote.py", "test_inference_models.py",
    "test_package_compat.py", "test_campaign.py", "test_tasks_cyto_dl.py", "test_package_bench.py",
    "test_package_training.py", "test_bench_transforms.py", "test_tasks_branches.py",
)  # fmt: skip


def unit(nodeid):
    """The unit of a test, which one process runs: its file, and the folder of those that share a cluster of Ray."""
    file = Path(nodeid.split("::", 1)[0])
    return file.parent.name if file.parent.name == "cluster" else file.name


def long_first(items):
    """Sorts tests: those of long files first, all others as they were."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(unit(item.nodeid), len(LONG)))


def by_unit(config, log):
    """The scheduler of `--dist loadfile`, by units."""
    from xdist.scheduler import LoadFileScheduling

    class ByUnit(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid)

    return ByUnit(config, log)
