//! Signatures of requests to AWS, version 4.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>

use std::fmt;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use probity_http::{
    Method, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue},
};
use ring::{digest, hmac};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// What stands in names and values as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// What stands in a path as it is.
const IN_PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Who signs, and for what.
pub(super) struct Signer {
    pub(super) access_key: String,
    pub(super) secret_key: String,
    /// Of credentials that expire.
    pub(super) session_token: Option<String>,
    pub(super) region: String,
    /// The service, as signatures name it.
    pub(super) service: String,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({} in {})", self.service, self.region)
    }
}

/// The region that a host of AWS is in: the last of its labels that looks like one. Behind it may stand
/// what kind of endpoint it is.
pub(super) fn region_of(host: &str) -> Option<&str> {
    const AWS: [&str; 4] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".on.aws"];
    let labels = AWS.iter().find_map(|it| host.strip_suffix(it))?;
    labels.rsplit('.').find(|it| is_region(it))
}

/// Such as `us-east-1` or `us-gov-west-1`: words, and a number at the end.
fn is_region(label: &str) -> bool {
    let Some((words, number)) = label.rsplit_once('-') else { return false };
    let is_word = |it: &str| it.len() >= 2 && it.bytes().all(|it| it.is_ascii_lowercase());
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    is_number && words.contains('-') && words.split('-').all(is_word)
}

/// What is signed.
#[derive(Debug)]
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a Method,
    pub(super) url: &'a Url,
    /// Its headers, of which the type of the content is signed.
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

impl Signer {
    /// The headers that a request needs to be taken, at this time.
    pub(super) fn sign(
        &self,
        request: &Unsigned<'_>,
        at: Timestamp,
    ) -> Result<HeaderMap, InvalidHeaderValue> {
        let time = at.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = &time[..time.find('T').unwrap_or(time.len())];
        let mut added = HeaderMap::new();
        added.insert(DATE, HeaderValue::from_str(&time)?);
        if let Some(token) = &self.session_token {
            let mut value = HeaderValue::from_str(token)?;
            value.set_sensitive(true);
            added.insert(TOKEN, value);
        }
        let (canonical, names) = canonical(request, &added);
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", sha256(canonical.as_bytes()));
        let mut key = hmac(format!("AWS4{}", self.secret_key).as_bytes(), day);
        for part in [&self.region, &self.service, "aws4_request"] {
            key = hmac(key.as_ref(), part);
        }
        let signature = HEXLOWER.encode(hmac(key.as_ref(), &text).as_ref());
        let mut value = HeaderValue::from_str(&format!(
            "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        ))?;
        value.set_sensitive(true);
        added.insert(AUTHORIZATION, value);
        Ok(added)
    }
}

/// A request in the one way in which it is signed, and the names of the headers in it.
fn canonical(request: &Unsigned<'_>, added: &HeaderMap) -> (String, String) {
    let Unsigned { method, url, headers, body } = request;
    let host = match (url.host_str().unwrap_or(""), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    let kind = headers.get(CONTENT_TYPE).map(|it| (CONTENT_TYPE.as_str(), text(it)));
    let ours = [DATE, TOKEN];
    let ours = ours.iter().filter_map(|name| Some((name.as_str(), text(added.get(name)?))));
    // In the order of their names.
    let signed: Vec<(&str, String)> =
        kind.into_iter().chain([("host", host)]).chain(ours).collect();
    let lines: Vec<String> =
        signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let canonical = format!(
        "{method}\n{}\n{}\n{}\n{names}\n{}",
        // What is encoded in the address is encoded once more.
        utf8_percent_encode(url.path(), IN_PATH),
        canonical_query(url.query().unwrap_or("")),
        lines.concat(),
        sha256(body),
    );
    (canonical, names)
}

fn canonical_query(query: &str) -> String {
    let encode = |part: &str| {
        let decoded = percent_decode_str(part).collect::<Vec<u8>>();
        percent_encoding::percent_encode(&decoded, UNRESERVED).to_string()
    };
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (encode(name), encode(value))
    };
    let mut pairs: Vec<(String, String)> =
        query.split('&').filter(|it| !it.is_empty()).map(pair).collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(session_token: Option<&str>) -> Signer {
        Signer {
            access_key: "AKIDEXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: session_token.map(ToOwned::to_owned),
            region: "us-east-1".to_owned(),
            service: "service".to_owned(),
        }
    }

    fn authorization(signer: &Signer, method: &Method, url: &str) -> String {
        let url = Url::parse(url).unwrap();
        let (headers, body) = (&HeaderMap::new(), &[]);
        let request = Unsigned { method, url: &url, headers, body };
        let at = "2015-08-30T12:36:00Z".parse().unwrap();
        let headers = signer.sign(&request, at).unwrap();
        headers[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    /// The signatures that AWS publishes for implementations of its algorithm.
    #[test]
    fn the_published_test_suite_is_kept_to() {
        let check = |method: Method, path: &str, signature: &str| {
            let url = format!("https://example.amazonaws.com{path}");
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature={signature}"
            );
            assert_eq!(authorization(&signer(None), &method, &url), expected, "{path}");
        };
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        check(Method::GET, "/", vanilla);
        let post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        check(Method::POST, "/", post);
        let query = "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac";
        check(Method::GET, "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1", query);
        let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
        let found =
            authorization(&signer(Some(token)), &Method::GET, "https://example.amazonaws.com/");
        let expected = "SignedHeaders=host;x-amz-date;x-amz-security-token, \
            Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8";
        assert!(found.ends_with(expected), "{found}");
    }

    #[test]
    fn what_is_encoded_in_a_path_is_encoded_once_more() {
        let url = Url::parse("https://h:8443/test/@connections/JBDvjfGEIAMCERw%3D").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = Unsigned { method: &Method::POST, url: &url, headers: &headers, body: b"{}" };
        let (canonical, names) = canonical(&request, &HeaderMap::new());
        let expected = "POST\n/test/%40connections/JBDvjfGEIAMCERw%253D\n\n\
            content-type:application/json\nhost:h:8443\n\ncontent-type;host\n\
            44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!((canonical.as_str(), names.as_str()), (expected, "content-type;host"));
    }

    #[test]
    fn a_region_is_known_by_its_host() {
        for (host, region) in [
            ("bedrock-runtime.us-east-1.amazonaws.com", Some("us-east-1")),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("bedrock-runtime.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("runtime.sagemaker.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("bedrock-runtime.us-east-1.api.aws", Some("us-east-1")),
            ("abc.lambda-url.ap-southeast-2.on.aws", Some("ap-southeast-2")),
            ("vpce-0a1-b2.bedrock-runtime.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            (
                "vpce-0a1-b2-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com",
                Some("us-east-1"),
            ),
            ("abc.execute-api.us-west-2.amazonaws.com", Some("us-west-2")),
            ("bedrock-runtime.amazonaws.com", None),
            ("sts.amazonaws.com", None),
            ("us-east-1.example.com", None),
            ("localhost", None),
        ] {
            assert_eq!(region_of(host), region, "{host}");
        }
    }

    #[test]
    fn nothing_shows_who_signs() {
        let shown = format!("{:?}", signer(Some("a-token")));
        assert_eq!(shown, "Signer(service in us-east-1)");
    }
}
