"""Settings are read from the environment, checked, and named in their errors."""

from pathlib import Path

import pytest

from app import settings
from wordlm_core.errors import ConfigError


def test_an_empty_environment_gives_the_defaults():
    assert settings.read({"WORDLM_MAX_TEXT": ""}) == settings.Settings()


def test_values_are_read_and_a_relative_folder_starts_at_the_root():
    read = settings.read({"WORDLM_ARTIFACTS": "runs/mine", "WORDLM_MAX_TEXT": "500"})
    assert (read.artifacts, read.max_text) == (Path("runs/mine"), 500)
    assert read.folder == settings.ROOT / "runs/mine"
    assert settings.read({"WORDLM_ARTIFACTS": "/data"}).folder == Path("/data")


@pytest.mark.parametrize("value", ["many", "1.5", "99", "1000001"])
def test_a_bad_value_is_refused_by_name(value):
    with pytest.raises(ConfigError, match="WORDLM_MAX_TEXT must be"):
        settings.read({"WORDLM_MAX_TEXT": value})


def test_every_setting_is_described():
    for variable, default, meaning in settings.described():
        assert variable.startswith("WORDLM_")
        assert default
        assert len(meaning) > 20
