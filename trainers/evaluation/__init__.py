"""Paired evaluation: a policy plays every task with the skill and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.evaluation.agents import PANEL_SEED, EvaluatedAgent, PhaseProgress, RunningAgent, ZeroShotRunner
    from trainers.evaluation.outcomes import ArmOutcome, PairedCounts, PairedOutcome
    from trainers.evaluation.paired_report import Change, PairedReport, compare_reports
    from trainers.evaluation.player import PolicyPlayer, policy_player
    from trainers.evaluation.policy import PolicyReport, evaluate_policy
    from trainers.evaluation.repeats import pass_at_k, pass_rates
    from trainers.evaluation.scores import graded, mean_scores
    from trainers.evaluation.table import table as report_table
    from trainers.evaluation.trials import TrialReport, play_trials, trial_table
    from trainers.evaluation.usage import usage_table
    from trainers.evaluation.validation import retirement_rule, validation_record
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = [
    "PANEL_SEED",
    "ArmOutcome",
    "Change",
    "EvaluatedAgent",
    "PairedCounts",
    "PairedOutcome",
    "PairedReport",
    "PhaseProgress",
    "PolicyPlayer",
    "PolicyReport",
    "RunningAgent",
    "TrialReport",
    "ZeroShotRunner",
    "compare_reports",
    "evaluate_policy",
    "graded",
    "mean_scores",
    "pass_at_k",
    "pass_rates",
    "play_trials",
    "policy_player",
    "report_table",
    "retirement_rule",
    "trial_table",
    "usage_table",
    "validation_record",
]
