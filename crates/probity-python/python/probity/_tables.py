"""Results as tables of other libraries, which read them where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars


def to_polars(results: Any) -> polars.DataFrame:
    """A table of polars."""
    import polars

    return polars.DataFrame(results)


def to_pandas(results: Any) -> pandas.DataFrame:
    """A table of pandas."""
    import pandas

    from_arrow = getattr(pandas.DataFrame, "from_arrow", None)
    if from_arrow is None:
        # Those before 3.0 need pyarrow for it.
        import pyarrow

        from_arrow = lambda it: pyarrow.table(it).to_pandas()  # noqa: E731
    table: pandas.DataFrame = from_arrow(results)
    return table
