"""Reads a workbook with openpyxl and compares every cell with the JSON exports next to it. Called by export.rs with
the folder that contains both."""

import datetime
import json
import math
import sys

import openpyxl
from openpyxl.utils import get_column_letter

folder, path = sys.argv[1:]
recalculated = "recalculated" in path
book = openpyxl.load_workbook(path)
tables = ["runs", "classes", "lengths", "curves", "requests"]
assert book.sheetnames == [*tables, "charts", "chart_data", "definitions", "about"], book.sheetnames
assert book.active.title == "runs"
cells = 0


def same(cell, value, what):
    found = cell.value
    # LibreOffice stores a boolean as a call of its function.
    if recalculated and isinstance(value, bool) and found == f"={str(value).upper()}()":
        return
    assert cell.data_type not in ("f", "e"), (what, "a formula or an error", found)
    if isinstance(found, datetime.datetime):
        told = datetime.datetime.fromisoformat(value[:19])
        assert abs(found - told) < datetime.timedelta(seconds=2), (what, found, value)
        return
    if isinstance(value, float):
        assert isinstance(found, (int, float)) and math.isclose(found, value, rel_tol=1e-9), (what, found, value)
        return
    assert found == (None if value == "" else value) and type(found) is type(value), (what, found, value)


texts = set()
for name in ["runs", "classes", "lengths", "curves", "requests"]:
    sheet = book[name]
    with open(f"{folder}/{name}.json") as file:
        rows = json.load(file)
    columns = list(rows[0])
    assert [cell.value for cell in sheet[1]] == columns, name
    assert sheet.max_row == len(rows) + 1, (name, sheet.max_row, len(rows))
    # Headless LibreOffice writes no views.
    assert recalculated or sheet.freeze_panes == "A2", name
    assert sheet.auto_filter.ref == f"A1:{get_column_letter(len(columns))}{len(rows) + 1}", sheet.auto_filter.ref
    assert all(cell.font.bold for cell in sheet[1]), name
    for line, row in zip(sheet.iter_rows(min_row=2), rows):
        for cell, column in zip(line, columns):
            same(cell, row[column], (name, column))
            texts |= {row[column]} if isinstance(row[column], str) else set()
            cells += row[column] is not None

# Values that a spreadsheet would execute are stored as texts.
assert {"=cmd|calc", "@demo", "=1+1", "+short", "-long"} <= texts, texts

# Numbers have the format of their units; an instant is a date.
runs = book["runs"]
column = {cell.value: cell.column for cell in runs[1]}
look = lambda name: runs.cell(2, column[name]).number_format
assert look("started").replace("\\", "").lower().startswith("yyyy-mm-dd"), look("started")
assert (look("error_share"), look("requests"), look("ttft_p50_ms")) == ("0.00%", "0", "0.000")
widths = {letter: dimension.width for letter, dimension in runs.column_dimensions.items()}
assert max(widths.values()) > 15, widths

# Every column has its definition.
defined = [[cell.value for cell in row] for row in book["definitions"].iter_rows()]
assert defined[0] == ["sheet", "column", "shown", "unit", "definition", "null when"], defined[0]
assert {row[2] for row in defined[1:]} == {"yes"}, "all columns were requested"
for name in ["runs", "classes", "lengths", "curves", "requests"]:
    told = [row[1] for row in defined[1:] if row[0] == name]
    assert told == [cell.value for cell in book[name][1]], name
ttft = next(row for row in defined if row[:2] == ["runs", "ttft_p50_ms"])
assert ttft[3] == "ms" and "n = 6" in ttft[5] and "TTFT" in ttft[4], ttft

about = {row[0].value: row[1].value for row in book["about"].iter_rows()}
assert about["plan"] == "=cmd|calc" and about["program"].startswith("sweepline ") and about["runs"] == "5", about
assert about["columns version"] == "1" and about["made"].endswith("UTC"), about

print(json.dumps({"cells": cells}))
