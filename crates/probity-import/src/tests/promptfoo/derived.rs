//! Metrics that are derived from others.

use super::*;

fn told(config: &str) -> String {
    let suite = suite(config, &[]);
    let from = |line: &&str| *line != "[derived]";
    let table: Vec<&str> = suite.lines().skip_while(from).take_while(|it| !it.is_empty()).collect();
    let notes =
        suite.lines().filter(|it| it.starts_with("lost") || it.starts_with(char::is_numeric));
    notes.chain(table).collect::<Vec<_>>().join("\n")
}

#[test]
fn sums_of_named_scores_become_expressions_of_ours() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
derivedMetrics:
  - { name: precision, value: tp / (tp + fp) }
  - { name: twice, value: 2 * precision }
  - { name: MAPE, value: APE / __count }
  - { name: bounded, value: 'min(1, tone^2) > 0.5 ? 1 : 0' }
tests: [{ vars: { q: a }, assert: [{ type: contains, value: a, metric: tp }] }]
";
    insta::assert_snapshot!(told(config), @r#"
    [derived]
    precision = "sum.tp / (sum.tp + sum.fp)"
    twice = "2 * derived.precision"
    MAPE = "sum.APE / results"
    bounded = "min(1, sum.tone ^ 2) > 0.5 ? 1 : 0"
    "#);
}

#[test]
fn weights_count_and_those_that_are_only_reported_are_noted() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
derivedMetrics: [{ name: both, value: a + b }]
tests:
  - vars: { q: a }
    assert:
      - { type: contains, value: a, metric: a, weight: 2 }
      - { type: contains, value: a, metric: b, weight: 0 }
";
    insta::assert_snapshot!(told(config), @r#"
    3: the scores of `b` have the weight 0: promptfoo's documentation sums them for derived metrics, as is done here, and its program takes each for 0 ()
    [derived]
    both = "weighted.a + weighted.b"
    "#);
}

#[test]
fn what_is_no_expression_is_named() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
derivedMetrics:
  - { name: code, value: 'function(scores) { return scores.a; }' }
  - { name: matrix, value: 'det([a, b])' }
  - { name: implicit, value: '2 a' }
  - { name: nothing }
tests: [{ vars: { q: a } }]
";
    insta::assert_snapshot!(told(config), @r#"
    4: the derived metric `code` is a function, which promptfoo does not run from a file like this: it is 0 there (write it as an expression under [derived], see docs/derived.md)
    lost 5: the derived metric `matrix`: `[` means nothing here (at byte 4) (write it as an expression under [derived], see docs/derived.md)
    lost 6: the derived metric `implicit`: `a` is not expected here; write `*` to multiply (at byte 2) (write it as an expression under [derived], see docs/derived.md)
    lost 7: a derived metric without `name` or `value` (give it both)
    "#);
}
