"""Results as files: CSV with one row a cell or position, JSON with the command line's keys."""

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from wordlm_core.lens.ablation import AblationResult, Effect
from wordlm_core.lens.attention import AttentionResult
from wordlm_core.vocabulary import Probe


def attention_csv(result: AttentionResult) -> str:
    """Return one row a layer, head, query and key that is not masked."""
    n_layer, n_head, length, _ = result.weights.shape
    rows = (
        (layer, head, query, result.tokens[query], key, result.tokens[key], weight)
        for layer in range(n_layer)
        for head in range(n_head)
        for query in range(length)
        for key, weight in enumerate(result.weights[layer, head, query, : query + 1].tolist())
    )
    heads = ("layer", "head", "query", "query_token", "key", "key_token", "attention")
    return _csv(heads, rows)


def attention_json(result: AttentionResult, probe: Probe) -> str:
    """Return what `attend --json` prints."""
    return _json(_probe(probe) | {"attention": result.weights.tolist()})


def ablation_csv(result: AblationResult) -> str:
    """Return one row a position: mean attention from the last query, and KL in nats."""
    rows = (
        (
            effect.position,
            effect.token,
            "" if effect.replacement is None else effect.replacement,
            "" if effect.attention is None else float(effect.attention.mean()),
            effect.kl,
        )
        for effect in result.effects
    )
    return _csv(("position", "token", "replacement", "mean_attention", "kl_nats"), rows)


def ablation_json(result: AblationResult, probe: Probe) -> str:
    """Return what `ablate --json` prints."""
    return _json(
        _probe(probe)
        | {
            "prediction": [asdict(entry) for entry in result.prediction],
            "ablations": [_effect(effect) for effect in result.effects],
            "rank_correlation": result.rank_correlation,
        }
    )


def _probe(probe: Probe) -> dict[str, Any]:
    return {
        "tokens": list(probe.tokens),
        "unknown": list(probe.unknown),
        "dropped": probe.dropped,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    infinite = not math.isfinite(effect.kl)
    return {
        "position": effect.position,
        "token": effect.token,
        "replacement": effect.replacement,
        "attention": None if effect.attention is None else effect.attention.tolist(),
        "kl": None if infinite else effect.kl,
        "kl_infinite": infinite,
        "changes": [asdict(change) for change in effect.changes],
    }


def _csv(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return file.getvalue()


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)
