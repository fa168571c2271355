"""The documentation site: hand-written pages, and pages made from the code."""
