//! How far a judge agrees with people about the same answers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::Share;
use probity_stats::{
    Interval, USUAL_LEVEL,
    agreement::{Scale, Weights, cohen_kappa, krippendorff_alpha},
    paired::mean_difference,
};

/// What somebody said of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// Points.
    Points(f64),
    /// A name, such as `win` or `good`.
    Name(String),
}

/// One answer and what everybody said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What the judge said; none if its answer could not be used.
    pub judge: Option<Label>,
    /// What people said, each in their own place; none for those who said nothing.
    pub people: Vec<Option<Label>>,
}

/// How far the judge agrees with people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Answers that were judged by both.
    pub compared: u64,
    /// Answers that the judge said nothing usable about.
    pub unjudged: u64,
    /// Answers that no human said anything about.
    pub unlabelled: u64,
    /// How many people there are.
    pub people: u64,
    /// The same label as people, whose median or majority counts where there are several.
    pub agreement: Share,
    /// Cohen's kappa against that label, and with it the weighted ones for points.
    pub kappa: Option<f64>,
    /// Disagreements count by how far apart they are.
    pub kappa_linear: Option<f64>,
    /// Disagreements count by the square of that.
    pub kappa_quadratic: Option<f64>,
    /// Cohen's kappa against each human alone.
    pub kappa_by_person: Vec<Option<f64>>,
    /// Krippendorff's alpha of the judge and all people: names, or points as places in an order.
    pub alpha: Option<f64>,
    /// The same for points as numbers.
    pub alpha_interval: Option<f64>,
    /// The same of people alone: more than this nobody can ask of a judge.
    pub alpha_of_people: Option<f64>,
    /// By how many points the judge is above people, on the mean.
    pub bias: Option<f64>,
    /// Student's interval of that at 95 %.
    pub bias_interval: Option<Interval>,
    /// The labels, in order.
    pub labels: Vec<String>,
    /// For each label of people, how often the judge gave each.
    pub table: Vec<Vec<u64>>,
}

/// Labels that cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// They are of two kinds.
    #[error("some labels are points and some are names")]
    Mixed,
    /// There are hardly two of a kind.
    #[error("there are more than {MOST_LABELS} different labels: round the points")]
    TooMany,
}

/// How many different labels there may be.
const MOST_LABELS: usize = 1000;

impl Calibration {
    /// Compares what was said.
    pub fn of(all: &[Judged]) -> Result<Self, Incomparable> {
        let everyone = || all.iter().flat_map(|it| it.people.iter().chain([&it.judge])).flatten();
        let is_points = |label: &Label| matches!(label, Label::Points(_));
        let points = everyone().all(is_points);
        if !points && everyone().any(is_points) {
            return Err(Incomparable::Mixed);
        }
        let scale = Codes::new(everyone());
        if scale.names.len() > MOST_LABELS {
            return Err(Incomparable::TooMany);
        }
        let coded: Vec<(Option<usize>, Vec<Option<usize>>)> = all
            .iter()
            .map(|it| {
                let people = it.people.iter().map(|label| scale.code(label.as_ref())).collect();
                (scale.code(it.judge.as_ref()), people)
            })
            .collect();
        let pairs: Vec<(usize, usize)> = coded
            .iter()
            .filter_map(|(judge, people)| Some((reference(people, points)?, (*judge)?)))
            .collect();
        let persons = all.iter().map(|it| it.people.len()).max().unwrap_or(0);
        let table = scale.table(pairs.iter().copied());
        let person = |at: usize| {
            let pairs =
                coded.iter().filter_map(|(judge, people)| Some(((*people.get(at)?)?, (*judge)?)));
            cohen_kappa(&scale.table(pairs), Weights::Equal)
        };
        let values = |code: &Option<usize>| code.map_or(f64::NAN, |code| scale.value(code));
        let of_people: Vec<Vec<f64>> =
            coded.iter().map(|(_, people)| people.iter().map(values).collect()).collect();
        let of_all: Vec<Vec<f64>> = coded
            .iter()
            .map(|(judge, people)| people.iter().chain([judge]).map(values).collect())
            .collect();
        let alpha = |units: &[Vec<f64>]| {
            krippendorff_alpha(units, if points { Scale::Ordinal } else { Scale::Nominal })
        };
        // Weights go by places, which say how far apart points are only where all are there.
        let weighted = |weights| scale.is_even.then(|| cohen_kappa(&table, weights)).flatten();
        let differences: Vec<f64> =
            pairs.iter().map(|(human, judge)| scale.value(*judge) - scale.value(*human)).collect();
        let bias = mean_difference(&differences, USUAL_LEVEL).filter(|_| points);
        let same = pairs.iter().filter(|(human, judge)| human == judge).count() as u64;
        Ok(Self {
            compared: pairs.len() as u64,
            unjudged: all.iter().filter(|it| it.judge.is_none()).count() as u64,
            unlabelled: all.iter().filter(|it| it.people.iter().all(Option::is_none)).count()
                as u64,
            people: persons as u64,
            agreement: Share::new(same, pairs.len() as u64),
            kappa: cohen_kappa(&table, Weights::Equal),
            kappa_linear: weighted(Weights::Linear),
            kappa_quadratic: weighted(Weights::Quadratic),
            kappa_by_person: (0..persons).map(person).collect(),
            alpha: alpha(&of_all),
            alpha_interval: points.then(|| krippendorff_alpha(&of_all, Scale::Interval)).flatten(),
            alpha_of_people: alpha(&of_people),
            bias: bias.as_ref().map(|it| it.mean),
            bias_interval: bias.map(|it| it.interval),
            labels: scale.names,
            table,
        })
    }
}

/// What people together say of an answer: the middle of their points, the lower one of two; of names
/// the one that is said most often, the first of several.
fn reference(people: &[Option<usize>], points: bool) -> Option<usize> {
    let mut said: Vec<usize> = people.iter().flatten().copied().collect();
    said.sort_unstable();
    if points {
        return said.get(said.len().checked_sub(1)? / 2).copied();
    }
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    said.into_iter().for_each(|code| *counts.entry(code).or_default() += 1);
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(code, _)| code)
}

/// The labels that there are, in order.
struct Codes {
    names: Vec<String>,
    values: Vec<f64>,
    /// Whether they are points at equal distances.
    is_even: bool,
}

impl Codes {
    fn new<'a>(labels: impl Iterator<Item = &'a Label>) -> Self {
        let (mut points, mut names) = (Vec::new(), Vec::new());
        for label in labels {
            match label {
                // Adding 0 makes one zero of two.
                Label::Points(value) => points.push(*value + 0.0),
                Label::Name(name) => names.push(name.clone()),
            }
        }
        points.sort_by(f64::total_cmp);
        points.dedup();
        let mut is_even = points.len() == 1;
        // Points that nobody gave lie between those that somebody did, and count for weights.
        if points.iter().all(|it| it.fract() == 0.0) && points.len() > 1 {
            let (low, high) = (points[0], points[points.len() - 1]);
            if high - low <= 100.0 {
                is_even = true;
                points =
                    std::iter::successors(Some(low), |it| (it + 1.0 <= high).then_some(it + 1.0))
                        .collect();
            }
        }
        names.sort_unstable();
        names.dedup();
        match names.is_empty() {
            true => {
                let names = points.iter().map(ToString::to_string).collect();
                Self { names, values: points, is_even }
            }
            false => {
                #[expect(clippy::cast_precision_loss, reason = "a handful of names")]
                let values = (0..names.len()).map(|at| at as f64).collect();
                Self { names, values, is_even: false }
            }
        }
    }

    fn code(&self, label: Option<&Label>) -> Option<usize> {
        match label? {
            Label::Points(value) => {
                self.values.iter().position(|it| it.total_cmp(&(value + 0.0)).is_eq())
            }
            Label::Name(name) => self.names.iter().position(|it| it == name),
        }
    }

    fn value(&self, code: usize) -> f64 {
        self.values.get(code).copied().unwrap_or(f64::NAN)
    }

    fn table(&self, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<u64>> {
        let mut table = vec![vec![0; self.names.len()]; self.names.len()];
        for (human, judge) in pairs {
            table[human][judge] += 1;
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(judge: impl Into<Option<i32>>, people: &[Option<i32>]) -> Judged {
        let label = |it: i32| Label::Points(f64::from(it));
        Judged {
            judge: judge.into().map(label),
            people: people.iter().map(|it| it.map(label)).collect(),
        }
    }

    #[test]
    fn kappa_and_alpha_of_a_table_worked_out_by_hand() {
        // Rows are people, columns the judge: 20 5 / 10 15, Cohen's own example: kappa 0.4.
        let name = |text: &str| Some(Label::Name(text.to_owned()));
        let mut all = Vec::new();
        for (human, judge, count) in
            [("no", "no", 15), ("no", "yes", 10), ("yes", "no", 5), ("yes", "yes", 20)]
        {
            for _ in 0..count {
                all.push(Judged { judge: name(judge), people: vec![name(human)] });
            }
        }
        let found = Calibration::of(&all).unwrap();
        assert_eq!(found.table, [[15, 10], [5, 20]]);
        assert!((found.kappa.unwrap() - 0.4).abs() < 1e-12);
        assert_eq!((found.agreement.count, found.agreement.of), (35, 50));
        assert_eq!(found.kappa_quadratic, None);
        // Of the 100 values 45 are no and 55 yes: 2 * 45 * 55 / (100 * 99) disagree by chance, and
        // 2 * 15 of 100 do.
        let expected = 1.0 - (30.0 / 100.0) / (2.0 * 45.0 * 55.0 / (100.0 * 99.0));
        assert!((found.alpha.unwrap() - expected).abs() < 1e-12);
        assert_eq!(found.alpha_of_people, None);
    }

    #[test]
    fn the_middle_of_several_people_counts() {
        let all = [
            points(4, &[Some(4), Some(5), Some(2)]),
            points(3, &[Some(1), Some(2), None]),
            points(None, &[Some(3), None, None]),
            points(5, &[None, None, None]),
            points(1, &[Some(1), Some(1), Some(1)]),
        ];
        let found = Calibration::of(&all).unwrap();
        assert_eq!((found.compared, found.unjudged, found.unlabelled, found.people), (3, 1, 1, 3));
        // 4 against 4, 3 against 1, 1 against 1.
        assert_eq!((found.agreement.count, found.agreement.of), (2, 3));
        assert!((found.bias.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(found.labels, ["1", "2", "3", "4", "5"]);
        assert_eq!(found.kappa_by_person.len(), 3);
        // People say 4 once and 1 twice, the judge 4, 3 and 1 once. By chance the distances are
        // 4 against 4, 3, 1: 0 + 1 + 3, and twice 1 against them: 3 + 2 + 0, of 3: 14/3. There are 2.
        assert!((found.kappa_linear.unwrap() - (1.0 - 2.0 / (14.0 / 3.0))).abs() < 1e-12);
    }

    #[test]
    fn nothing_and_both_kinds_are_told() {
        let found = Calibration::of(&[]).unwrap();
        assert_eq!((found.compared, found.kappa, found.alpha), (0, None, None));
        let mixed = Judged {
            judge: Some(Label::Points(1.0)),
            people: vec![Some(Label::Name("good".to_owned()))],
        };
        assert_eq!(Calibration::of(&[mixed]), Err(Incomparable::Mixed));
    }
}
