//! Addresses of servers: whose they are, and how they may be shown.

use percent_encoding::percent_decode_str;
use probity_http::Url;

use crate::redact::Redactor;

/// The address of a server; none if the text is not one.
pub(super) fn parse(address: &str) -> Option<Url> {
    let is_server = |it: &Url| {
        it.has_host() && ["http", "https"].contains(&it.scheme()) && it.fragment().is_none()
    };
    Url::parse(address).ok().filter(is_server)
}

/// Whether an address is one of a vendor's own: encrypted, on its usual port, and on exactly
/// such a host. `*.` at the beginning of a host stands for one or more labels, `.*.` for one.
pub(super) fn is_official(url: &Url, hosts: &[&str]) -> bool {
    let Some(host) = url.host_str() else { return false };
    let is_host = |known: &&str| match known.split_once('*') {
        Some((start, end)) => {
            let label = host.strip_prefix(start).and_then(|it| it.strip_suffix(end));
            label.is_some_and(|it| !it.is_empty() && (start.is_empty() || !it.contains('.')))
        }
        None => host == *known,
    };
    url.scheme() == "https" && url.port().is_none() && hosts.iter().any(is_host)
}

/// Whether a server is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    // An IPv6 address is in brackets.
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// An address as it may be shown, however short its secrets are.
pub(super) fn shown(address: &str) -> String {
    let Ok(url) = Url::parse(address) else { return "[redacted]".to_owned() };
    let user = match (url.username(), url.password()) {
        ("", None) => String::new(),
        (_, None) => "[redacted]@".to_owned(),
        (user, Some(_)) => format!("{user}:[redacted]@"),
    };
    let host = url.host_str().unwrap_or("");
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let hidden = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}=[redacted]"),
        None => "[redacted]".to_owned(),
    };
    let query = url.query().map_or_else(String::new, |query| {
        format!("?{}", query.split('&').map(hidden).collect::<Vec<_>>().join("&"))
    });
    format!("{}://{user}{host}{port}{}{query}", url.scheme(), url.path())
}

/// Where a redirect leads, without a query: it may hold what our own address holds.
pub(super) fn shown_target(target: &str) -> String {
    match target.split_once('?') {
        None => target.to_owned(),
        Some((path, _)) => format!("{path}?[redacted]"),
    }
}

/// A text that is not an address, as it may be shown.
pub(super) fn without_secrets(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, "?[redacted]"),
        None => (url, ""),
    };
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://[redacted]{}{query}", &url[..scheme], &url[at..])
        }
        (_, _) => format!("{url}{query}"),
    }
}

/// Keeps out what an address says in confidence: as it is written, and as it is meant.
pub(super) fn add_secrets(url: &Url, redactor: &mut Redactor) {
    // A name without a password is a token.
    let secret = url.password().unwrap_or_else(|| url.username());
    redactor.add(secret);
    redactor.add(&percent_decode_str(secret).decode_utf8_lossy());
    for pair in url.query().unwrap_or("").split('&') {
        redactor.add(pair.split_once('=').map_or(pair, |(_, value)| value));
    }
    url.query_pairs().for_each(|(_, value)| redactor.add(&value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(
            shown("http://u:p@[::1]:8080/v1/x?key=abc&flag&n=1"),
            "http://u:[redacted]@[::1]:8080/v1/x?key=[redacted]&[redacted]&n=[redacted]"
        );
        assert_eq!(shown("https://token@h/v1"), "https://[redacted]@h/v1");
    }

    #[test]
    fn only_the_vendors_own_host_is_the_vendor() {
        let hosts = &["api.openai.com", "*.openai.azure.com", "bedrock-runtime.*.amazonaws.com"];
        let check = |address: &str| is_official(&parse(address).expect(address), hosts);
        for address in [
            "https://api.openai.com/v1",
            "https://API.OpenAI.com:443/v1",
            "https://me.openai.azure.com",
            "https://bedrock-runtime.us-east-1.amazonaws.com",
        ] {
            assert!(check(address), "{address}");
        }
        for address in [
            "http://api.openai.com/v1",
            "https://api.openai.com:8443/v1",
            "http://127.0.0.1:1/proxy/https://api.openai.com/v1",
            "https://evil.example/v1?x=://api.openai.com",
            "https://api.openai.com@127.0.0.1/v1",
            "https://api.openai.com.evil.example/v1",
            "https://xapi.openai.com/v1",
            "https://.openai.azure.com",
            "https://evilopenai.azure.com",
            "https://bedrock-runtime..amazonaws.com",
            "https://bedrock-runtime.x.execute-api.us-east-1.amazonaws.com",
            "https://me.bedrock-runtime.us-east-1.amazonaws.com",
            "https://bedrock-runtime.amazonaws.com",
        ] {
            assert!(!parse(address).is_some_and(|it| is_official(&it, hosts)), "{address}");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for address in [
            "http://127.0.0.1:1",
            "http://127.9.9.9",
            "http://[::1]:2",
            "http://localhost",
            "http://a.localhost",
        ] {
            assert!(is_loopback(&parse(address).expect(address)), "{address}");
        }
        for address in ["http://10.0.0.1", "http://localhost.example", "http://128.0.0.1"] {
            assert!(!is_loopback(&parse(address).expect(address)), "{address}");
        }
    }
}
