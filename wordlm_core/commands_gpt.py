"""What the commands of the microgpt pages answer, as JSON-ready data; see `commands`."""

import argparse

from wordlm_core import answers, quiz
from wordlm_core.answers import Answer
from wordlm_core.commands import open_checkpoint, open_text
from wordlm_core.lens import expression, parameters, position, tokens, training_step


def autograd(args: argparse.Namespace) -> Answer:
    """Compute an expression over a, b and c, and its gradients step by step."""
    letters = {"a": args.a, "b": args.b, "c": args.c}
    return answers.of_expression(expression.evaluate(args.expression, letters, args.calls))


def read_tokens(args: argparse.Namespace) -> Answer:
    """Give a text's ids, inputs and targets, with the loss of each prediction."""
    loaded = open_checkpoint(args.checkpoint)
    model = loaded.model_at(args.step)
    loaded.vocabulary.read(args.text)  # refuses what the page shows as strange
    table = tokens.read(loaded.vocabulary, args.text, model.config.context_length)
    return answers.of_tokens(table, tokens.losses(model, table))


def list_parameters(args: argparse.Namespace) -> Answer:
    """List every matrix with its shape and count, and what training did to it."""
    loaded = open_checkpoint(args.checkpoint)
    model = loaded.model_at(args.step)
    kept = len(loaded.whole_steps) > 1  # else there is no "before" to compare with
    changes = parameters.changes(loaded, loaded.resolve_step(args.step)) if kept else ()
    return answers.of_parameters(parameters.inventory(model), changes)


def walk(args: argparse.Namespace) -> Answer:
    """Take the forward pass of one position apart, vector by vector."""
    loaded, model, probe = open_text(args)
    result = position.walk(model, probe, args.position, end_id=loaded.vocabulary.end_id)
    return answers.of_walk(result, loaded.vocabulary)


def step(args: argparse.Namespace) -> Answer:
    """Take one training step on a text, on a copy, and keep every number."""
    loaded, model, probe = open_text(args)
    result = training_step.training_step(model, loaded.vocabulary, probe, rate=args.lr)
    return answers.of_training_step(result)


def ask(args: argparse.Namespace) -> Answer:
    """List questions about the first checkpoint with their answers."""
    loaded = [open_checkpoint(path) for path in args.checkpoints]
    return answers.of_quiz(quiz.questions(loaded, seed=args.seed, topic=args.topic))
