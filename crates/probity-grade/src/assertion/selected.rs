//! Assertions that compare the answers of all lanes.

use std::collections::BTreeMap;

use probity_core::criteria::{Assertion, AssertionKind};
use serde_json::{Map, Value};

use super::Context as Site;
use crate::{
    check::Test,
    compile::Compiler,
    internal::contest::{By, Contest, Totals},
};

impl Site<'_> {
    /// The best answer, as a judge finds by the value.
    pub(super) fn select_best(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        if self.assertion.threshold.is_some() {
            let message = "`select-best` has no `threshold`: one answer is the best".to_owned();
            return self.problem("threshold", "bad-assertion", message);
        }
        let criteria = self.telling()?;
        self.contest(By::Judge(criteria), compiler)
    }

    /// The answer with the highest score of the other checks.
    pub(super) fn max_score(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let mut totals =
            Totals { is_sum: false, weights: BTreeMap::new(), threshold: self.assertion.threshold };
        match &self.assertion.value {
            None => {}
            Some(Value::Object(fields)) => self.totals(fields, &mut totals)?,
            Some(_) => return self.wrong(FORM),
        }
        if !self.has_other_checks() {
            let message = "`max-score` needs another check that gives the answers a score";
            return self.problem("type", "bad-assertion", message.to_owned());
        }
        self.contest(By::Scores(totals), compiler)
    }

    fn totals(&mut self, fields: &Map<String, Value>, totals: &mut Totals) -> Option<()> {
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("method", Value::String(method)) if method == "average" => totals.is_sum = false,
                ("method", Value::String(method)) if method == "sum" => totals.is_sum = true,
                ("threshold", Value::Number(number)) => totals.threshold = number.as_f64(),
                ("weights", Value::Object(weights)) => {
                    for (kind, weight) in weights {
                        // An assertion may be written in several ways; its score has one name.
                        let kind = AssertionKind::named(kind)
                            .map_or_else(|| kind.clone(), |it| it.name().into_owned());
                        match weight.as_f64().filter(|it| *it >= 0.0) {
                            Some(weight) => totals.weights.insert(kind, weight),
                            None => return self.wrong(FORM),
                        };
                    }
                }
                (_, _) => return self.wrong(FORM),
            }
        }
        Some(())
    }

    fn contest(&mut self, by: By, compiler: &mut Compiler<'_>) -> Option<Test> {
        if compiler.turn().is_some() {
            let kind = self.assertion.kind;
            let message = format!("`{kind}` is about the last answer: it stands in the case");
            return self.problem("type", "bad-assertion", message);
        }
        let contest = Contest { look: self.look(), by };
        Some(Test::Selected(compiler.contest(contest)))
    }

    /// Whether something else gives the answer a score.
    fn has_other_checks(&self) -> bool {
        fn any(assertions: &[Assertion]) -> bool {
            assertions.iter().any(|it| match it.members.as_slice() {
                [] => !it.kind.test.compares_lanes(),
                members => any(members),
            })
        }
        let case = self.place.case;
        let criteria = &case.criteria;
        any(&criteria.assertions)
            || criteria.expected_response.is_some()
            || criteria.expected_format.is_some()
            || criteria.schema.is_some()
            || case.conversation.turns.iter().any(|it| any(&it.criteria.assertions))
    }
}

const FORM: &str =
    "left out, or a table with `method` (`average` or `sum`), `weights` and `threshold`";
