"""Tables as data, and the records that they are made from."""

from skillc_lab.tables.acted import ACTED, acted_cell, acted_heads
from skillc_lab.tables.records import read_json, record_names, write_record
from skillc_lab.tables.table import Cell, Row, Table, points, rate

__all__ = [
    "ACTED",
    "Cell",
    "Row",
    "Table",
    "acted_cell",
    "acted_heads",
    "points",
    "rate",
    "read_json",
    "record_names",
    "write_record",
]
