//! Labels about one matter, compared with what the judge said about it.

use std::{collections::BTreeMap, fmt::Write as _};

use probity_core::calibration::{Calibration, Judged, Label};
use serde_json::{Value, json};

use super::{
    labels::{Item, Matter},
    told,
};
use crate::{failure::Failure, printer::Printer};

/// How far a judge agrees with people on a matter.
pub(super) struct Compared {
    /// None where labels are about one thing only.
    matter: Option<Matter>,
    /// Who the people are, if that is known.
    names: Vec<String>,
    calibration: Calibration,
}

/// Compares labels matter by matter. Matters that only people said something about are left out.
pub(super) fn compare(
    items: &[Item],
    said: &[Result<Option<Label>, String>],
    printer: &Printer,
) -> Result<Vec<Compared>, Failure> {
    let mut matters: BTreeMap<Option<&Matter>, Vec<usize>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        matters.entry(item.matter.as_ref()).or_default().push(at);
    }
    let mut compared = Vec::new();
    for (matter, places) in matters {
        let of_matter: Vec<&Item> = places.iter().map(|at| &items[*at]).collect();
        let names = names(&of_matter);
        let judged: Vec<Judged> = places
            .iter()
            .map(|at| Judged {
                judge: said[*at].as_ref().ok().cloned().flatten(),
                people: people(&items[*at], &names),
            })
            .collect();
        let calibration = Calibration::of(&judged).map_err(|error| {
            let of = matter.map(|it| format!(" about {it}")).unwrap_or_default();
            Failure::new(format!("the labels{of} cannot be compared")).because(error)
        })?;
        match (calibration.compared, matter) {
            (0, Some(matter)) => {
                printer.note(&format!("{matter}: nothing that both a judge and people judged"));
            }
            (0, None) => {}
            (_, matter) => compared.push(Compared { matter: matter.cloned(), names, calibration }),
        }
    }
    match compared.is_empty() {
        true => Err(Failure::new("there is no answer that both the judge and people judged")),
        false => Ok(compared),
    }
}

/// Everybody who is named, in order; nobody if a label does not say whose it is.
fn names(items: &[&Item]) -> Vec<String> {
    if items.iter().any(|it| it.names.len() != it.people.len()) {
        return Vec::new();
    }
    let mut names: Vec<String> = items.iter().flat_map(|it| it.names.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What people said, each in their place.
fn people(item: &Item, names: &[String]) -> Vec<Option<Label>> {
    if names.is_empty() {
        return item.people.clone();
    }
    let of = |name: &String| item.people.get(item.names.iter().position(|it| it == name)?)?.clone();
    names.iter().map(of).collect()
}

/// For people, one matter after the other.
pub(super) fn render(compared: &[Compared]) -> String {
    let mut text = String::new();
    for (at, Compared { matter, names, calibration }) in compared.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        if let Some(matter) = matter {
            let _ = writeln!(text, "{matter}");
        }
        text.push_str(&told::render(calibration, names));
    }
    text
}

/// For programs: one table, or a list where labels are about several matters.
pub(super) fn json(compared: &[Compared]) -> Value {
    let one = |it: &Compared| serde_json::to_value(&it.calibration).unwrap_or_default();
    match compared {
        [only @ Compared { matter: None, .. }] => one(only),
        several => several
            .iter()
            .map(|it| {
                let mut value = one(it);
                value["names"] = json!(it.names);
                value["about"] = json!(it.matter.as_ref().map(|it| &it.about));
                value["by"] = json!(it.matter.as_ref().and_then(|it| it.by.as_ref()));
                value
            })
            .collect(),
    }
}

impl Compared {
    /// Whether kappa is high enough. Why it is not is said.
    pub(super) fn reaches(&self, least: Option<f64>, printer: &Printer) -> bool {
        let Some(least) = least else { return true };
        let of = self.matter.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
        match self.calibration.kappa {
            Some(kappa) if kappa >= least => true,
            Some(kappa) => {
                printer.note(&format!("{of}kappa is {kappa:.3}, below {least}"));
                false
            }
            None => {
                let why = "kappa is not defined: judge and people gave only one label";
                printer.note(&format!("{of}{why}"));
                false
            }
        }
    }
}
