"""The study as pages: tables, figures, conclusions."""
