//! What went wrong, for people.

use hyper::StatusCode;
use maud::{Markup, html};
use probity_core::visible::safe;

use super::{Part, page, parts::empty};
use crate::problem::Problem;

pub(crate) fn render(problem: &Problem) -> Markup {
    let title = match problem.status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::BAD_REQUEST => "This cannot be done",
        StatusCode::CONFLICT => "Something has changed meanwhile",
        StatusCode::SERVICE_UNAVAILABLE => "Not now",
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "Not allowed",
        _ => "Something went wrong",
    };
    let content = html! {
        p dir="auto" { (safe(&problem.message)) }
        @if let Some(hint) = &problem.hint { p.note { (safe(hint)) } }
        p { a href="/" { "All runs" } }
    };
    page(Part::None, title, &empty(title, &content))
}
