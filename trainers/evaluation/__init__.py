"""Paired evaluation: a policy plays every task with the skill and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.evaluation.agents import PANEL_SEED, EvaluatedAgent, PhaseProgress, RunningAgent, ZeroShotRunner
    from trainers.evaluation.outcomes import (
        ArmOutcome,
        PairedCounts,
        PairedOutcome,
        graded,
        mean_scores,
        pass_at_k,
        pass_rates,
    )
    from trainers.evaluation.paired import (
        Change,
        PairedReport,
        action_warning,
        compare_reports,
        cut_warning,
        paired_evaluation,
    )
    from trainers.evaluation.player import PolicyPlayer, policy_player
    from trainers.evaluation.policy import PolicyReport, evaluate_policy, open_panel
    from trainers.evaluation.table import table as report_table
    from trainers.evaluation.table import trial_table, usage_table
    from trainers.evaluation.trials import TrialOutcome, TrialReport, play_trials
    from trainers.evaluation.usage import Usage, no_price, usage_report
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
    "TrialOutcome",
    "TrialReport",
    "Usage",
    "ZeroShotRunner",
    "action_warning",
    "compare_reports",
    "cut_warning",
    "evaluate_policy",
    "graded",
    "mean_scores",
    "no_price",
    "open_panel",
    "paired_evaluation",
    "pass_at_k",
    "pass_rates",
    "play_trials",
    "policy_player",
    "report_table",
    "retirement_rule",
    "trial_table",
    "usage_report",
    "usage_table",
    "validation_record",
]
