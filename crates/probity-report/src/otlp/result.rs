//! The span of a result, with what its checks came to.

use probity_core::{
    case::Category,
    classification::Verdict,
    record::{CaseRecord, FailedAttempt, Lane},
    score::Score,
    view::RunView,
};

use super::{
    Options, Traces,
    question::Question,
    span::{Attributes, Event, Ids, Span, SpanKind, Status},
};

/// A result, and how it is told of.
pub(super) struct Told<'a> {
    pub(super) run: &'a RunView,
    pub(super) lane: &'a Lane,
    pub(super) case: &'a CaseRecord,
    pub(super) options: Options,
}

impl<'a> Told<'a> {
    /// Its span after those of its questions.
    pub(super) fn spans(&self, root: Ids) -> Vec<Span> {
        let key = self.lane.key().to_string();
        let repeat = self.case.repeat.to_string();
        let names = [self.run.run_id.as_str(), &key, &self.case.case_id, &repeat];
        let mut ids = Ids::new(&names);
        if self.options.traces == Traces::Run {
            ids.trace = root.trace;
        }
        let mut spans = Vec::new();
        for (at, question) in self.questions().iter().enumerate() {
            let [run, lane, case, repeat] = names;
            let own = Ids::new(&[run, lane, case, repeat, &at.to_string()]);
            spans.push(question.span(self, ids, own.span));
        }
        spans.push(self.span(ids, root));
        spans
    }

    pub(super) fn ended_ms(&self) -> i64 {
        self.case.started_ms.saturating_add_unsigned(self.case.elapsed_ms)
    }

    /// A name of the conversation that no other result has.
    pub(super) fn conversation_id(&self) -> String {
        let Self { run, lane, case, .. } = self;
        format!("{}/{}/{}/{}", run.run_id, lane.key(), case.case_id, case.repeat)
    }

    /// The kind of a backend, as far as the run says.
    pub(super) fn kind_of(&self, backend: &str) -> Option<&'a str> {
        let lane = self.run.lanes.iter().map(|it| &it.lane).find(|it| it.backend == backend);
        lane.map(|it| it.backend_kind.as_str())
    }

    fn span(&self, ids: Ids, root: Ids) -> Span {
        let Self { run, lane, case, options } = self;
        let told = |text: Option<String>| options.texts.told(text);
        let attributes = Attributes::default()
            .with("openinference.span.kind", "CHAIN")
            .with("session.id", run.run_id.as_str())
            .with("probity.run.id", run.run_id.as_str())
            .with("probity.runner", lane.runner.as_str())
            .maybe("probity.variant", lane.variant.as_deref())
            .with("probity.backend", lane.backend.as_str())
            .with("probity.case.id", case.case_id.as_str())
            .with("probity.repeat", case.repeat)
            .maybe("probity.category", case.case.category.as_ref().map(Category::as_str))
            .list("tag.tags", case.case.tags.iter().map(String::as_str))
            .with("probity.class", case.class.as_str())
            .with("probity.verdict", case.verdict.as_str())
            .with("probity.source", case.source.as_str())
            .maybe("probity.worker", case.worker.as_deref())
            .maybe("probity.cost_usd", case.cost_usd)
            .maybe("probity.reason", told(self.why()))
            .maybe("input.value", told(Some(case.request.shown().into_owned())))
            .maybe("output.value", told(case.reply.clone()))
            .maybe("error.type", case.error.as_ref().map(|it| it.kind.as_str()));
        Span {
            ids,
            parent: (options.traces == Traces::Run).then_some(root.span),
            name: format!("case {}", case.case_id),
            kind: SpanKind::Internal,
            time: (case.started_ms, self.ended_ms()),
            attributes,
            events: self.events(),
            link: (options.traces == Traces::Case).then_some(root),
            status: match case.verdict {
                Verdict::Error => Status::Error(told(self.why())),
                Verdict::Pass | Verdict::Fail | Verdict::Undecided => Status::Unset,
            },
        }
    }

    /// Why it did not pass.
    fn why(&self) -> Option<String> {
        match self.case.verdict {
            Verdict::Pass => None,
            Verdict::Fail | Verdict::Error | Verdict::Undecided => Some(self.case.why()),
        }
    }

    /// What the checks came to, and the calls that failed.
    fn events(&self) -> Vec<Event> {
        let scores = self.case.classification.scores.iter().map(|it| self.score(it));
        let failures = self.case.failures.iter().map(|it| self.failure(it));
        scores.chain([self.verdict()]).chain(failures).collect()
    }

    fn score(&self, score: &Score) -> Event {
        let reason = self.options.texts.told(score.reason.as_deref());
        let attributes = Attributes::default()
            .with("gen_ai.evaluation.name", &*score.name)
            .maybe("gen_ai.evaluation.score.value", score.value)
            .with("gen_ai.evaluation.score.label", if score.passed { "pass" } else { "fail" })
            .maybe("gen_ai.evaluation.explanation", reason);
        self.evaluated(attributes)
    }

    fn verdict(&self) -> Event {
        let value = match self.case.verdict {
            Verdict::Pass => Some(1.0),
            Verdict::Fail => Some(0.0),
            Verdict::Error | Verdict::Undecided => None,
        };
        let attributes = Attributes::default()
            .with("gen_ai.evaluation.name", "verdict")
            .maybe("gen_ai.evaluation.score.value", value)
            .with("gen_ai.evaluation.score.label", self.case.verdict.as_str())
            .maybe("gen_ai.evaluation.explanation", self.options.texts.told(self.why()));
        self.evaluated(attributes)
    }

    fn evaluated(&self, attributes: Attributes) -> Event {
        Event { name: "gen_ai.evaluation.result", at_ms: self.ended_ms(), attributes }
    }

    fn failure(&self, failed: &FailedAttempt) -> Event {
        let attributes = Attributes::default()
            .with("error.type", failed.error.kind.as_str())
            .with("probity.attempt", failed.attempt)
            .with("probity.latency_ms", failed.latency_ms)
            .maybe("probity.worker", failed.worker.as_deref())
            .maybe("http.response.status_code", failed.error.status.map(u32::from));
        // When each of them failed is not recorded.
        Event { name: "probity.attempt.failed", at_ms: self.case.started_ms, attributes }
    }

    /// The questions of the result. When each of several was asked is not recorded: they follow each other.
    fn questions(&self) -> Vec<Question<'a>> {
        let Self { lane, case, .. } = self;
        if case.asked.is_empty() {
            let to = self.ended_ms();
            let from = to.saturating_sub_unsigned(case.latency_ms).max(case.started_ms);
            return vec![Question::of_case(lane, case, (from, to))];
        }
        let mut from = case.started_ms;
        let mut questions = Vec::new();
        for asked in &case.asked {
            let to = from.saturating_add_unsigned(asked.latency_ms).min(self.ended_ms()).max(from);
            questions.push(Question::of_asked(asked, (from, to)));
            from = to;
        }
        questions
    }
}
