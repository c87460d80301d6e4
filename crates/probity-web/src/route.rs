//! Which address leads to what.

use std::sync::Arc;

use hyper::StatusCode;
use maud::Markup;

use crate::{
    address::decoded,
    api, assets,
    edit::Editor,
    filter::{CaseFilter, GridFilter, RunFilter},
    live, load,
    pages::{self, Part},
    problem::Problem,
    query::Query,
    reply::{self, Response},
    site::Site,
    suites,
};

/// Whether answers are read by programs.
pub(crate) fn is_for_programs(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Answers a request that is allowed.
pub(crate) async fn answer(
    site: &Arc<Site>,
    path: &str,
    query: Option<&str>,
    editor: Option<&Editor>,
) -> Result<Response, Problem> {
    let parts: Option<Vec<String>> = path.trim_start_matches('/').split('/').map(decoded).collect();
    let parts = parts.ok_or_else(|| Problem::bad_request("the address is not UTF-8 text"))?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["assets", name] => asset(name),
        // Browsers ask for it unbidden.
        ["favicon.ico"] => Ok(reply::whole(StatusCode::NO_CONTENT, "image/x-icon", "")),
        ["metrics"] => {
            Query::parse(query)?.finish()?;
            let text = site.read(crate::metrics::text).await?;
            Ok(reply::whole(StatusCode::OK, crate::metrics::CONTENT_TYPE, text))
        }
        ["api", "v1", rest @ ..] => api::answer(site, rest, Query::parse(query)?).await,
        parts => page(site, parts, Query::parse(query)?, editor).await,
    }
}

fn asset(name: &str) -> Result<Response, Problem> {
    let asset = assets::find(name).ok_or_else(nothing)?;
    Ok(reply::whole(StatusCode::OK, asset.content_type, asset.content))
}

fn nothing() -> Problem {
    Problem::not_found("there is nothing at this address").hint("the list of runs is at /")
}

async fn page(
    site: &Arc<Site>,
    parts: &[&str],
    mut query: Query,
    editor: Option<&Editor>,
) -> Result<Response, Problem> {
    match *parts {
        [""] => {
            let filter = RunFilter::read(&mut query)?;
            query.finish()?;
            let read = site.read(move |site, reader| pages::runs::make(site, reader, &filter));
            or_before_the_first(site, Part::Runs, read.await)
        }
        ["runs", run] => {
            query.finish()?;
            let run = run.to_owned();
            let read = site.read(move |site, reader| pages::run::make(site, reader, &run));
            read.await.map(reply::page)
        }
        ["runs", run, "live"] => {
            query.finish()?;
            live::follow(site, run, live::Form::Html).await
        }
        ["runs", run, "cases"] => {
            let filter = CaseFilter::read(&mut query)?;
            query.finish()?;
            let run = run.to_owned();
            let read =
                site.read(move |site, reader| pages::cases::make(site, reader, &run, &filter));
            read.await.map(reply::page)
        }
        ["runs", run, "cases", id] => {
            let which = pages::case::Which::read(&mut query)?;
            query.finish()?;
            let (run, id, editor) = (run.to_owned(), id.to_owned(), editor.cloned());
            let read = site.read(move |_, reader| {
                pages::case::make(reader, &run, &id, which, editor.as_ref())
            });
            read.await.map(reply::page)
        }
        ["runs", run, "grid"] => {
            let filter = GridFilter::read(&mut query)?;
            query.finish()?;
            let run = run.to_owned();
            let read = site.read(move |_, reader| {
                Ok(pages::grid::render(&load::grid(reader, &run, &filter)?, &filter))
            });
            read.await.map(reply::page)
        }
        ["compare"] => {
            let names = compared_runs(&mut query)?;
            query.finish()?;
            let names_nothing = names.is_empty();
            let read = site.read(move |site, reader| pages::compare::make(site, reader, &names));
            match names_nothing {
                true => or_before_the_first(site, Part::Compare, read.await),
                false => read.await.map(reply::page),
            }
        }
        ["trends"] => {
            let name = query.take("suite");
            let most = query.take_limit(50, load::MOST_POINTS)?;
            query.finish()?;
            let read = site.read(move |site, reader| pages::trends::make(site, reader, name, most));
            or_before_the_first(site, Part::Trends, read.await)
        }
        ["suites"] => {
            query.finish()?;
            let listed = suites::listed(site).await?;
            let states = suites::states(site, &listed, suites::PAGE_PATIENCE).await?;
            Ok(reply::page(pages::suites::render(&listed, &states)))
        }
        ["suites", file] => {
            query.finish()?;
            let found = suites::find(site, file).await?;
            let state = suites::state(site, &found, suites::PAGE_PATIENCE).await?;
            Ok(reply::page(pages::suite::render(&found, &state)))
        }
        ["doctor"] => doctor(site, query).await,
        _ => Err(nothing()),
    }
}

/// A page, or what is shown before there is a store.
fn or_before_the_first(
    site: &Site,
    part: Part,
    page: Result<Markup, Problem>,
) -> Result<Response, Problem> {
    match page {
        Err(problem) if problem.code == "no_store" => {
            Ok(reply::page(pages::runs::before_the_first(part, &site.options.store)))
        }
        page => page.map(reply::page),
    }
}

async fn doctor(site: &Arc<Site>, mut query: Query) -> Result<Response, Problem> {
    let asked = query.take("suite");
    query.finish()?;
    let listed = suites::listed(site).await?;
    match suites::chosen(&listed, asked.as_deref())? {
        None => Ok(reply::page(pages::doctor::without_suite())),
        Some((file, all)) => {
            let examined = suites::examined(site, file.to_owned()).await?;
            Ok(reply::page(pages::doctor::render(&all, file, &examined)))
        }
    }
}

/// The runs that are to be compared: a list, or the ticked boxes of the list of runs, where the latest is the first.
pub(crate) fn compared_runs(query: &mut Query) -> Result<Vec<String>, Problem> {
    let names = query.take("runs").unwrap_or_default();
    let names = names.split(',').filter(|it| !it.is_empty()).map(ToOwned::to_owned);
    let names: Vec<String> = names.chain(query.take_runs().into_iter().rev()).collect();
    if names.len() > load::MOST_COMPARED {
        let message = format!("no more than {} runs are compared at once", load::MOST_COMPARED);
        return Err(Problem::bad_request(message));
    }
    Ok(names)
}
