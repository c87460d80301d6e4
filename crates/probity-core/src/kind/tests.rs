use super::*;
use crate::evidence::{
    Choice, Compared, Condition, CriterionScore, Detection, Duel, JudgedBy, Pair, Round, Routed,
    Size, Tier, Win,
};
use crate::figures::Share;

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(ToOwned::to_owned).collect()
}

/// A case that was judged as the runners judge it.
fn routed(
    group: Option<&str>,
    expected: &str,
    acceptable: &str,
    chosen: &str,
) -> (Verdict, Routed) {
    let all = names("a b c");
    let (inside, outside): (Vec<_>, Vec<_>) =
        names(chosen).into_iter().partition(|it| all.contains(it));
    let choice = match (inside.len(), outside.len()) {
        (0, 0) => Choice::None,
        (1, 0) => Choice::Single,
        (0, 1) => Choice::Outside,
        _ => Choice::Multi,
    };
    let routed = Routed {
        choice,
        chosen: inside,
        outside,
        expected: names(expected),
        acceptable: names(acceptable),
        should_activate: !expected.is_empty(),
        detection: Detection::Structured,
        group: group.map(ToOwned::to_owned),
        axes: all,
    };
    let hit = routed.chosen.iter().any(|it| routed.accepts(it));
    let passed = match (routed.should_activate, group) {
        (true, None) => hit,
        (true, Some(_)) => hit && choice == Choice::Single,
        (false, _) => choice == Choice::None,
    };
    (if passed { Verdict::Pass } else { Verdict::Fail }, routed)
}

fn fold(cases: impl IntoIterator<Item = (Verdict, Evidence)>) -> Figures {
    let mut fold = Fold::default();
    for (at, (verdict, evidence)) in cases.into_iter().enumerate() {
        fold.add(Seen { case_id: &format!("case-{at}"), verdict, evidence: &evidence });
    }
    fold.finish().unwrap()
}

fn counts(share: Share) -> (u64, u64) {
    (share.count, share.of)
}

#[test]
fn activation_counts_positives_negatives_and_sets() {
    let error = Routed { choice: Choice::Error, ..routed(None, "a", "", "").1 };
    let cases = vec![
        routed(None, "a", "", "a"),     // found
        routed(None, "a", "b", "b"),    // acceptable: found, and not recalled
        routed(None, "a b", "", "a c"), // one of two, and one too many
        routed(None, "c", "", "a"),     // wrong
        routed(None, "", "", ""),       // rightly nothing
        routed(None, "", "", "c x"),    // tempted, once outside the index
        (Verdict::Error, error),
    ];
    let cases = cases.into_iter().map(|(it, routed)| (it, Evidence::Activation(routed)));
    let Figures::Activation(figures) = fold(cases) else { panic!("another kind") };
    assert_eq!(counts(figures.tpr), (3, 4));
    assert_eq!(counts(figures.fpr), (1, 2));
    assert_eq!(counts(figures.accuracy), (4, 6));
    assert_eq!(figures.errors, 1);
    // Chosen: a, b, a c, a, c x: 7 names, of which a, b and a are good.
    assert_eq!(counts(figures.sets.precision), (3, 7));
    // Expected: a, a, a b, c: 5 names, of which a and a were chosen.
    assert_eq!(counts(figures.sets.recall), (2, 5));
    let (precision, recall) = (3.0 / 7.0, 2.0 / 5.0);
    assert_eq!(figures.sets.f1, Some(2.0 * precision * recall / (precision + recall)));
    // The four positives: 1; no recall, so 0; precision and recall of one half; 0.
    assert_eq!(figures.sets.mean_f1, Some((1.0 + 0.0 + 0.5 + 0.0) / 4.0));
    assert_eq!(counts(figures.skills["a"].activated), (2, 3));
    assert_eq!(figures.skills["a"].wrongly, 1);
    assert_eq!(counts(figures.skills["c"].activated), (0, 1));
    assert_eq!(figures.skills["c"].wrongly, 2);
    let told: Vec<(&str, &str)> =
        figures.notices.iter().map(|it| (it.code, it.about.as_str())).collect();
    assert_eq!(
        told,
        [
            ("never-chosen", "b"),
            ("never-chosen", "c"),
            ("tempted", "case-5"),
            ("not-in-index", "x")
        ]
    );
}

#[test]
fn confusion_fills_a_grid_and_says_what_is_odd() {
    let group = Some("g");
    let mut cases = vec![
        routed(group, "a", "", "a"),
        routed(group, "a", "", "a"),
        routed(group, "a", "", "b"), // 1 of 3: confused
        routed(group, "b", "", "a"),
        routed(group, "b", "", "c"), // never b, and two others as often as b
        routed(group, "b", "c", "c"), // acceptable
        routed(group, "c", "", "a c"), // several
        routed(group, "c", "", ""),  // none
        routed(group, "c", "", "x"), // outside
        routed(group, "", "", ""),
        routed(group, "", "", "b"),
    ];
    let (_, unread) = routed(group, "a", "", "");
    cases.push((Verdict::Fail, Routed { choice: Choice::Unreadable, ..unread.clone() }));
    cases.push((Verdict::Error, Routed { choice: Choice::Error, ..unread }));
    let cases = cases.into_iter().map(|(it, routed)| (it, Evidence::Confusion(routed)));
    let Figures::Confusion(figures) = fold(cases) else { panic!("another kind") };
    let grid = &figures.groups["g"];
    assert_eq!(grid.axes, ["a", "b", "c"]);
    assert_eq!(grid.counts, [[2, 1, 0], [1, 0, 2], [0, 0, 0]]);
    assert_eq!(counts(grid.accuracy), (3, 10));
    // b for a, a for b and c for b are wrong, the acceptable c is not.
    assert_eq!(counts(grid.cross), (3, 6));
    assert_eq!(
        (grid.single, grid.multi, grid.none, grid.outside, grid.unreadable),
        (6, 1, 1, 1, 1)
    );
    assert_eq!((grid.errors, figures.errors), (1, 1));
    assert_eq!(counts(figures.accuracy), (4, 12));
    assert_eq!(counts(figures.negatives.chosen), (1, 2));
    assert_eq!(counts(figures.outside), (1, 12));
    let told: Vec<String> = figures
        .notices
        .iter()
        .map(|it| format!("{} {}: {}", it.code, it.about, it.message))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    confused g: `b` was chosen 1 of 3 times where `a` is expected
    confused g: `a` was chosen 1 of 3 times where `b` is expected
    confused g: `c` was chosen 1 of 3 times where `b` is expected
    low-discrimination g: where `b` is expected, two others are chosen as often
    tempted case-10: nothing should be chosen
    not-in-index x: named once, and not in the index it was shown
    ");
}

#[test]
fn a_group_that_names_none_too_often_is_told() {
    let cases = ["", "", "a", "a b"].map(|chosen| {
        let (verdict, routed) = routed(Some("g"), "a", "", chosen);
        (verdict, Evidence::Confusion(routed))
    });
    let Figures::Confusion(figures) = fold(cases) else { panic!("another kind") };
    let told: Vec<&str> = figures.notices.iter().map(|it| it.code).collect();
    assert_eq!(told, ["several-chosen", "none-chosen"]);
}

fn round(first: Condition, points: &[(f64, u8, u8)]) -> Round {
    let criteria: Vec<CriterionScore> = points
        .iter()
        .zip(["x", "y", "z"])
        .map(|((weight, more, less), name)| CriterionScore {
            name: name.to_owned(),
            weight: *weight,
            more: *more,
            less: *less,
            reason: String::new(),
        })
        .collect();
    let result = Round::scores(&criteria).result();
    Round { shown_first: first, attempts: 1, criteria, said: Some(Win::Win), result }
}

fn compared(skill: &str, duels: Vec<Duel>) -> Compared {
    let size = Size { tier: Tier::Small, full: 100, summary: 10, companions: 0 };
    let judge = JudgedBy { backend: "judge".to_owned(), model: None, own_answers: false };
    Compared { skill: skill.to_owned(), size, judge, duels }
}

fn helps(rounds: Vec<Round>) -> Duel {
    Duel::new(Pair::HELPS, rounds, None)
}

#[test]
fn effectiveness_weighs_criteria_and_counts_ties_against() {
    let full = Condition::Full;
    let none = Condition::Baseline;
    let duels = [
        // 0.5 * 5 + 0.5 * 3 = 4 against 2.5: better by 1.5.
        vec![helps(vec![round(full, &[(0.5, 5, 2), (0.5, 3, 3)])])],
        // 3 against 3: a tie, though the judge said otherwise.
        vec![helps(vec![round(none, &[(0.5, 4, 2), (0.5, 2, 4)])])],
        // 2 against 4: worse by 2.
        vec![helps(vec![round(none, &[(0.5, 2, 4), (0.5, 2, 4)])])],
        vec![Duel::new(Pair::HELPS, Vec::new(), Some("no JSON".to_owned()))],
        vec![],
    ];
    let cases = duels.into_iter().enumerate().map(|(at, duels)| {
        let verdict = [Verdict::Pass, Verdict::Fail, Verdict::Fail, Verdict::Error, Verdict::Error];
        (verdict[at], Evidence::Effectiveness(compared("s", duels)))
    });
    let Figures::Effectiveness(figures) = fold(cases) else { panic!("another kind") };
    let stats = &figures.skills["s"].stats;
    assert_eq!(stats, &figures.overall);
    assert_eq!(counts(stats.wins), (1, 3));
    assert_eq!((stats.ties, stats.losses, stats.errors), (1, 1, 2));
    // 1.5, 0 and -2: the mean is -1/6.
    assert!((stats.improvement.unwrap() + 1.0 / 6.0).abs() < 1e-12);
    let squares = [1.5_f64, 0.0, -2.0].iter().map(|it| (it + 1.0 / 6.0).powi(2)).sum::<f64>();
    assert!((stats.deviation.unwrap() - (squares / 2.0).sqrt()).abs() < 1e-12);
    let interval = stats.interval.unwrap();
    assert!(interval.low < -0.2 && interval.high > 0.0);
    // x: 3, 2, -2; y: 0, -2, -2.
    assert!((figures.skills["s"].criteria["x"] - 1.0).abs() < 1e-12);
    assert!((figures.skills["s"].criteria["y"] + 4.0 / 3.0).abs() < 1e-12);
    let judge = &figures.judge;
    assert_eq!((judge.rounds, judge.retried, judge.unreadable), (3, 0, 1));
    // The first and the third were won by the answer that was shown first.
    assert_eq!(counts(judge.first_wins), (2, 2));
    assert_eq!(judge.contradicts_itself, 2);
    let told: Vec<&str> = figures.notices.iter().map(|it| it.code).collect();
    assert_eq!(told, ["rarely-wins"]);
}

#[test]
fn both_orders_are_averaged_and_held_against_each_other() {
    let (full, none) = (Condition::Full, Condition::Baseline);
    let steady = helps(vec![round(full, &[(1.0, 4, 2)]), round(none, &[(1.0, 5, 2)])]);
    let swayed = helps(vec![round(full, &[(1.0, 5, 2)]), round(none, &[(1.0, 2, 4)])]);
    assert_eq!(steady.orders_agree(), Some(true));
    assert_eq!(swayed.orders_agree(), Some(false));
    assert_eq!(swayed.scores.map(|it| (it.more, it.less)), Some((3.5, 3.0)));
    let cases = [steady, swayed.clone(), swayed];
    let mut cases: Vec<_> = cases.map(|it| compared("s", vec![it])).into();
    cases[0].judge.own_answers = true;
    let cases = cases.into_iter().map(|it| (Verdict::Pass, Evidence::Effectiveness(it)));
    let Figures::Effectiveness(figures) = fold(cases) else { panic!("another kind") };
    assert_eq!(counts(figures.judge.orders_agree), (1, 3));
    // Of six rounds the answer shown first won all but the second round of the steady one.
    assert_eq!(counts(figures.judge.first_wins), (5, 6));
    let told: Vec<&str> = figures.notices.iter().map(|it| it.code).collect();
    assert_eq!(told, ["self-judging", "position-bias"]);
}

#[test]
fn sizes_are_compared_pair_by_pair() {
    let duel = |pair: Pair, more: u8, less: u8| {
        Duel::new(pair, vec![round(pair.more, &[(1.0, more, less)])], None)
    };
    let [helps, whole, short, beside] = Pair::SIZES;
    let large = |it: Compared| {
        let size = Size { tier: Tier::Large, full: 20_000, summary: 300, companions: 90 };
        Compared { size, ..it }
    };
    let case = || compared("small", vec![duel(helps, 5, 1), duel(whole, 3, 3), duel(short, 4, 1)]);
    let mut cases: Vec<Compared> = vec![case(), case(), case()];
    let duels = vec![duel(helps, 1, 5), duel(whole, 5, 4), duel(short, 2, 5), duel(beside, 2, 1)];
    cases.push(large(compared("big", duels)));
    let verdict = |it: &Compared| match it.duels[0].result() {
        Some(Win::Win) => Verdict::Pass,
        _ => Verdict::Fail,
    };
    let cases = cases.into_iter().map(|it| (verdict(&it), Evidence::SizeImpact(it)));
    let Figures::SizeImpact(figures) = fold(cases) else { panic!("another kind") };
    assert_eq!(counts(figures.deciding().unwrap().wins), (3, 4));
    assert_eq!(figures.comparisons["full vs summary"].ties, 3);
    assert_eq!(counts(figures.comparisons["companions vs full"].wins), (1, 1));
    assert_eq!(figures.tiers[&Tier::Large]["full vs baseline"].losses, 1);
    assert_eq!(figures.skills["small"].comparisons["full vs baseline"].improvement, Some(4.0));
    let told: Vec<(&str, &str)> =
        figures.notices.iter().map(|it| (it.code, it.about.as_str())).collect();
    assert_eq!(told, [("baseline-wins", "big"), ("size-without-gain", "small")]);
    assert_eq!(Figures::SizeImpact(figures).rate(Rate::Win).map(counts), Some((3, 4)));
}

#[test]
fn evidence_survives_being_written_down() {
    let criteria = [(0.1 + 0.2, 5, 1), (1e-7, 1, 5), (0.7, 3, 3)];
    let duel =
        helps(vec![round(Condition::Full, &criteria), round(Condition::Baseline, &criteria)]);
    let evidence = Evidence::SizeImpact(compared("s", vec![duel]));
    let text = serde_json::to_string(&evidence).unwrap();
    assert_eq!(Evidence::parse(&text), Some(evidence));
    let (_, routed) = routed(Some("g"), "a", "b", "c x");
    let evidence = Evidence::Confusion(routed);
    assert_eq!(Evidence::parse(&serde_json::to_string(&evidence).unwrap()), Some(evidence));
    assert_eq!(Evidence::parse("{}"), None);
}

#[test]
fn figures_have_the_rates_that_gates_may_name() {
    let compared = CompareStats::default();
    let comparisons = [(Pair::HELPS.to_string(), compared)].into();
    let all = [
        (RunnerKind::Activation, Figures::Activation(Activation::default())),
        (RunnerKind::Confusion, Figures::Confusion(Confusion::default())),
        (RunnerKind::Effectiveness, Figures::Effectiveness(Effectiveness::default())),
        (
            RunnerKind::SizeImpact,
            Figures::SizeImpact(SizeImpact { comparisons, ..SizeImpact::default() }),
        ),
        (RunnerKind::Program, Figures::Program(Program::default())),
        (RunnerKind::Command, Figures::Command(Detectors::default())),
    ];
    for (kind, figures) in all {
        for rate in Rate::ALL {
            let may_name = kind.spec().rates.contains(&rate);
            assert_eq!(figures.rate(rate).is_some(), may_name, "{kind} {}", rate.as_str());
        }
    }
}
