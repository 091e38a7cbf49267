"""The board: results on one fixed panel per world, each a file that says every outcome and is checked by them."""

from skillc_lab.board.page import board_tables, renewed_page, write_badge
from skillc_lab.board.panels import PANELS, BoardPanel
from skillc_lab.board.result import BoardResult, check_distinct, evaluation_result, read_result, read_results

__all__ = [
    "PANELS",
    "BoardPanel",
    "BoardResult",
    "board_tables",
    "check_distinct",
    "evaluation_result",
    "read_result",
    "read_results",
    "renewed_page",
    "write_badge",
]
