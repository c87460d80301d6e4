//! The table: what was wanted, what was measured, whether it holds.

use std::fmt;

/// The same thing measured several times.
#[derive(Default)]
pub(crate) struct Figure(Vec<f64>);

impl Figure {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    pub(crate) fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl FromIterator<f64> for Figure {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut figure = Self::default();
        values.into_iter().for_each(|it| figure.push(it));
        figure
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let [least, .., most] = self.0.as_slice() else {
            return match self.0.is_empty() {
                true => write!(f, "not measured"),
                false => write!(f, "{:.digits$}", self.median()),
            };
        };
        write!(f, "{:.digits$} ({least:.digits$}–{most:.digits$})", self.median())
    }
}

/// What a median is held against.
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Nothing was promised.
    None,
}

/// Prints the head of the table.
pub(crate) fn head() {
    println!("| measurement | target | result | target met |");
    println!("|---|--:|--:|---|");
}

/// Prints a line of the table.
pub(crate) fn line(what: &str, target: &Target, digits: usize, figure: &Figure) {
    let (wanted, holds) = match target {
        Target::AtMost(most) => (format!("≤ {most}"), figure.median() <= *most),
        Target::AtLeast(least) => (format!("≥ {least}"), figure.median() >= *least),
        Target::None => (String::new(), true),
    };
    let holds = match (target, holds) {
        (Target::None, _) => "",
        _ if figure.0.is_empty() => "",
        (Target::AtMost(_) | Target::AtLeast(_), true) => "yes",
        (Target::AtMost(_) | Target::AtLeast(_), false) => "**no**",
    };
    println!("| {what} | {wanted} | {figure:.digits$} | {holds} |");
}
