//! How a suite has done over time.

use std::fmt::Write as _;

use probity_core::{
    dollars::dollars, evaluation::time, gate::percent, metrics::share, view::LaneReport,
};
use serde_json::{Value, json};

use crate::{
    json::figures,
    plain::one_line,
    text::{millis, shown_interval},
};

/// One lane over several runs, the oldest first.
#[derive(Clone, Debug)]
pub struct Trend {
    /// What the lane is called.
    pub title: String,
    /// Its runs.
    pub points: Vec<Point>,
}

/// One run of a trend.
#[derive(Clone, Debug)]
pub struct Point {
    /// The run.
    pub run: String,
    /// When it began.
    pub started_ms: i64,
    /// Its figures.
    pub report: LaneReport,
}

impl Point {
    /// What keeps a run from being like the one before it.
    pub fn remarks(&self, before: Option<&Self>) -> Vec<&'static str> {
        let lane = &self.report.lane;
        let differs =
            |of: fn(&Self) -> Option<&str>| before.is_some_and(|before| of(before) != of(self));
        let mut remarks = Vec::new();
        if !self.report.is_complete() {
            remarks.push("incomplete");
        }
        if differs(|it| Some(&it.report.lane.dataset_digest)) {
            remarks.push("other dataset");
        }
        if differs(|it| it.report.lane.model.as_deref()) {
            remarks.push("other model");
        }
        if lane.replayed {
            remarks.push("replayed");
        }
        if lane.imported.is_some() {
            remarks.push("imported");
        }
        remarks
    }
}

/// For a terminal.
pub fn text(trends: &[Trend]) -> String {
    let mut text = String::new();
    for (at, Trend { title, points }) in trends.iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}  {}", one_line(title, 60), sparkline(points));
        text.push_str(
            "run     began                  passed  95 %           error    p95      cost\n",
        );
        let mut before = None;
        for point in points {
            let metrics = &point.report.metrics;
            let verdicts = metrics.all.verdicts;
            let none = || "-".to_owned();
            let _ = writeln!(
                text,
                "{}  {}  {:>7}  {:<13} {:>6}  {:>6}  {:>8}  {}",
                point.run,
                time(point.started_ms),
                percent(verdicts.pass, verdicts.judged()),
                metrics.interval.map_or_else(none, shown_interval),
                verdicts.error,
                metrics.latency.map_or_else(none, |it| millis(it.p95)),
                if metrics.priced > 0 { dollars(metrics.cost_usd) } else { none() },
                point.remarks(before).join(", ")
            );
            before = Some(point);
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// For programs.
pub fn json(trends: &[Trend]) -> Value {
    let point = |point: &Point, before: Option<&Point>| {
        let lane = &point.report.lane;
        let mut value = figures(&point.report.metrics);
        value.insert("run".to_owned(), json!(point.run));
        value.insert("started".to_owned(), json!(time(point.started_ms)));
        value.insert("model".to_owned(), json!(lane.model));
        value.insert("dataset_digest".to_owned(), json!(lane.dataset_digest));
        value.insert("remarks".to_owned(), json!(point.remarks(before)));
        Value::Object(value)
    };
    let trend = |Trend { title, points }: &Trend| {
        let before = std::iter::once(None).chain(points.iter().map(Some));
        let points: Vec<Value> =
            points.iter().zip(before).map(|(it, before)| point(it, before)).collect();
        json!({ "title": title, "points": points })
    };
    Value::Array(trends.iter().map(trend).collect())
}

/// The rates as a row of bars from 0 to 100 %.
fn sparkline(points: &[Point]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |point: &Point| {
        let verdicts = point.report.metrics.all.verdicts;
        let Some(rate) = share(verdicts.pass, verdicts.judged()) else { return ' ' };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
        let place = (rate * 7.0).round() as usize;
        BARS[place.min(7)]
    };
    points.iter().map(bar).collect()
}
