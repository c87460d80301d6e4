//! Where a request goes.

use data_encoding::BASE64;
use http::{HeaderValue, Uri, uri::InvalidUri};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::Error;

/// An address, taken apart once.
#[derive(Clone, Debug)]
pub struct Target {
    uri: Uri,
    /// What its user and password come to.
    authorization: Option<HeaderValue>,
}

impl Target {
    /// What an address names that is still a text.
    pub fn parse(address: &str) -> Result<Self, Error> {
        Self::new(&Url::parse(address).map_err(|it| Error::Address(it.into()))?)
    }

    /// What an address names. Its user and password are not part of where a request goes: they are said in a header, unless
    /// the request has one of its own.
    pub fn new(url: &Url) -> Result<Self, Error> {
        let authorization = authorization(url);
        let mut bare = url.clone();
        bare.set_fragment(None);
        // An address that can have neither has neither.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        let uri = bare.as_str().parse().map_err(|it: InvalidUri| Error::Address(it.into()))?;
        Ok(Self { uri, authorization })
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

fn authorization(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or("")));
    let mut header = HeaderValue::try_from(format!("Basic {}", BASE64.encode(&pair))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Target {
        Target::parse(address).unwrap()
    }

    #[test]
    fn a_user_is_said_in_a_header_and_nowhere_else() {
        let target = target("https://us%40er:p%3Aw@[::1]:8443/v1?a=b#part");
        assert_eq!(target.uri().to_string(), "https://[::1]:8443/v1?a=b");
        let header = target.authorization().unwrap();
        assert!(header.is_sensitive());
        let said = BASE64.decode(&header.as_bytes()["Basic ".len()..]).unwrap();
        assert_eq!(said, b"us@er:p:w");
    }

    #[test]
    fn a_token_has_no_password_and_most_addresses_have_nothing() {
        let header = target("http://token@h/").authorization().unwrap().clone();
        assert_eq!(header, format!("Basic {}", BASE64.encode(b"token:")));
        assert!(target("http://h/v1").authorization().is_none());
    }

    #[test]
    fn hosts_of_other_scripts_are_written_as_servers_know_them() {
        assert_eq!(target("http://bücher.example/").uri().host(), Some("xn--bcher-kva.example"));
    }
}
