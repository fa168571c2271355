"""A result as one page that opens anywhere, and its figures as files."""

from olx.lab.report.page import write as write
