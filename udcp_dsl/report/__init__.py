"""A comparison as a page that opens offline and as figures for a paper; needs the extra `report` (matplotlib)."""

from __future__ import annotations

from udcp_dsl.report.drawing import write_figures
from udcp_dsl.report.page import write_report

__all__ = ["write_figures", "write_report"]
