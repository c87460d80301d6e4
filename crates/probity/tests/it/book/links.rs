//! Links from page to page, and to places on a page.

use std::{collections::BTreeMap, fs, path::Path};

use super::{page::Page, root, site};

/// What is linked to from elsewhere than the site.
const OTHERS: [&str; 5] = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "crates/probity-grade/README.md",
    "crates/probity-shell/README.md",
];

/// A path without `.` and `..`.
fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn broken(page: &Page, pages: &BTreeMap<String, Page>) -> Vec<String> {
    let folder = Path::new(&page.name).parent().unwrap().to_str().unwrap();
    let mut wrong = Vec::new();
    for link in &page.links {
        let target = &link.target;
        if target.starts_with("https://") {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let whole = if path.is_empty() { page.name.clone() } else { format!("{folder}/{path}") };
        let whole = clean(&whole).unwrap_or_default();
        let trouble = if page.name.starts_with("docs/") && !whole.starts_with("docs/") {
            Some("leads out of the site; name the file in backticks")
        } else if whole.is_empty() || !(pages.contains_key(&whole) || root().join(&whole).exists())
        {
            Some("leads to no file")
        } else if anchor.is_empty() {
            None
        } else {
            let there = pages.get(&whole);
            let found = there.is_some_and(|it| it.headings.iter().any(|it| it.anchor == anchor));
            (!found).then_some("leads to no heading")
        };
        if let Some(trouble) = trouble {
            wrong.push(format!("{}:{}: `{target}` {trouble}", page.name, link.line));
        }
    }
    wrong
}

fn all() -> BTreeMap<String, Page> {
    let names = site().into_iter().chain(OTHERS.map(ToOwned::to_owned));
    names
        .filter(|it| fs::exists(root().join(it)).unwrap())
        .map(|it| (it.clone(), Page::read(&it)))
        .collect()
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let pages = all();
    let wrong: Vec<String> = pages.values().flat_map(|it| broken(it, &pages)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count: usize = pages.values().map(|it| it.links.len()).sum();
    assert!(count > 300, "only {count} links were found");
}

#[test]
fn a_broken_link_is_noticed() {
    let mut pages = all();
    let text = "# Title\n\n[a](running.md) [b](running.md#dry-runs) [c](#title) `[d](none.md)` \
                [e](none.md) [f](running.md#none) [g](#none) [h](../Cargo.toml) [i](../../../x)\n";
    pages.insert("docs/x.md".to_owned(), Page::parse("docs/x.md", text));
    let wrong = broken(&pages["docs/x.md"], &pages);
    let named: Vec<&str> = wrong.iter().filter_map(|it| it.split('`').nth(1)).collect();
    assert_eq!(named, ["none.md", "running.md#none", "#none", "../Cargo.toml", "../../../x"]);
}
