"""Write a result as one self-contained HTML page, and its figures as files."""

from olx.lab.report.page import write as write
