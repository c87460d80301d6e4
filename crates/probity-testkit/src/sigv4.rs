//! Whether a request is signed as AWS wants it. Written apart from the program that signs, from the
//! description of the algorithm alone.

use hyper::{HeaderMap, header::HeaderName};
use sha2::{Digest, Sha256};

/// The credentials that requests have to be signed with.
pub const AWS_ACCESS_KEY: &str = "AKIDEXAMPLE";
/// See [`AWS_ACCESS_KEY`].
pub const AWS_SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

const BLOCK: usize = 64;

/// Checks a signature; an error says what is wrong with it.
pub(crate) fn verify(
    headers: &HeaderMap,
    method: &str,
    path: &str,
    body: &[u8],
) -> Result<(), String> {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|it| it.to_str().ok());
        value.ok_or_else(|| format!("There is no `{name}`."))
    };
    let stated = header("authorization")?;
    let fields = stated
        .strip_prefix("AWS4-HMAC-SHA256 ")
        .ok_or_else(|| "It is not of version 4.".to_owned())?;
    let field = |name: &str| {
        let found = fields.split(", ").find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| format!("There is no `{name}`."))
    };
    let (credential, names, signature) =
        (field("Credential")?, field("SignedHeaders")?, field("Signature")?);
    let scope = credential
        .strip_prefix(AWS_ACCESS_KEY)
        .and_then(|it| it.strip_prefix('/'))
        .ok_or_else(|| format!("`{credential}` is nobody's."))?;
    let [day, region, service, "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
        return Err(format!("`{scope}` is no scope."));
    };
    let time = header("x-amz-date")?;
    if !time.starts_with(day) {
        return Err(format!("`{time}` is not on `{day}`."));
    }
    let names: Vec<&str> = names.split(';').collect();
    if !names.is_sorted() {
        return Err("The signed headers are not in order.".to_owned());
    }
    for name in headers.keys().map(HeaderName::as_str) {
        let has_to = name == "host" || name == "content-type" || name.starts_with("x-amz-");
        if has_to && !names.contains(&name) {
            return Err(format!("`{name}` is not signed."));
        }
    }
    let line = |name: &&str| Ok(format!("{name}:{}\n", header(name)?.trim()));
    let lines = names.iter().map(line).collect::<Result<Vec<_>, String>>()?.concat();
    let (path, names, digest) = (encoded(path), names.join(";"), hex(&Sha256::digest(body)));
    let request = format!("{method}\n{path}\n\n{lines}\n{names}\n{digest}");
    let text =
        format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request.as_bytes())));
    let mut key = format!("AWS4{AWS_SECRET_KEY}").into_bytes();
    for part in [day, region, service, "aws4_request"] {
        key = mac(&key, part.as_bytes());
    }
    let expected = hex(&mac(&key, text.as_bytes()));
    match expected == signature {
        true => Ok(()),
        false => Err("Check your secret key.".to_owned()),
    }
}

/// A path, encoded once more.
fn encoded(path: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(byte).collect::<Vec<_>>().concat()
}

/// HMAC-SHA256, by its definition.
fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; BLOCK];
    match key.len() > BLOCK {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let padded = |pad: u8| block.map(|it| it ^ pad).to_vec();
    let inner = Sha256::digest([padded(0x36), text.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `get-vanilla` of the suite that AWS publishes.
    #[test]
    fn a_published_signature_is_taken_and_no_other() {
        let with = |signature: &str| {
            let authorization = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature={signature}"
            );
            let headers = [
                ("host", "example.amazonaws.com"),
                ("x-amz-date", "20150830T123600Z"),
                ("authorization", &authorization),
            ];
            let pair =
                |(name, value): &(&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
            verify(&headers.iter().map(pair).collect(), "GET", "/", b"")
        };
        let published = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(with(published), Ok(()));
        assert!(with(&published.replace('5', "6")).is_err());
    }
}
