"""Reads the charts of a workbook: each refers to cells of the sheet of numbers, and those cells contain the values of the
JSON export of curves. Called by export.rs with the workbook and that export."""

import json
import math
import re
import sys
import zipfile

import openpyxl

path, curves = sys.argv[1:]
book = openpyxl.load_workbook(path)
numbers = book["chart_data"]
assert [cell.value for cell in numbers[1]] == [
    "figure", "curve", "load in", "load", "value", "low (95 %, or lower of 2 repeats)", "high (95 %, or higher of 2 repeats)", "minus", "plus",
]
rows = json.load(open(curves))
names = {
    "output throughput, tok/s": "output_throughput{}_tokens_per_s",
    "TTFT p50, ms": "ttft_p50{}_ms",
    "TTFT from schedule p50, ms": "ttft_p50{}_ms",
    "TPOT p50, ms": "tpot_p50{}_ms",
}
compared = 0
for figure, curve, axis, load, value, low, high, minus, plus in numbers.iter_rows(min_row=2, values_only=True):
    assert all(cell is None or not str(cell).startswith("=") for cell in (value, low, high, minus, plus))
    if figure not in names or str(curve).startswith("objective"):
        continue
    row = next(one for one in rows if (one["endpoint"], one["load_axis"], one["load"]) == (curve, axis, load))
    same = lambda cell, told: (cell is None) == (told is None) and (cell is None or math.isclose(cell, told, rel_tol=1e-9))
    assert same(value, row[names[figure].format("")]), (figure, curve, load, value)
    ends = [row[names[figure].format(end)] for end in ("_low", "_high")]
    if low is not None and not same(low, ends[0]):
        # For two repeats the values themselves: their geometric mean is the value, and their interval is wider.
        assert math.isclose(low * high, value**2, rel_tol=1e-9) and ends[0] < low <= high < ends[1], (figure, curve, load)
    else:
        assert same(low, ends[0]) and same(high, ends[1]), (figure, curve, load, low, high)
    if low is not None:
        assert math.isclose(value - minus, low, abs_tol=1e-9) and math.isclose(value + plus, high, abs_tol=1e-9)
    compared += value is not None

charts = errors = limits = 0
with zipfile.ZipFile(path) as archive:
    for entry in archive.namelist():
        if not re.fullmatch(r"xl/charts/chart\d+\.xml", entry):
            continue
        charts += 1
        text = archive.read(entry).decode()
        assert text.count('<c:min val="0"/>') == 2, (entry, "both axes start at 0")
        titles = re.findall(r"<a:t>(.*?)</a:t>", text)
        assert len(titles) == 3 and ", " in titles[2], titles
        assert "requests in flight" in titles[1] or "requests/s" in titles[1], titles
        errors += text.count("<c:errBars>")
        for reference in re.findall(r"<c:f>(.*?)</c:f>", text):
            sheet, cells = reference.split("!")
            assert sheet == "chart_data", reference
            first, last = (re.findall(r"\d+", cells) * 2)[:2]
            for row in range(int(first), int(last) + 1):
                column = re.match(r"\$([A-Z])", cells)[1]
                limits += column == "B" and str(numbers[f"B{row}"].value).startswith("objective")
                assert column not in "BD" or numbers[f"{column}{row}"].value is not None, reference

print(json.dumps({"compared": compared, "charts": charts, "errors": errors, "limits": limits}))
