"""Paired evaluation: a policy plays every task with the skill and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.evaluation.agents import (
        PANEL_SEED,
        EvaluatedAgent,
        PhaseProgress,
        RunningAgent,
        TrialReport,
        play_trials,
    )
    from trainers.evaluation.outcomes import ArmOutcome, PairedCounts, PairedOutcome, graded, mean_scores, pass_rates
    from trainers.evaluation.paired import (
        Change,
        PairedReport,
        action_warning,
        compare_reports,
        cut_warning,
        paired_evaluation,
    )
    from trainers.evaluation.player import PolicyPlayer, policy_player
    from trainers.evaluation.policy import (
        PolicyReport,
        deciding_settings,
        evaluate_policy,
        open_panel,
        require_evaluation_of,
    )
    from trainers.evaluation.table import table as report_table
    from trainers.evaluation.table import validation_record
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["PANEL_SEED", "EvaluatedAgent", "PhaseProgress", "RunningAgent", "TrialReport"]
__all__ += ["ArmOutcome", "PairedCounts", "PairedOutcome", "graded", "mean_scores", "pass_rates"]
__all__ += ["Change", "PairedReport", "action_warning", "compare_reports", "cut_warning", "paired_evaluation"]
__all__ += ["PolicyPlayer", "PolicyReport", "deciding_settings", "evaluate_policy", "open_panel"]
__all__ += ["play_trials", "policy_player", "report_table", "require_evaluation_of", "validation_record"]
