"""Episodes that the context cut."""

from __future__ import annotations

from trainers.evaluation.paired_report import PairedReport

__all__ = ["cut_warning"]


def cut_warning(report: PairedReport, max_context: int) -> str:
    """A sentence on episodes that the context cut, and on what to do; "" if there are none."""
    cut, played = report.cuts("context"), len(report.outcomes)
    if not any(cut.values()):
        return ""
    return (
        f"The context (max_context={max_context}) cut {cut['with']} of {played} episodes with the skill and "
        f"{cut['without']} of {played} without; they count as failed. Raise max_context, or use form=window:5."
    )
