"""Settings are read from the environment, checked, and named in their errors."""

from pathlib import Path

import pytest

from app import settings
from app.jobs.bounds import Limits
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


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WORDLM_JOB_WORKERS", "0"),
        ("WORDLM_JOB_WORKERS", "17"),
        ("WORDLM_MAX_WAITING", "0"),
        ("WORDLM_MAX_STEPS", "-1"),
        ("WORDLM_MAX_RUNS_MB", "9"),
        ("WORDLM_KEEP_DAYS", "0"),
        ("WORDLM_MAX_CORPUS_MB", "201"),
        ("WORDLM_SCHEDULER", "host:8786"),
        ("WORDLM_SCHEDULER", "http://host:8786"),
    ],
)
def test_settings_of_jobs_are_checked(variable, value):
    with pytest.raises(ConfigError, match=f"{variable} must be"):
        settings.read({variable: value})


def test_the_limits_of_jobs_are_the_settings():
    assert settings.Settings().limits == Limits()
    read = settings.read({"WORDLM_KEEP_DAYS": "3", "WORDLM_MAX_WAITING_EACH": "2"})
    assert (read.limits.days, read.limits.waiting_each) == (3, 2)
    assert settings.read({"WORDLM_SCHEDULER": "tls://host:8786"}).scheduler == "tls://host:8786"
    assert settings.read({"WORDLM_RUNS": "/data"}).runs_folder == Path("/data")


def test_every_setting_is_described():
    for variable, default, meaning in settings.described():
        assert variable.startswith("WORDLM_")
        assert default
        assert len(meaning) > 20
