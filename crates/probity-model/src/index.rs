//! The package index: where pip would look for a package.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    path::PathBuf,
};

use percent_encoding::percent_decode_str;
use probity_http::Url;

/// Where packages are when nothing else is said.
const USUAL: &str = "https://pypi.org/simple";

/// The address of the index, as pip finds it: its variable, else its files, else the public one.
pub(crate) fn address(variables: &BTreeMap<OsString, OsString>) -> String {
    let set = |name: &str| {
        let value = variables.get(OsStr::new(name))?.to_str()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let in_files =
        || files(variables).into_iter().find_map(|it| index_url(&fs::read_to_string(it).ok()?));
    set("PIP_INDEX_URL").or_else(in_files).unwrap_or_else(|| USUAL.to_owned())
}

/// Pip's own files, the strongest first.
fn files(variables: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let place = |name: &str, rest: &str| {
        let value = variables.get(OsStr::new(name)).filter(|it| !it.is_empty())?;
        Some(PathBuf::from(value).join(rest))
    };
    let named = variables.get(OsStr::new("PIP_CONFIG_FILE")).map(PathBuf::from);
    let others = [
        named,
        place("VIRTUAL_ENV", "pip.conf"),
        place("XDG_CONFIG_HOME", "pip/pip.conf").or_else(|| place("HOME", ".config/pip/pip.conf")),
        place("HOME", ".pip/pip.conf"),
        Some(PathBuf::from("/etc/pip.conf")),
    ];
    others.into_iter().flatten().collect()
}

/// The index that a file of pip's names.
fn index_url(text: &str) -> Option<String> {
    let mut is_global = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_global = section.trim_end_matches(']').trim() == "global";
        }
        let Some((key, value)) = line.split_once(['=', ':']).filter(|_| is_global) else {
            continue;
        };
        if key.trim().replace('_', "-") == "index-url" {
            found = Some(value.trim().to_owned());
        }
    }
    found.filter(|it| !it.is_empty())
}

/// The page of a package.
pub(crate) fn page(index: &str, package: &str) -> Option<Url> {
    Url::parse(&format!("{}/{package}/", index.trim_end_matches('/'))).ok()
}

/// Where a page says that a file is.
pub(crate) fn link(page: &Url, html: &str, file: &str) -> Option<Url> {
    let links = html.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
        rest[1..].split(quote).next()
    });
    let mut links = links.filter_map(|it| page.join(&it.replace("&amp;", "&")).ok());
    let name = |url: &Url| {
        let last = url.path_segments()?.next_back()?;
        Some(percent_decode_str(last).decode_utf8().ok()?.into_owned())
    };
    links.find(|url| name(url).as_deref() == Some(file)).map(|mut url| {
        url.set_fragment(None);
        url
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_one_that_pip_uses() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("pip.conf");
        fs::write(&config, "[install]\nindex-url = https://no/\n[global]\ntimeout = 3\nindex_url = https://files/simple\n").unwrap();
        let variables = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let file = ("PIP_CONFIG_FILE", config.to_str().unwrap());
        assert_eq!(
            address(&variables(&[("PIP_INDEX_URL", "https://var/simple/"), file])),
            "https://var/simple/"
        );
        assert_eq!(address(&variables(&[file])), "https://files/simple");
        assert_eq!(index_url("[global]\n# index-url = https://no\n"), None);
    }

    #[test]
    fn a_page_has_links_to_files() {
        let page = page("http://127.0.0.1:1/simple/", "a-b").unwrap();
        assert_eq!(page.as_str(), "http://127.0.0.1:1/simple/a-b/");
        let html = "<a href=\"../../files/a_b-1.tar.gz\">x</a> <a data-x='1' href='https://h/p/a_b-1%2Bc.whl?x=1&amp;y=2#sha256=00'>";
        assert_eq!(
            link(&page, html, "a_b-1+c.whl").unwrap().as_str(),
            "https://h/p/a_b-1%2Bc.whl?x=1&y=2"
        );
        assert_eq!(
            link(&page, html, "a_b-1.tar.gz").unwrap().as_str(),
            "http://127.0.0.1:1/files/a_b-1.tar.gz"
        );
        assert_eq!(link(&page, html, "a_b-2.whl"), None);
    }
}
