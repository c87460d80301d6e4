//! How far people agree with each other.

use std::collections::BTreeMap;

use probity_stats::agreement::{Weights, cohen_kappa, fleiss_kappa};
use serde::Serialize;

use super::{Mark, POINTS, Remark, Said, current};

/// People between whom it is reckoned; those who said most come first.
const MOST_PEOPLE: usize = 8;

/// How far some people agree on a matter, over the results that all of them said something about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The criterion; none is the verdict.
    pub about: Option<String>,
    /// Who.
    pub people: Vec<String>,
    /// Results that all of them said something about.
    pub rated: u64,
    /// Those about which all of them said the same.
    pub same: u64,
    /// Beyond chance: Cohen's kappa of two people, Fleiss' of more. None where everybody always said the same one thing.
    pub kappa: Option<f64>,
    /// Cohen's kappa of points where a difference counts by its square.
    pub kappa_quadratic: Option<f64>,
}

impl Agreement {
    /// The share of results about which all of them said the same.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub fn share(&self) -> f64 {
        self.same as f64 / self.rated.max(1) as f64
    }
}

/// What everybody said about one matter of a result: a person, by their place, and the place of a category.
type Votes = BTreeMap<usize, usize>;

/// Gathers what people said, result by result.
#[derive(Clone, Debug, Default)]
pub struct Opinions {
    people: Vec<String>,
    /// For each matter what was said of each result. No criterion is the verdict.
    matters: BTreeMap<Option<String>, Vec<Votes>>,
}

impl Opinions {
    /// Adds the history of a result.
    pub fn add(&mut self, history: &[Said]) {
        let mut votes: BTreeMap<Option<&str>, Votes> = BTreeMap::new();
        for said in current(history) {
            if let Some((about, category)) = vote(&said.remark) {
                let person = self.place_of(said.person.as_str());
                votes.entry(about).or_default().insert(person, category);
            }
        }
        for (about, votes) in votes {
            self.matters.entry(about.map(ToOwned::to_owned)).or_default().push(votes);
        }
    }

    fn place_of(&mut self, person: &str) -> usize {
        match self.people.iter().position(|it| it == person) {
            Some(place) => place,
            None => {
                self.people.push(person.to_owned());
                self.people.len() - 1
            }
        }
    }

    /// How far people agree: each pair, then all of them together where there are more.
    pub fn agreements(&self) -> Vec<Agreement> {
        self.matters
            .iter()
            .flat_map(|(about, votes)| self.on_matter(about.as_deref(), votes))
            .collect()
    }

    fn on_matter(&self, about: Option<&str>, votes: &[Votes]) -> Vec<Agreement> {
        let people = self.busiest(votes);
        let pairs = people
            .iter()
            .enumerate()
            .flat_map(|(at, one)| people[at + 1..].iter().map(move |other| vec![*one, *other]));
        let all = (people.len() > 2).then(|| people.clone());
        pairs.chain(all).filter_map(|people| self.among(about, &people, votes)).collect()
    }

    /// The people who said most, by name.
    fn busiest(&self, votes: &[Votes]) -> Vec<usize> {
        let mut counts = vec![0_usize; self.people.len()];
        votes.iter().flat_map(BTreeMap::keys).for_each(|it| counts[*it] += 1);
        let mut people: Vec<usize> = (0..counts.len()).filter(|it| counts[*it] > 0).collect();
        let name = |it: &usize| &self.people[*it];
        people.sort_by(|a, b| counts[*b].cmp(&counts[*a]).then_with(|| name(a).cmp(name(b))));
        people.truncate(MOST_PEOPLE);
        people.sort_by(|a, b| name(a).cmp(name(b)));
        people
    }

    fn among(&self, about: Option<&str>, people: &[usize], votes: &[Votes]) -> Option<Agreement> {
        let categories = if about.is_none() { 2 } else { POINTS.count() };
        let of_all = |votes: &Votes| -> Option<Vec<usize>> {
            people.iter().map(|it| votes.get(it).copied().filter(|it| *it < categories)).collect()
        };
        let rated: Vec<Vec<usize>> = votes.iter().filter_map(of_all).collect();
        if rated.is_empty() {
            return None;
        }
        let same = rated.iter().filter(|it| it.windows(2).all(|two| two[0] == two[1])).count();
        let mut table = vec![vec![0; categories]; categories];
        let mut counts = vec![vec![0; categories]; rated.len()];
        for (said, counts) in rated.iter().zip(&mut counts) {
            said.iter().for_each(|category| counts[*category] += 1);
            if let [one, other] = said.as_slice() {
                table[*one][*other] += 1;
            }
        }
        let is_pair = people.len() == 2;
        let cohen = |weights| cohen_kappa(&table, weights);
        Some(Agreement {
            about: about.map(ToOwned::to_owned),
            people: people.iter().map(|it| self.people[*it].clone()).collect(),
            rated: rated.len() as u64,
            same: same as u64,
            kappa: if is_pair { cohen(Weights::Equal) } else { fleiss_kappa(&counts) },
            kappa_quadratic: if is_pair && about.is_some() {
                cohen(Weights::Quadratic)
            } else {
                None
            },
        })
    }
}

fn vote(remark: &Remark) -> Option<(Option<&str>, usize)> {
    match remark {
        Remark::Verdict { mark } => Some((None, usize::from((*mark)? == Mark::Pass))),
        Remark::Points { about, points } => {
            Some((Some(about), usize::from((*points)?.checked_sub(*POINTS.start())?)))
        }
        Remark::Note { .. } | Remark::Tag { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Name, *};

    fn agreements(results: &[Vec<Said>]) -> Vec<Agreement> {
        let mut opinions = Opinions::default();
        results.iter().for_each(|history| opinions.add(history));
        opinions.agreements()
    }

    fn said(person: &str, remark: Remark) -> Said {
        Said { person: Name::of_person(person).unwrap(), at_ms: 0, remark, carried_from: None }
    }

    fn verdict(person: &str, pass: bool) -> Said {
        let mark = Some(if pass { Mark::Pass } else { Mark::Fail });
        said(person, Remark::Verdict { mark })
    }

    fn close(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?} {expected}");
    }

    #[test]
    fn two_people_have_cohens_kappa_over_what_both_rated() {
        // Cohen's example of 20, 5, 10 and 15: kappa 0.4.
        let mut results = Vec::new();
        for (one, other, count) in
            [(true, true, 20), (true, false, 5), (false, true, 10), (false, false, 15)]
        {
            for _ in 0..count {
                results.push(vec![verdict("ada", one), verdict("bob", other)]);
            }
        }
        results.push(vec![verdict("ada", true)]);
        results.push(vec![verdict("bob", false), said("bob", Remark::Verdict { mark: None })]);
        let found = agreements(&results);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((only.rated, only.same, only.about.as_deref()), (50, 35, None));
        assert!((only.share() - 0.7).abs() < 1e-12);
        close(only.kappa, 0.4);
    }

    #[test]
    fn three_people_have_fleiss_kappa_as_well() {
        let row = |marks: [bool; 3]| {
            let people = ["ada", "bob", "cy"].into_iter().zip(marks);
            people.map(|(person, pass)| verdict(person, pass)).collect::<Vec<_>>()
        };
        let results = [[true; 3], [false; 3], [true, true, false], [false, true, false]].map(row);
        let found = agreements(&results);
        assert_eq!(found.len(), 4);
        let all = &found[3];
        assert_eq!((all.people.len(), all.rated, all.same), (3, 4, 2));
        // As in the example of `fleiss_kappa`.
        close(all.kappa, 1.0 / 3.0);
    }

    #[test]
    fn points_have_a_kappa_by_distance() {
        let points = |person: &str, points| {
            said(person, Remark::Points { about: "right".to_owned(), points: Some(points) })
        };
        let results =
            [(1, 1), (2, 3), (5, 4), (3, 3)].map(|(a, b)| vec![points("ada", a), points("bob", b)]);
        let found = agreements(&results);
        assert_eq!((found[0].about.as_deref(), found[0].same), (Some("right"), 2));
        assert!(found[0].kappa_quadratic.unwrap() > found[0].kappa.unwrap());
    }

    #[test]
    fn points_out_of_range_are_left_out() {
        let wrong = |points| said("ada", Remark::Points { about: "x".to_owned(), points });
        let results = [vec![wrong(Some(0))], vec![wrong(Some(200))]];
        assert_eq!(agreements(&results), []);
    }
}
