//! What programs get: the same as the pages, as JSON.

use std::sync::Arc;

use hyper::StatusCode;
use probity_core::{
    checkup::Checkup,
    classification::Counts,
    evaluation::{EvaluationResult, time},
    metrics::Verdicts,
    record::{CaseRecord, LaneStatus},
};
use probity_report::{
    compare,
    json::{case_value, sorted},
    trend,
};
use probity_store::{LaneView, Reader, RunRow, Standing};
use serde_json::{Value, json};

use crate::{
    filter::{CaseFilter, RunFilter, shown_cursor},
    live, load,
    pages::live::Progress,
    people,
    problem::Problem,
    query::Query,
    reply::{self, Response},
    route::compared_runs,
    site::Site,
    suites::{self, Listed, State},
    survey::Examined,
};

/// The description of all this.
const DOCUMENT: &str = include_str!("../assets/openapi.json");

pub(crate) async fn answer(
    site: &Arc<Site>,
    parts: &[&str],
    mut query: Query,
) -> Result<Response, Problem> {
    let value = match *parts {
        ["openapi.json"] => {
            query.finish()?;
            return Ok(reply::whole(StatusCode::OK, "application/json", DOCUMENT));
        }
        ["runs"] => {
            let filter = RunFilter::read(&mut query)?;
            query.finish()?;
            site.read(move |site, reader| Ok(runs(&load::runs(site, reader, &filter)?))).await
        }
        ["runs", name] => {
            query.finish()?;
            let name = name.to_owned();
            site.read(move |site, reader| run(&load::run(site, reader, &name)?)).await
        }
        ["runs", name, "cases"] => {
            let filter = CaseFilter::read(&mut query)?;
            query.finish()?;
            let name = name.to_owned();
            site.read(move |_, reader| Ok(cases(&load::cases(reader, &name, &filter)?))).await
        }
        ["runs", name, "cases", id] => {
            query.finish()?;
            let (name, id) = (name.to_owned(), id.to_owned());
            let read = site.read(move |_, reader| case(reader, &load::case(reader, &name, &id)?));
            read.await
        }
        ["runs", name, "people"] => {
            query.finish()?;
            let name = name.to_owned();
            let read = site.read(move |site, reader| {
                let run = reader.find(&name)?;
                let said = site.people(reader, &run, &reader.lanes(&run)?)?;
                Ok(said.1.json(&run.run_id))
            });
            read.await
        }
        ["runs", name, "events"] => {
            query.finish()?;
            return live::follow(site, name, live::Form::Json).await;
        }
        ["compare"] => {
            let names = compared_runs(&mut query)?;
            query.finish()?;
            if names.len() < 2 {
                return Err(Problem::bad_request("`runs` names at least two runs: runs=A,B"));
            }
            let compared = move |site: &Site, reader: &_| {
                let compared = load::compared(site, reader, &names)?.with_reasons(reader)?;
                Ok(sorted(compare::json(&compared.comparison)))
            };
            site.read(compared).await
        }
        ["trends"] => {
            let name = query.take("suite");
            let most = query.take_limit(50, load::MOST_POINTS)?;
            query.finish()?;
            let name = name.ok_or_else(|| Problem::bad_request("`suite` is missing"))?;
            let trends = move |site: &Site, reader: &_| {
                Ok(trend::json(&load::trends(site, reader, &name, most)?))
            };
            site.read(trends).await
        }
        ["suites"] => {
            query.finish()?;
            let listed = suites::listed(site).await?;
            let states = suites::states(site, &listed, suites::PAGE_PATIENCE).await?;
            let all: Vec<Value> = listed
                .iter()
                .zip(&states)
                .map(|(suite, state)| listed_suite(suite, state))
                .collect();
            Ok(json!({ "suites": all }))
        }
        ["suites", file] => {
            query.finish()?;
            let listed = suites::find(site, file).await?;
            suite(&listed, &suites::state(site, &listed, suites::PROGRAM_PATIENCE).await?)
        }
        ["doctor"] => {
            let asked = query.take("suite");
            query.finish()?;
            doctor(site, asked.as_deref()).await
        }
        _ => Err(Problem::not_found("there is nothing at this address")
            .hint("/api/v1/openapi.json describes what there is")),
    };
    reply::json(&value?)
}

fn runs(page: &load::Runs) -> Value {
    let runs: Vec<Value> =
        page.runs.iter().map(|(row, lanes, it)| listed(row, lanes, it)).collect();
    json!({ "runs": runs, "next": page.next.map(|it| it.to_string()) })
}

fn listed(row: &RunRow, lanes: &[LaneView], standing: &Standing) -> Value {
    json!({
        "run_id": row.run_id,
        "short": row.short(),
        "suite": row.suite,
        "status": row.status,
        "started": time(row.started_ms),
        "finished": row.finished_ms.map(time),
        "lanes": lanes.iter().map(lane).collect::<Vec<_>>(),
        "verdicts": verdicts(&standing.verdicts),
        "classes": classes(&standing.classes),
        "pass_rate": standing.verdicts.rate(),
        "cost_usd": (standing.priced > 0).then_some(standing.cost_usd),
    })
}

fn lane(view: &LaneView) -> Value {
    let lane = &view.lane;
    json!({
        "title": lane.key().to_string(),
        "runner": lane.runner,
        "variant": lane.variant,
        "backend": lane.backend,
        "model": lane.model,
        "planned": lane.planned,
    })
}

fn run(run: &load::Run) -> Result<Value, Problem> {
    let view = &run.view;
    let evaluations = view.lanes.iter().map(|report| {
        let result = EvaluationResult::of(view, report, Vec::new());
        serde_json::to_value(result).map(sorted)
    });
    let evaluations: Vec<Value> = evaluations
        .collect::<Result<_, _>>()
        .map_err(|error| Problem::internal(error.to_string()))?;
    let mut standing = Standing::default();
    for report in &view.lanes {
        let all = report.metrics.all;
        standing.add(&Standing {
            verdicts: all.verdicts,
            classes: all.classes,
            cost_usd: report.metrics.cost_usd,
            priced: report.metrics.priced,
        });
    }
    let mut value = listed(&run.row, &run.lanes, &standing);
    value["conclusion"] = probity_report::conclusion::Conclusion::of(view).as_str().into();
    value["sentence"] = probity_report::conclusion::sentence(view).into();
    value["evaluations"] = evaluations.into();
    Ok(value)
}

fn cases(cases: &load::Cases) -> Value {
    let rows: Vec<Value> = cases
        .page
        .rows
        .iter()
        .map(|row| {
            let at = cases.chosen[row.lane];
            case_row(at, &cases.lanes[at], &row.record)
        })
        .collect();
    json!({
        "run_id": cases.row.run_id,
        "cases": rows,
        "total": cases.page.total,
        "next": cases.page.next.as_ref().map(shown_cursor),
    })
}

/// What a table shows of a result.
fn case_row(at: usize, view: &LaneView, record: &CaseRecord) -> Value {
    json!({
        "case_id": record.case_id,
        "repeat": record.repeat,
        "lane": at + 1,
        "runner": view.lane.runner,
        "variant": view.lane.variant,
        "backend": view.lane.backend,
        "verdict": record.verdict,
        "class": record.class,
        "reason": record.why(),
        "category": record.case.category,
        "tags": record.case.tags,
        "scores": record.classification.scores,
        "latency_ms": record.latency_ms,
        "tokens": record.usage.total(),
        "cost_usd": record.cost_usd,
    })
}

fn case(reader: &Reader, case: &load::Case) -> Result<Value, Problem> {
    let results = case.results.iter().map(|(at, view, record)| {
        let mut value = case_value(&view.lane, record);
        value["lane"] = (at + 1).into();
        value["people"] = people::json_of(&reader.remarks(view, record)?);
        Ok(value)
    });
    let results: Vec<Value> = results.collect::<Result<_, Problem>>()?;
    Ok(json!({ "run_id": case.row.run_id, "case_id": case.id, "results": results }))
}

fn listed_suite(suite: &Listed, state: &State) -> Value {
    let (state, survey) = match state {
        State::Unnamed => ("unnamed", None),
        State::Gone => ("gone", None),
        State::Reading => ("reading", None),
        State::Read(survey) => ("read", Some(survey)),
    };
    json!({
        "name": suite.name,
        "file": suite.file.as_ref().map(|it| it.display().to_string()),
        "is_here": suite.is_here,
        "runs": suite.runs,
        "latest": suite.latest.as_ref().map(|it| &it.run_id),
        "state": state,
        "cases": survey.map(|it| it.cases()),
        "errors": survey.map(|it| it.errors()),
        "warnings": survey.map(|it| it.warnings()),
    })
}

fn suite(listed: &Listed, state: &State) -> Result<Value, Problem> {
    let survey = match state {
        State::Read(survey) => survey,
        State::Reading => return Err(Problem::too_slow()),
        State::Gone | State::Unnamed => {
            return Err(Problem::not_found("the suite file is not there any more"));
        }
    };
    let mut value = listed_suite(listed, state);
    value["survey"] =
        serde_json::to_value(&**survey).map_err(|error| Problem::internal(error.to_string()))?;
    Ok(value)
}

async fn doctor(site: &Arc<Site>, asked: Option<&str>) -> Result<Value, Problem> {
    let listed = suites::listed(site).await?;
    let Some((file, _)) = suites::chosen(&listed, asked)? else {
        return Err(Problem::not_found("there is no suite here"));
    };
    let (backends, problems, failure) = match suites::examined(site, file.to_owned()).await? {
        Examined::Backends(backends) => (backends, None, None),
        Examined::Unusable(problems) => (Vec::new(), Some(problems), None),
        Examined::Failed(why) => (Vec::new(), None, Some(why)),
    };
    Ok(json!({
        "suite": file.display().to_string(),
        "is_sound": problems.is_none() && failure.is_none() && backends.iter().all(Checkup::is_sound),
        "backends": backends,
        "problems": problems,
        "failure": failure,
    }))
}

fn verdicts(verdicts: &Verdicts) -> Value {
    let Verdicts { pass, fail, error, undecided } = verdicts;
    json!({ "pass": pass, "fail": fail, "error": error, "undecided": undecided })
}

fn classes(counts: &Counts) -> Value {
    Value::Object(counts.to_json())
}

/// How far a run has come.
pub(crate) fn progress(run: &RunRow, progress: &Progress) -> Value {
    let lanes: Vec<Value> = progress
        .lanes
        .iter()
        .map(|it| {
            json!({
                "title": it.view.lane.key().to_string(),
                "planned": it.view.lane.planned,
                "done": it.standing.classes.total(),
                "verdicts": verdicts(&it.standing.verdicts),
                "classes": classes(&it.standing.classes),
                "is_over": it.view.status.is_some(),
                "is_complete": it.view.status.as_ref().is_some_and(LaneStatus::is_complete),
                "told": it.told,
            })
        })
        .collect();
    let failing: Vec<Value> = progress
        .failing
        .iter()
        .map(|it| case_row(it.lane, &progress.lanes[it.lane].view, &it.record))
        .collect();
    let waits: Vec<Value> = progress
        .waits
        .iter()
        .map(|it| {
            json!({
                "backend": progress.lanes[it.lane].view.lane.backend,
                "kind": it.error.kind,
                "message": it.error.message,
                "wait_ms": it.wait_ms,
                "results": it.count,
            })
        })
        .collect();
    json!({
        "run_id": run.run_id,
        "status": run.status,
        "lanes": lanes,
        "last_failures": failing,
        "waits": waits,
        "next": progress.next,
    })
}
