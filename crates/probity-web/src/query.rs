//! The values in an address: each once, each known, each of its kind.

use std::str::FromStr;

use crate::{address::decoded, problem::Problem};

/// Bytes of all values together.
const MOST_BYTES: usize = 8 << 10;

/// The one value that may be given several times: boxes of a form that are ticked.
const REPEATED: &str = "run";

/// The values of a request that have not been looked at.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(raw: Option<&str>) -> Result<Self, Problem> {
        let raw = raw.unwrap_or_default();
        if raw.len() > MOST_BYTES {
            return Err(Problem::bad_request(format!(
                "the query is longer than {MOST_BYTES} bytes"
            )));
        }
        Self::of_form(raw)
    }

    /// What a form sends, which its reader has bounded.
    pub(crate) fn of_form(raw: &str) -> Result<Self, Problem> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in raw.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part: &str| {
                decoded(&part.replace('+', " "))
                    .filter(|it| !it.contains('\0'))
                    .ok_or_else(|| Problem::bad_request("the query is not UTF-8 text"))
            };
            let (name, value) = (text(name)?, text(value)?);
            if name != REPEATED && pairs.iter().any(|(known, _)| *known == name) {
                return Err(Problem::bad_request(format!("`{name}` is given twice")));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// A value. One that is empty is none: forms send what was not filled in.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1).filter(|it| !it.is_empty())
    }

    /// The value that may be given several times.
    pub(crate) fn take_runs(&mut self) -> Vec<String> {
        let (runs, rest) = std::mem::take(&mut self.0).into_iter().partition(|it| it.0 == REPEATED);
        self.0 = rest;
        let runs: Vec<(String, String)> = runs;
        runs.into_iter().map(|(_, run)| run).filter(|it| !it.is_empty()).collect()
    }

    /// A value of a kind.
    pub(crate) fn take_as<T: FromStr>(
        &mut self,
        name: &str,
        kind: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Problem::bad_request(format!("`{name}` is not {kind}: `{value}`"))),
        }
    }

    /// A switch: it is there, or it is not.
    pub(crate) fn take_switch(&mut self, name: &str) -> Result<bool, Problem> {
        match self.take(name).as_deref() {
            None | Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(other) => {
                Err(Problem::bad_request(format!("`{name}` is neither 0 nor 1: `{other}`")))
            }
        }
    }

    /// How many rows a page has.
    pub(crate) fn take_limit(&mut self, usual: usize, most: usize) -> Result<usize, Problem> {
        match self.take_as::<usize>("limit", "a number")? {
            None => Ok(usual),
            Some(limit) if (1..=most).contains(&limit) => Ok(limit),
            Some(_) => Err(Problem::bad_request(format!("`limit` lies between 1 and {most}"))),
        }
    }

    /// Refuses what nobody has looked at.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => {
                Err(Problem::bad_request(format!("there is no parameter `{name}` here")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_once_and_what_is_unknown_is_refused() {
        let mut query = Query::parse(Some("a=1+2%26&b=&c=x&on=1")).unwrap();
        assert_eq!(query.take("a").as_deref(), Some("1 2&"));
        assert_eq!(query.take("b"), None);
        assert!(query.take_switch("on").unwrap());
        let message = query.finish().unwrap_err().message;
        assert_eq!(message, "there is no parameter `c` here");
    }

    #[test]
    fn hostile_queries_are_refused() {
        for raw in ["a=1&a=2", "%ff=1", "a=%c3%28", "a=%00", &"x".repeat(9000)] {
            assert_eq!(Query::parse(Some(raw)).unwrap_err().status.as_u16(), 400, "{raw}");
        }
        let mut query = Query::parse(Some("limit=0&n=-1")).unwrap();
        assert!(query.take_limit(50, 100).is_err());
        assert!(query.take_as::<u32>("n", "a number").is_err());
    }
}
