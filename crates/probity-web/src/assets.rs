//! Styles and scripts, which are part of the program.

use probity_report::{compare, html};

/// A file that pages refer to.
#[derive(Debug)]
pub(crate) struct Asset {
    name: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static str,
}

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// All of them. The first two are the styles of the HTML report and of comparisons.
const ASSETS: [Asset; 6] = [
    Asset { name: "report.css", content_type: CSS, content: html::STYLE },
    Asset { name: "compare.css", content_type: CSS, content: compare::page::STYLE },
    Asset { name: "web.css", content_type: CSS, content: include_str!("../assets/web.css") },
    Asset { name: "people.css", content_type: CSS, content: include_str!("../assets/people.css") },
    Asset { name: "web.js", content_type: JS, content: include_str!("../assets/web.js") },
    Asset { name: "live.js", content_type: JS, content: include_str!("../assets/live.js") },
];

pub(crate) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|it| it.name == name)
}
