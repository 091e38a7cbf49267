"""Episodes that the context cut."""

from __future__ import annotations

from trainers.evaluation.paired_report import PairedReport

__all__ = ["cut_warning"]


def cut_warning(report: PairedReport, max_context: int | None) -> str:
    """A sentence on episodes that the context cut, and on what to do; "" if there are none.

    Args:
        report: The evaluation.
        max_context: The setting; None where a server's own limit cuts.
    """
    cut, played = report.cuts("context"), len(report.outcomes)
    if not any(cut.values()):
        return ""
    limit, remedy = ("of the server's model", "Serve the model with a longer context")
    if max_context is not None:
        limit, remedy = (f"(max_context={max_context})", "Raise max_context")
    return (
        f"The context {limit} cut {cut['with']} of {played} episodes with the skill and "
        f"{cut['without']} of {played} without; they count as failed. {remedy}, or use form=window:5."
    )
