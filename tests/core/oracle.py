"""An independent computation of everything a lens shows, to hold the library to.

Plain NumPy float64 with a loop for every position, head and key, written from the formulas of
the design, over the full window with its padding. It shares no code with `wordlm_core.models`
or the lenses: of a model only its weights and sizes are read.
"""

import math
from dataclasses import dataclass

import numpy as np

PAD = 0
_MATRICES = ("attn_wq", "attn_wk", "attn_wv", "attn_wo", "mlp_fc1", "mlp_fc2")


@dataclass
class Forward:
    """One text through a model: lists over its positions, padding left out."""

    contextual: np.ndarray | None
    attention: np.ndarray | None  # [layer, head, query, key]
    head_updates: np.ndarray | None  # [layer, head, position, d_model]
    hidden: np.ndarray
    logits: np.ndarray


def forward(model, ids, heads_off=()) -> Forward:
    """Run a text through a model's weights; no head means the MLP."""
    weights = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    ids, window = [int(i) for i in ids], model.config.context_length
    if "wte" in weights:
        return _microgpt(weights, ids, model.config, heads_off)
    if model.n_head == 0:
        return _mlp(weights, ids, window)
    return _attention(weights, ids, window, model.n_head, heads_off)


def last_logits(model, ids, heads_off=()) -> np.ndarray:
    return forward(model, ids, heads_off).logits[-1]


def readout(model, row) -> np.ndarray:
    """Logits of one residual row."""
    weights = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    if "wte" in weights:
        last = f"layer{model.config.n_layer - 1}"
        hidden = _relu(weights[f"{last}.mlp_fc1"] @ _rmsnorm(row))
        return weights["lm_head"] @ (row + weights[f"{last}.mlp_fc2"] @ hidden)
    return _linear(weights, "vocab_head", _relu(_linear(weights, "hidden_layer", row)))


def hidden_columns(model) -> np.ndarray:
    """What each hidden unit adds to the logits, per activation; one column a unit."""
    weights = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    if "wte" not in weights:
        return weights["vocab_head.weight"]
    columns = weights[f"layer{model.config.n_layer - 1}.mlp_fc2"].T
    return np.array([weights["lm_head"] @ column for column in columns]).T


def _microgpt(weights, ids, config, heads_off) -> Forward:
    """Token by token with growing lists of keys and values, as a generator would."""
    width, heads = config.d_model, config.n_head
    d_head, layers = width // heads, config.n_layer
    cache: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(layers)]
    n = len(ids)
    attention = np.zeros((layers, heads, n, n))
    updates = np.zeros((layers, heads, n, width))
    contextual, hidden, logits = [], [], []
    for position, token in enumerate(ids):
        x = weights["wte"][token]
        if config.positions:
            x = x + weights["wpe"][position]
        x = _rmsnorm(x)
        for layer in range(layers):
            w = {name: weights[f"layer{layer}.{name}"] for name in _MATRICES}
            y = _rmsnorm(x)
            query = w["attn_wq"] @ y
            cache[layer].append((w["attn_wk"] @ y, w["attn_wv"] @ y))
            for head in range(heads):
                part = slice(head * d_head, (head + 1) * d_head)
                dots = [query[part] @ key[part] / math.sqrt(d_head) for key, _ in cache[layer]]
                shares = softmax(np.array(dots))
                attention[layer, head, position, : position + 1] = shares
                mix = np.zeros(width)
                for share, (_, value) in zip(shares, cache[layer], strict=True):
                    mix[part] += share * value[part]
                updates[layer, head, position] = w["attn_wo"] @ mix
                if (layer, head) not in list(heads_off):
                    x = x + updates[layer, head, position]
            c, h = x, _relu(w["mlp_fc1"] @ _rmsnorm(x))
            x = c + w["mlp_fc2"] @ h
        contextual.append(c)
        hidden.append(h)
        logits.append(weights["lm_head"] @ x)
    return Forward(np.array(contextual), attention, updates, np.array(hidden), np.array(logits))


def _rmsnorm(x) -> np.ndarray:
    return x / math.sqrt(sum(float(v) ** 2 for v in x) / len(x) + 1e-5)


def _mlp(weights, ids, window) -> Forward:
    hidden = []
    for end in range(1, len(ids) + 1):
        seen = ids[:end]
        padded = [PAD] * (window - len(seen)) + seen
        flat = np.concatenate([weights["token_embedding.weight"][i] for i in padded])
        hidden.append(_relu(_linear(weights, "hidden_layer", flat)))
    logits = [_linear(weights, "vocab_head", h) for h in hidden]
    return Forward(None, None, None, np.array(hidden), np.array(logits))


def _attention(weights, ids, window, n_head, heads_off) -> Forward:
    padding = window - len(ids)
    padded = [PAD] * padding + ids
    rows = []
    for slot, token in enumerate(padded):
        row = weights["token_embedding.weight"][token].copy()
        if "position_embedding.weight" in weights:
            row += weights["position_embedding.weight"][slot]
        rows.append(row)
    n, d_model = len(ids), len(rows[0])
    shares = np.zeros((n_head, n, n))
    updates = np.zeros((n_head, n, d_model))
    contextual = []
    for query_slot in range(padding, window):
        total = rows[query_slot].copy()
        for head in range(n_head):
            query = _part(weights["W_Q.weight"], head, n_head) @ rows[query_slot]
            scores = {}
            for key_slot in range(window):
                if key_slot > query_slot or padded[key_slot] == PAD:
                    continue
                key = _part(weights["W_K.weight"], head, n_head) @ rows[key_slot]
                scores[key_slot] = float(query @ key) / math.sqrt(len(query))
            top = max(scores.values())
            powers = {slot: math.exp(score - top) for slot, score in scores.items()}
            whole = math.fsum(powers.values())
            mix = 0.0
            for key_slot, power in powers.items():
                value = _part(weights["W_V.weight"], head, n_head) @ rows[key_slot]
                mix = mix + power / whole * value
                shares[head, query_slot - padding, key_slot - padding] = power / whole
            width = len(weights["W_V.weight"]) // n_head
            columns = weights["W_O.weight"][:, head * width : (head + 1) * width]
            update = np.zeros(d_model) if (0, head) in heads_off else columns @ mix
            updates[head, query_slot - padding] = update
            total = total + update
        contextual.append(total)
    hidden = [_relu(_linear(weights, "hidden_layer", row)) for row in contextual]
    logits = [_linear(weights, "vocab_head", h) for h in hidden]
    rows, hidden, logits = (np.array(each) for each in (contextual, hidden, logits))
    return Forward(rows, shares[None], updates[None], hidden, logits)


def _part(matrix, head, n_head):
    width = len(matrix) // n_head
    return matrix[head * width : (head + 1) * width]


def _linear(weights, name, vector):
    return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]


def _relu(vector):
    return np.array([max(0.0, float(x)) for x in vector])


# -- plain definitions


def softmax(logits) -> list[float]:
    top = max(logits)
    powers = [math.exp(x - top) for x in logits]
    whole = math.fsum(powers)
    return [power / whole for power in powers]


def kl(before, after) -> float:
    """Sum of p (log p - log q) with the logs taken by log-sum-exp."""
    log_p, log_q = _log_softmax(before), _log_softmax(after)
    return math.fsum(
        math.exp(a) * (a - b) for a, b in zip(log_p, log_q, strict=True) if math.exp(a) > 0
    )


def _log_softmax(logits):
    top = max(float(x) for x in logits)
    whole = top + math.log(math.fsum(math.exp(float(x) - top) for x in logits))
    return [float(x) - whole for x in logits]


def cosine(a, b) -> float:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return float(sum(a * b) / (math.sqrt(sum(a * a)) * math.sqrt(sum(b * b))))


def nearest(vector, table, candidates) -> list[tuple[int, float]]:
    """(id, cosine) of all candidates, nearest first."""
    return sorted(((i, cosine(vector, table[i])) for i in candidates), key=lambda pair: -pair[1])


def pca(rows, axes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, axes and explained shares by SVD of the stacked rows."""
    rows = np.asarray(rows, dtype=np.float64)
    mean = rows.mean(axis=0)
    _, singular, right = np.linalg.svd(rows - mean, full_matrices=False)
    basis = right[:axes].copy()
    for i, axis in enumerate(basis):
        if max(axis, key=abs) < 0:
            basis[i] = -axis
    return mean, basis, singular[:axes] ** 2 / sum(singular**2)


def spearman(first, second) -> float:
    """Pearson's correlation of ranks; a rank counts who is below, and ties half."""
    ranks = [
        np.array([sum((y < x) + 0.5 * (y == x) for y in values) for x in values])
        for values in (first, second)
    ]
    return float(np.corrcoef(*ranks)[0, 1])


def next_probs(logits, *, never=(), temperature=1.0, top_k=None, top_p=None) -> list[float]:
    """Temperature, then top-k, then top-p over what is left, renormalised."""
    allowed = [i for i in range(len(logits)) if i not in never]
    if temperature == 0:
        best = max(allowed, key=lambda i: logits[i])
        return [float(i == best) for i in range(len(logits))]
    probs = dict(
        zip(allowed, softmax([float(logits[i]) / temperature for i in allowed]), strict=True)
    )
    order = sorted(allowed, key=lambda i: -probs[i])[:top_k]
    whole = math.fsum(probs[i] for i in order)
    if top_p is not None:
        kept, mass = [], 0.0
        for i in order:
            kept.append(i)
            mass += probs[i] / whole
            if mass >= top_p:
                break
        order, whole = kept, math.fsum(probs[i] for i in kept)
    return [probs[i] / whole if i in order else 0.0 for i in range(len(logits))]
