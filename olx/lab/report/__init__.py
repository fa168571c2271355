"""Reports of results: text, charts, and one HTML page."""

from olx.lab.report.page import write as write
from olx.lab.report.paper import paper_table as paper_table
from olx.lab.report.paper import text_of as text_of
