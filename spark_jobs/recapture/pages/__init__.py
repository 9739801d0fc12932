"""Self-contained HTML pages: the base template with its style sheet, and pictures as SVG."""
