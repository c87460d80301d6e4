use proptest::prelude::*;

use super::*;
use crate::{
    classification::{Class, Counts},
    metrics::{ScoreFigures, ScoreSummary, ScoreTotal, Slice, Verdicts},
};

fn metrics(derivations: &[(&str, &str)]) -> Metrics {
    let score = |count: u64, plain: f64, weighted: f64| ScoreFigures {
        summary: ScoreSummary { count, passed: 1, mean: Some(0.25), ..ScoreSummary::default() },
        total: ScoreTotal { plain, weighted },
        ..ScoreFigures::default()
    };
    let mut classes = Counts::default();
    (0..4).for_each(|_| classes.add(Class::Pass));
    let verdicts = Verdicts { pass: 3, fail: 1, ..Verdicts::default() };
    let derivation = |(name, text): &(&str, &str)| Derivation {
        name: (*name).to_owned(),
        expression: text.parse().unwrap(),
    };
    Metrics {
        all: Slice { verdicts, classes, unjudged: 0 },
        scores: [
            ("tp".to_owned(), score(4, 6.0, 12.0)),
            ("fp".to_owned(), score(4, 2.0, 2.0)),
            ("tone of voice".to_owned(), score(2, 1.5, 1.5)),
        ]
        .into(),
        derivations: derivations.iter().map(derivation).collect(),
        ..Metrics::default()
    }
}

#[track_caller]
fn check(text: &str, expected: f64) {
    let figures = metrics(&[("x", text)]).derived();
    assert_eq!(figures[0].value, Ok(expected), "{text}");
}

#[track_caller]
fn has_no_value(text: &str, why: &str) {
    let figures = metrics(&[("x", text)]).derived();
    assert_eq!(figures[0].value, Err(why.to_owned()), "{text}");
}

#[test]
fn expressions_are_reckoned_as_they_are_written() {
    check("1 + 2 * 3 - 4 / 2", 5.0);
    check("2 ^ 3 ^ 2", 512.0);
    check("-2 ^ 2", -4.0);
    check("2 ** -1", 0.5);
    check("(1 + 2) * 3", 9.0);
    check("-7 % 3", 2.0);
    check("1 < 2 and not (2 <= 1)", 1.0);
    check("1 == 2 ? 10 : 0 or 1 ? 20 : 30", 20.0);
    check("max(1, 5, 3) + min(2, 1) + round(2.26, 1) * 10 + median(1, 9, 2)", 31.0);
    check("log(8, 2) + sqrt(16) + abs(-1) + sign(-3) + mod(7, 4)", 10.0);
    check("sum(1, 2) + mean(1, 3) + prod(2, 3) + std(1, 3) ^ 2", 13.0);
    check(".5 + 1e-1 + 1E+1", 10.6);
}

#[test]
fn they_name_scores_and_what_gates_are_on() {
    check("2 * sum.tp / (2 * sum.tp + sum.fp)", 12.0 / 14.0);
    check("score.tp", 0.25);
    check("weighted.tp / count.tp + passed.tp", 4.0);
    check("sum.\"tone of voice\" / results", 0.375);
    check("pass_rate * 100 + failed", 76.0);
}

#[test]
fn later_ones_see_earlier_ones() {
    let figures = metrics(&[("half", "sum.tp / 2"), ("whole", "derived.half * 2")]).derived();
    assert_eq!(figures[1].value, Ok(6.0));
    let figures = metrics(&[("a", "1 / 0"), ("b", "derived.a")]).derived();
    assert_eq!(figures[1].value, Err("`derived.a` has no value: it divides by 0".to_owned()));
}

#[test]
fn what_has_no_value_says_why() {
    has_no_value("sum.tpp", "no result has a score `tpp`");
    has_no_value("1 / (sum.fp - 2)", "it divides by 0");
    has_no_value("sqrt(-1)", "it is no finite number");
    has_no_value("10 ^ 400", "it is no finite number");
    has_no_value("latency_p95", "`latency_p95` has no value");
}

#[test]
fn what_is_no_expression_is_refused_with_its_place() {
    let refused = |text: &str| text.parse::<Expression>().unwrap_err().to_string();
    assert_eq!(refused("1 +"), "something is missing at the end (at byte 3)");
    assert_eq!(
        refused("2 pass_rate"),
        "`pass_rate` is not expected here; write `*` to multiply (at byte 2)"
    );
    assert_eq!(
        refused("1 + tp"),
        "there is no figure `tp`; a named score is `sum.tp` or `score.tp` (at byte 4)"
    );
    assert_eq!(refused("(1"), "`)` is missing (at byte 2)");
    assert_eq!(
        refused("1 < 2 < 3"),
        "comparisons do not follow each other; join them with `and` (at byte 6)"
    );
    assert_eq!(refused("max()"), "`max` takes 1 or more arguments (at byte 5)");
    assert_eq!(
        refused("a.b"),
        "only `score`, `sum`, `weighted`, `count`, `passed` and `derived` have a `.` behind them (at byte 0)"
    );
    assert!(refused(&"(".repeat(100)).contains("64 levels deep"));
    assert!(refused(&"1+".repeat(3000)).contains("4096 bytes"));
    assert!(refused("system(1)").contains("there is no function `system`"));
}

#[test]
fn numbers_are_shown_briefly() {
    let all = [0.0, 1.0, 0.857_142_8, 1234.5, 0.000_012_3, -0.5, -0.000_000_1].map(shown);
    assert_eq!(all, ["0", "1", "0.8571", "1234.5", "1.230e-5", "-0.5", "-1.000e-7"]);
}

#[test]
fn what_may_be_written_can_be_kept() {
    let chain = |part: &str| format!("{}1", part.repeat(4095 / part.len()));
    let signs = |sign: &str| format!("{}1", sign.repeat(64));
    let numbers = format!("{}1", "1e-300 * 1e15 * ".repeat(200));
    for text in [chain("1+"), chain("1e308+"), chain("1e15-"), signs("-"), signs("not "), numbers] {
        let expression: Expression = text.parse().unwrap();
        let kept = serde_json::to_string(&expression).unwrap();
        assert_eq!(serde_json::from_str::<Expression>(&kept).unwrap(), expression, "{kept}");
    }
}

fn any_expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0_u32..100).prop_map(|it| it.to_string()),
        "[a-z]{1,3}".prop_map(|it| format!("sum.{it}")),
        Just("score.\"a \\\" b\"".to_owned()),
        Just("results".to_owned()),
        Just("pass_rate".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operators = "[-+*/%^<>]|==|!=|<=|>=| and | or ";
        prop_oneof![
            (inner.clone(), operators, inner.clone())
                .prop_map(|(a, o, b)| format!("({a}){o}({b})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("not ({a})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("(({a}) ? ({b}) : ({c}))")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("max({a}, {b})")),
        ]
    })
}

#[test]
fn scores_may_be_called_like_operators() {
    let text = "sum.or + score.and or derived.not";
    let expression: Expression = text.parse().unwrap();
    assert_eq!(expression.named().len(), 3);
    assert_eq!(expression.to_string(), text);
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(text in any_expression()) {
        let expression: Expression = text.parse().unwrap();
        let written = expression.to_string();
        prop_assert_eq!(written.parse::<Expression>().unwrap(), expression, "{}", written);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+*/%^<>=!?:.,()'\"a-c0-9 eE]{0,60}") {
        if let Ok(expression) = text.parse::<Expression>() {
            let mut metrics = metrics(&[]);
            metrics.derivations = vec![Derivation { name: "x".to_owned(), expression }];
            if let Ok(value) = &metrics.derived()[0].value {
                prop_assert!(value.is_finite());
            }
        }
    }
}
