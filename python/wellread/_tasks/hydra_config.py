"""A CytoDL config, composed as CytoDL itself does, and changed only by keys that it has.

configs/train.yaml | eval.yaml + experiment=NAME ─▶ composed once, for its keys
  ─▶ overrides from the row of the table, then its own ─▶ composed again ─▶ output folder, callback
"""

from __future__ import annotations

from typing import Any

from .settings import TaskError, keys, nearest, split_override
from .task import Task

# Where branches keep what the columns of the table mean, the usual key first.
_CHECKPOINT = ("checkpoint.ckpt_path", "ckpt_path")
_DATA = ("data.path", "data.csv_path", "data.data_path", "data.data_dir", "data.root")


class Composer:
    """Composes the config of a task.

    Raises:
        TaskError: the branch lacks the config, the experiment, or a key that the task sets.
    """

    def __init__(self, task: Task):
        self._task = task
        self._folder = task.worktree / "configs"
        #: What was set on behalf of the task, by the keys of this branch.
        self.said: list[str] = []
        self._cfg: Any = None
        self._name = "train.yaml" if task.trains else "eval.yaml"
        if not (self._folder / self._name).is_file():
            raise TaskError(f"the branch has no configs/{self._name}: it is no CytoDL, or another version of it")
        if not self._option("experiment", task.experiment):
            known = self._options("experiment")
            raise TaskError(f"the branch has no experiment {task.experiment!r}; {nearest(task.experiment, known)}")

    def compose(self, cuda: int) -> Any:
        """The config, with so many CUDA devices at hand."""
        from omegaconf import OmegaConf, open_dict

        task = self._task
        base = [f"experiment={task.experiment}"]
        trainer = f"trainer={self._trainer(cuda)}"
        # What other configs of the branch are chosen decides which keys there are; the last choice of one counts.
        groups = [text for text in task.overrides if self._is_group(split_override(text)[1])]
        chosen = {split_override(text)[1] for text in groups}
        for text in groups:
            self._checked(text, [])
        first = self._compose([*base, *([] if "trainer" in chosen else [trainer]), *groups])
        # Not resolved: what refers to Hydra's own state cannot be, here.
        plain: Any = OmegaConf.to_container(first, resolve=False)
        plain.pop("hydra", None)
        known = keys(plain)
        own = [self._checked(text, known) for text in task.overrides]
        overridden = chosen | {split_override(text)[1] for text in own}
        said = [trainer, *self._columns(known)]
        if task.trainer == "ddp" and cuda and (plain.get("trainer") or {}).get("devices") is None:
            said.append(f"trainer.devices={cuda}")
        if "seed" in known:
            said.append(f"seed={task.seed}")
        if (plain.get("data") or {}).get("cache_dir") is not None:
            # Or the second run of a branch would find the first one's cache, and another branch would not.
            said.append(f"data.cache_dir={_quoted(str(task.output_dir / 'cache'))}")
        self.said = [text for text in said if text.partition("=")[0] not in overridden]
        cfg = self._compose([*base, *self.said, *own])
        # As CytoDLModel.load_default_experiment does, which takes some experiments of im2im/ alone.
        with open_dict(cfg):
            del cfg["hydra"]
            if "extras" in cfg and cfg.extras is not None:
                cfg.extras.enforce_tags = False
                cfg.extras.print_config = False
            cfg.paths.output_dir = str(task.output_dir)
            cfg.paths.work_dir = str(task.output_dir)
        self._cfg = cfg
        return cfg

    def add_callback(self, target: str) -> None:
        """One more callback, after the others."""
        from omegaconf import open_dict

        with open_dict(self._cfg):
            if self._cfg.get("callbacks") is None:
                self._cfg.callbacks = {}
            self._cfg.callbacks["wellread"] = {"_target_": target}

    def _columns(self, known: list[str]) -> list[str]:
        """The columns of the table, as overrides."""
        task = self._task
        said: list[str] = []
        if task.max_epochs is not None:
            said.append(f"{_one_of('max_epochs', ('trainer.max_epochs',), known)}={task.max_epochs}")
        if task.batch_size is not None:
            exact = [key for key in known if key == "data.batch_size"]
            # Configs with several loaders have one for each.
            each = [key for key in known if key.startswith("data.") and key.endswith(".batch_size")]
            if not each:
                raise TaskError(
                    f"batch_size {task.batch_size}: the composed config of {task.experiment} has no key for it under "
                    f"data; {nearest('data.batch_size', known)}. Leave the column empty, or use an override"
                )
            said += [f"{key}={task.batch_size}" for key in exact or each]
        checkpoint = task.checkpoint(needed=not task.trains)
        if checkpoint is not None:
            said.append(f"{_one_of('checkpoint_path', _CHECKPOINT, known)}={_quoted(checkpoint)}")
        if task.data_path is not None:
            said.append(f"{_one_of('data_path', _DATA, known)}={_quoted(task.data_path)}")
        return said

    def _trainer(self, cuda: int) -> str:
        """The branch's trainer config for the column `trainer`."""
        if self._task.trainer == "gpu" and not cuda:
            raise TaskError("trainer gpu: torch finds no CUDA device; choose cpu")
        # CytoDL's own simulation of several devices by processes.
        wanted = "ddp_sim" if self._task.trainer == "ddp" and not cuda else self._task.trainer
        if not self._option("trainer", wanted):
            known = self._options("trainer")
            raise TaskError(f"the branch has no configs/trainer/{wanted}.yaml; {nearest(wanted, known)}")
        return wanted

    def _checked(self, text: str, known: list[str]) -> str:
        """The override, if its key is one of the config or it says that it adds one."""
        prefix, key, value = split_override(text)
        if prefix in ("+", "++"):
            return text
        if self._is_group(key) and value is not None:
            if value == "null" or value[:1] in ("[", "{") or self._option(key, value):
                return text
            known = self._options(key)
            raise TaskError(f"override {text!r}: configs/{key} has no {value!r}; {nearest(value, known)}")
        # A list's element, as CytoDL's override_config writes it, is a number between dots for Hydra.
        dotted = key.replace("[", ".").replace("]", "")
        if dotted in known:
            return text.replace(key, dotted, 1)
        raise TaskError(
            f"override {text!r}: the composed config of {self._task.experiment} has no key {key!r}; "
            f"{nearest(dotted, known)}. To add a key, write +{key}=…"
        )

    def _is_group(self, key: str) -> bool:
        return (self._folder / key).is_dir()

    def _option(self, group: str, name: str) -> bool:
        return (self._folder / group / f"{name.removesuffix('.yaml')}.yaml").is_file()

    def _options(self, group: str) -> list[str]:
        folder = self._folder / group
        return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))

    def _compose(self, overrides: list[str]) -> Any:
        from hydra import compose, initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        GlobalHydra.instance().clear()
        try:
            with initialize_config_dir(version_base="1.2", config_dir=str(self._folder)):
                return compose(config_name=self._name, return_hydra_config=True, overrides=overrides)
        except (HydraException, OmegaConfBaseException) as error:
            reason = " ".join(str(error).split())
            raise TaskError(f"the config of {self._task.experiment} cannot be composed: {reason}") from error


def _one_of(column: str, usual: tuple[str, ...], known: list[str]) -> str:
    for key in usual:
        if key in known:
            return key
    raise TaskError(
        f"{column}: the composed config has no key {' or '.join(usual)}; {nearest(usual[0], known)}. Leave the "
        "column empty, or use an override"
    )


def _quoted(text: str) -> str:
    """A text for Hydra's grammar, whatever is in it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
