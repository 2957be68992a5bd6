"""Inline: stub for now."""

from flowscope.plan.program import Program


def inline(program: Program) -> Program:
    return program
