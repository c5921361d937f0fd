//! Tables: CSV, JSON, Markdown, Parquet.
