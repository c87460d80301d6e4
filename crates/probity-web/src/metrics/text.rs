//! The text format of Prometheus.

use std::fmt::{Display, Write as _};

use probity_core::record::InputDigest;

/// Bytes of a label's value.
const LONGEST_LABEL: usize = 120;
/// Characters of the digest that stands for what was cut.
const DIGEST: usize = 12;

/// Families of samples, while they are written.
#[derive(Default)]
pub(super) struct Text {
    written: String,
    family: &'static str,
}

impl Text {
    /// Begins a family: the samples that follow are of it.
    pub(super) fn family(&mut self, name: &'static str, help: &str) {
        self.family = name;
        let _ = writeln!(self.written, "# HELP {name} {help}\n# TYPE {name} gauge");
    }

    pub(super) fn sample(&mut self, labels: &str, value: &dyn Display) {
        let name = self.family;
        let _ = match labels.is_empty() {
            true => writeln!(self.written, "{name} {value}"),
            false => writeln!(self.written, "{name}{{{labels}}} {value}"),
        };
    }

    /// A sample for each value of one more label. Such values are words of ours, which need no care.
    pub(super) fn each<'a>(
        &mut self,
        labels: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        for (value, count) in counts {
            self.sample(&format!("{labels},{label}=\"{value}\""), &count);
        }
    }

    pub(super) fn finish(self) -> String {
        self.written
    }
}

/// Labels, with what has a meaning in the format escaped.
pub(super) fn labels(labels: &[(&str, &str)]) -> String {
    let label = |(name, value): &(&str, &str)| {
        let value = shortened(value);
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

/// What is too long ends in a digest of all of it: two names that begin alike stay two.
fn shortened(value: &str) -> String {
    if value.len() <= LONGEST_LABEL {
        return value.to_owned();
    }
    let end = value.floor_char_boundary(LONGEST_LABEL - DIGEST - 1);
    let digest = InputDigest::of([value.as_bytes()]).to_string();
    format!("{}~{}", &value[..end], &digest[..DIGEST])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_label() {
        let labels = labels(&[("suite", "a\\b\"} 1\nprobity_runs 9"), ("runner", "")]);
        assert_eq!(labels, r#"suite="a\\b\"} 1\nprobity_runs 9",runner="""#);
    }

    #[test]
    fn long_names_that_begin_alike_stay_two() {
        let [one, two] = ["a", "b"].map(|end| labels(&[("suite", &("é".repeat(200) + end))]));
        assert_ne!(one, two);
        assert!(one.len() <= r#"suite="""#.len() + LONGEST_LABEL, "{one}");
    }
}
