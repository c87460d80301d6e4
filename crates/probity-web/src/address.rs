//! Addresses of pages, and what stands in them.

use std::{fmt::Write as _, path::Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What may stand in an address as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as one part of a path, or as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// What a part of an address means; none if that is no text.
pub(crate) fn decoded(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(Into::into)
}

/// A path with values.
pub(crate) fn with_query<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, String)>,
) -> String {
    let mut address = path.to_owned();
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        let sign = if at == 0 { '?' } else { '&' };
        let _ = write!(address, "{sign}{name}={}", encoded(&value));
    }
    address
}

/// An address without one of its values.
pub(crate) fn without(path: &str, query: Option<&str>, name: &str) -> String {
    let is_other = |pair: &&str| pair.split('=').next() != Some(name);
    let rest: Vec<&str> = query.unwrap_or_default().split('&').filter(is_other).collect();
    // Two slashes at the beginning would name another host.
    let path = format!("/{}", path.trim_start_matches('/'));
    match rest.iter().all(|it| it.is_empty()) {
        true => path,
        false => format!("{path}?{}", rest.join("&")),
    }
}

pub(crate) fn run(run_id: &str) -> String {
    format!("/runs/{}", encoded(run_id))
}

pub(crate) fn cases(run_id: &str) -> String {
    format!("{}/cases", run(run_id))
}

pub(crate) fn case(run_id: &str, case_id: &str, lane: usize, repeat: u32) -> String {
    let repeat = (repeat > 0).then(|| ("repeat", (repeat + 1).to_string()));
    let pairs = std::iter::once(("lane", (lane + 1).to_string())).chain(repeat);
    with_query(&format!("{}/{}", cases(run_id), encoded(case_id)), pairs)
}

pub(crate) fn suite(file: &Path) -> String {
    format!("/suites/{}", encoded(&file.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_can_stand_in_an_address() {
        for id in ["a/b", "../..", "?x=1&y#z", "é\u{202e} %2f", "<script>", ""] {
            let address = case("r", id, 0, 0);
            let part = address.strip_prefix("/runs/r/cases/").unwrap();
            let part = part.strip_suffix("?lane=1").unwrap();
            assert!(!part.contains(['/', '?', '#', '<', '&']), "{part}");
            assert_eq!(decoded(part).as_deref(), Some(id));
        }
    }

    #[test]
    fn an_address_never_leads_to_another_host() {
        assert_eq!(without("//evil.example/x", Some("token=1"), "token"), "/evil.example/x");
        assert_eq!(without("/", Some("a=1&token=2"), "token"), "/?a=1");
    }
}
