//! Tables for a terminal.

use std::{borrow::Cow, fmt::Write as _};

use crate::plain::{self, fitted, flush_left, flush_right};

/// Columns that a name gets at least.
const LEAST_OF_NAME: usize = 8;
/// Blanks between columns.
const GAP: usize = 2;

/// One column: its head, its cells, and to which side they stand.
pub(super) struct Column {
    pub(super) head: Cow<'static, str>,
    pub(super) cells: Vec<String>,
    /// Names stand to the left, and may be cut.
    pub(super) is_name: bool,
    /// Where there is no room, the column with the highest number goes first; those with 0 stay.
    pub(super) spare: u8,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|it| plain::columns(it));
        cells.chain([plain::columns(&self.head)]).max().unwrap_or(0)
    }
}

/// The width of all columns.
pub(super) fn width_of(columns: &[Column]) -> usize {
    columns.iter().map(|it| it.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Cuts names until the columns fit, as far as that goes.
pub(super) fn fit(columns: &mut [Column], width: usize) {
    while width_of(columns) > width && narrow(columns) {}
}

/// Drops columns that can be spared until the others fit, with their names cut as far as can be.
pub(super) fn drop_spare(columns: &mut Vec<Column>, width: usize) {
    let least = |it: &Column| if it.is_name { it.width().min(LEAST_OF_NAME) } else { it.width() };
    let least_of = |all: &[Column]| all.iter().map(|it| least(it) + GAP).sum::<usize>();
    while least_of(columns) > width + GAP {
        let places = columns.iter().enumerate().filter(|(_, it)| it.spare > 0);
        let Some((place, _)) = places.max_by_key(|(_, it)| it.spare) else { return };
        columns.remove(place);
    }
}

/// Takes a column from the longest name; false if there is none to take.
fn narrow(columns: &mut [Column]) -> bool {
    let names = columns.iter_mut().filter(|it| it.is_name && it.width() > LEAST_OF_NAME);
    let Some(longest) = names.max_by_key(|it| it.width()) else { return false };
    let width = longest.width() - 1;
    longest.cells.iter_mut().for_each(|cell| *cell = fitted(cell, width));
    longest.width() <= width
}

/// A row of the table, or its head. The columns begin at the left edge, two blanks apart.
pub(super) fn line(columns: &[Column], row: Option<usize>) -> String {
    let mut line = String::new();
    for column in columns {
        let width = column.width();
        let cell = row.map_or(&*column.head, |row| column.cells[row].as_str());
        let _ = match column.is_name {
            true => write!(line, "{}  ", flush_left(cell, width)),
            false => write!(line, "{}  ", flush_right(cell, width)),
        };
    }
    line.trim_end().to_owned()
}
