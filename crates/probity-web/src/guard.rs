//! Who may ask.
//!
//! On a loopback address everybody on this machine may, but no page of another site: its requests name another host (after
//! DNS rebinding) or another origin. Any other address needs a token, which a browser exchanges for a cookie.

use std::{
    fs::File,
    io::{self, Read as _},
    net::{IpAddr, SocketAddr},
};

use data_encoding::HEXLOWER;
use hyper::{
    HeaderMap, Method,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};

use crate::{
    Edits,
    address::without,
    edit,
    problem::Problem,
    reply::{self, Response},
};

const COOKIE: &str = "probity_token";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Decides who is let in.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    token: Option<String>,
    edits: Option<Edits>,
}

/// What becomes of somebody who may come in.
pub(crate) enum Entry {
    /// The request is answered.
    Granted,
    /// The token of an address becomes a cookie first.
    Exchange(Box<Response>),
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, edits: Option<Edits>) -> io::Result<Self> {
        let token = match address.ip().is_loopback() {
            true => None,
            false => Some(new_token()?),
        };
        Ok(Self { address, token, edits })
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn admit(&self, head: &Parts) -> Result<Entry, Problem> {
        let is_edit = self.edits.is_some()
            && head.method == Method::POST
            && edit::is_address(head.uri.path());
        if !is_edit && head.method != Method::GET && head.method != Method::HEAD {
            return Err(Problem::not_allowed());
        }
        let host = only(&head.headers, &header::HOST)?
            .ok_or_else(|| Problem::bad_request("the request names no host"))?;
        if !self.is_our_host(host) {
            let message = "the request names another host than the one that is served here";
            return Err(
                Problem::forbidden(message).hint(format!("open http://{}/ itself", self.address))
            );
        }
        same_origin(&head.headers, host)?;
        if is_edit {
            from_our_page(&head.headers)?;
        }
        let Some(token) = &self.token else { return Ok(Entry::Granted) };
        if let Some(given) = given_in_address(head.uri.query()) {
            return match is_same(given, token) {
                true => Ok(Entry::Exchange(Box::new(exchange(head, token)))),
                false => Err(Problem::unauthorized("this token is not the one that was printed")),
            };
        }
        let offered = offered(&head.headers);
        match offered.iter().any(|it| is_same(it, token)) {
            true => Ok(Entry::Granted),
            false => Err(Problem::unauthorized("this server needs a token").hint(
                "open the address that `probity view` printed; programs send `Authorization: Bearer TOKEN`",
            )),
        }
    }

    /// Whether a host is one that names this server and cannot be made to name it by others.
    fn is_our_host(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        let port_is_ours = match port {
            Some(port) => port.parse() == Ok(self.address.port()),
            None => self.address.port() == 80,
        };
        // Behind a token a name may be any: its cookie goes to the name that it was given to.
        port_is_ours
            && (self.token.is_some()
                || name.eq_ignore_ascii_case("localhost")
                || bare(name).parse::<IpAddr>().is_ok_and(|it| it.is_loopback()))
    }
}

/// A host without its port, and the port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        Some(_) | None => (host, None),
    }
}

fn bare(name: &str) -> &str {
    name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name)
}

/// Refuses what a page of another site asks for in the background.
fn same_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let elsewhere = || Problem::forbidden("a page of another site asks for this");
    if let Some(origin) = only(headers, &header::ORIGIN)?
        && !origin.strip_prefix("http://").is_some_and(|it| it.eq_ignore_ascii_case(host))
    {
        return Err(elsewhere());
    }
    let site = only(headers, &SEC_FETCH_SITE)?;
    // A frame is navigated, too, and nobody has to see it.
    let is_link = only(headers, &SEC_FETCH_MODE)? == Some("navigate")
        && only(headers, &SEC_FETCH_DEST)? == Some("document");
    match site {
        Some("cross-site" | "same-site") if !is_link => Err(elsewhere()),
        Some(_) | None => Ok(()),
    }
}

/// Refuses an edit unless a page of this server sends it: a browser says so with every form.
fn from_our_page(headers: &HeaderMap) -> Result<(), Problem> {
    let has_origin = only(headers, &header::ORIGIN)?.is_some();
    match only(headers, &SEC_FETCH_SITE)? {
        Some("same-origin") | None if has_origin => Ok(()),
        Some(_) | None => Err(Problem::forbidden("only a page of this server may change anything")),
    }
}

/// A header that may stand in a request once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(HeaderValue::to_str).transpose();
    match (first, values.next()) {
        (Ok(first), None) => Ok(first),
        (Err(_), _) | (_, Some(_)) => {
            Err(Problem::bad_request(format!("the header `{name}` cannot be read")))
        }
    }
}

fn given_in_address(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Tokens of a cookie or of an authorization.
fn offered(headers: &HeaderMap) -> Vec<&str> {
    let bearers = headers.get_all(header::AUTHORIZATION).iter();
    let bearers = bearers.filter_map(|it| it.to_str().ok()?.strip_prefix("Bearer "));
    cookies(headers, COOKIE).chain(bearers).collect()
}

/// The values of a cookie: there may be several of one name, of different paths.
pub(crate) fn cookies<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> impl Iterator<Item = &'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = all.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.filter(move |(known, _)| *known == name).map(|(_, value)| value)
}

/// Takes the same time wherever the first difference is.
pub(crate) fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}

/// Keeps the token in a cookie, and takes it out of the address that people see and copy.
fn exchange(head: &Parts, token: &str) -> Response {
    let clean = without(head.uri.path(), head.uri.query(), "token");
    let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/");
    let root = HeaderValue::from_static("/");
    let to = HeaderValue::from_str(&clean).unwrap_or(root);
    reply::redirect(&to, HeaderValue::from_str(&cookie).unwrap_or(HeaderValue::from_static("")))
}

fn new_token() -> io::Result<String> {
    Ok(HEXLOWER.encode(&random::<24>()?))
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> Guard {
        Guard::new(address.parse().unwrap(), None).unwrap()
    }

    fn editable(address: &str) -> Guard {
        Guard::new(address.parse().unwrap(), Some(Edits { now_ms: || 0 })).unwrap()
    }

    fn head(target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, target: &str, headers: &[(&str, &str)]) -> u16 {
        match guard.admit(&head(target, headers)) {
            Ok(Entry::Granted) => 200,
            Ok(Entry::Exchange(response)) => response.status().as_u16(),
            Err(problem) => problem.status.as_u16(),
        }
    }

    #[test]
    fn a_name_that_somebody_points_at_this_machine_is_refused() {
        let guard = guard("127.0.0.1:7000");
        let host = |host| status(&guard, "/", &[("host", host)]);
        for ours in ["127.0.0.1:7000", "localhost:7000", "LOCALHOST:7000", "[::1]:7000"] {
            assert_eq!(host(ours), 200, "{ours}");
        }
        for other in [
            "evil.example:7000",
            "127.0.0.1",
            "127.0.0.1:7001",
            "localhost.evil.example:7000",
            "127.0.0.1.evil.example:7000",
            "[::1]",
            "10.0.0.1:7000",
            "",
        ] {
            assert_eq!(host(other), 403, "{other}");
        }
        assert_eq!(status(&guard, "/", &[]), 400);
        let twice = [("host", "localhost:7000"), ("host", "evil.example:7000")];
        assert_eq!(status(&guard, "/", &twice), 400);
    }

    #[test]
    fn another_site_may_link_here_and_ask_for_nothing() {
        let guard = guard("127.0.0.1:7000");
        let from = |more: &[(&str, &str)]| {
            let headers: Vec<_> =
                [("host", "localhost:7000")].iter().chain(more).copied().collect();
            status(&guard, "/api/v1/runs", &headers)
        };
        assert_eq!(from(&[("origin", "http://localhost:7000")]), 200);
        assert_eq!(from(&[("origin", "http://evil.example")]), 403);
        assert_eq!(from(&[("origin", "https://localhost:7000")]), 403);
        assert_eq!(from(&[("origin", "null")]), 403);
        assert_eq!(from(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]), 403);
        assert_eq!(from(&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")]), 403);
        let navigate = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        let to = |dest| from(&[navigate[0], navigate[1], ("sec-fetch-dest", dest)]);
        assert_eq!(to("document"), 200);
        for hidden in ["iframe", "frame", "embed", "object"] {
            assert_eq!(to(hidden), 403, "{hidden}");
        }
        assert_eq!(from(&[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")]), 200);
    }

    #[test]
    fn other_addresses_need_the_token_once_and_the_cookie_then() {
        let guard = guard("0.0.0.0:7000");
        let token = guard.token().unwrap().to_owned();
        assert_eq!(token.len(), 48);
        let host = ("host", "box.lan:7000");
        assert_eq!(status(&guard, "/", &[host]), 401);
        assert_eq!(status(&guard, "/?token=0", &[host]), 401);
        assert_eq!(status(&guard, "/", &[host, ("cookie", "probity_token=0")]), 401);
        let cookie = format!("a=b; probity_token={token}");
        assert_eq!(status(&guard, "/", &[host, ("cookie", &cookie)]), 200);
        let bearer = format!("Bearer {token}");
        assert_eq!(status(&guard, "/", &[host, ("authorization", &bearer)]), 200);
        let target = format!("/runs/x?a=1&token={token}&b=2");
        let Ok(Entry::Exchange(response)) = guard.admit(&head(&target, &[host])) else {
            panic!("the token is exchanged")
        };
        assert_eq!(response.headers()["location"], "/runs/x?a=1&b=2");
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    }

    #[test]
    fn nothing_but_reading_is_allowed() {
        let [fixed, open] = [guard, editable].map(|make| make("127.0.0.1:7000"));
        for (target, guard) in [("/", &fixed), ("/", &open), ("/person", &fixed)] {
            let mut head = head(target, &[("host", "localhost:7000")]);
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
                head.method = method;
                let refused = guard.admit(&head).err().map(|it| it.status.as_u16());
                assert_eq!(refused, Some(405), "{target} {guard:?}");
            }
        }
    }

    #[test]
    fn an_edit_comes_from_a_page_of_ours() {
        let guard = editable("127.0.0.1:7000");
        let status = |more: &[(&str, &str)]| {
            let all: Vec<_> = [("host", "localhost:7000")].iter().chain(more).copied().collect();
            let mut head = head("/runs/r/cases/c/remarks", &all);
            head.method = Method::POST;
            guard.admit(&head).err().map(|it| it.status.as_u16())
        };
        let origin = ("origin", "http://localhost:7000");
        assert_eq!(status(&[origin]), None);
        assert_eq!(status(&[origin, ("sec-fetch-site", "same-origin")]), None);
        assert_eq!(status(&[]), Some(403));
        assert_eq!(status(&[("sec-fetch-site", "same-origin")]), Some(403));
        assert_eq!(status(&[("origin", "null")]), Some(403));
        assert_eq!(status(&[("origin", "http://127.0.0.1:7000")]), Some(403));
        for site in ["cross-site", "same-site", "none"] {
            let navigate = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
            let head = [origin, ("sec-fetch-site", site), navigate[0], navigate[1]];
            assert_eq!(status(&head), Some(403), "{site}");
        }
    }
}
