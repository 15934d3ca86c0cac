"""Model families: one module each, found by folder scan.

A family's module offers a model class (see `base.LanguageModel`) as `MODEL`; `KINDS`, the
checkpoint kinds that are its; `READS`, what it is trained on, `"windows"` or `"items"`;
`DEFAULTS`, its training settings where they differ; and the functions `config_for`, `build`,
`initial_weights`, with `training_hidden` (of windows) or `forward` and `backward` (of items)
for the trainer.
"""

import importlib
import pkgutil
from types import ModuleType

from wordlm_core.errors import ConfigError


def families() -> dict[str, ModuleType]:
    """Return every family's module by name."""
    return {
        module.name: importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if module.name != "base" and not module.name.startswith("_")
    }


def by_kind() -> dict[str, ModuleType]:
    """Return the family's module of each checkpoint kind."""
    return {kind: module for module in families().values() for kind in module.KINDS}


def family(name: str) -> ModuleType:
    """Return one family's module.

    Raises:
        ConfigError: There is none of that name.
    """
    known = families()
    if name not in known:
        raise ConfigError(f"unknown family {name[:40]!r}; there are {', '.join(sorted(known))}")
    return known[name]
