//! A gate as it is kept with a run.

use serde::{Deserialize, Serialize};

use super::{Bound, Decimal, Gate};
use crate::case::Category;

/// A gate as it is kept with a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Written {
    metric: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<Category>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    allow_empty: bool,
}

impl From<Gate> for Written {
    fn from(gate: Gate) -> Self {
        let Gate { metric, bound, warn, category, backend, variant, allow_empty } = gate;
        let (min, max) = match bound {
            Bound::AtLeast(limit) => (Some(limit.to_string()), None),
            Bound::AtMost(limit) => (None, Some(limit.to_string())),
        };
        let (metric, warn) = (metric.to_string(), warn.map(|it| it.to_string()));
        Self { metric, min, max, warn, category, backend, variant, allow_empty }
    }
}

impl TryFrom<Written> for Gate {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { metric, min, max, warn, category, backend, variant, allow_empty } = written;
        let limit = |text: String| {
            Decimal::parse(&text).ok_or_else(|| format!("`{text}` is not a limit of a gate"))
        };
        let bound = match (min, max) {
            (Some(min), None) => Bound::AtLeast(limit(min)?),
            (None, Some(max)) => Bound::AtMost(limit(max)?),
            (_, _) => return Err("a gate needs either `min` or `max`".to_owned()),
        };
        let warn = warn.map(limit).transpose()?;
        Ok(Self { metric: metric.parse()?, bound, warn, category, backend, variant, allow_empty })
    }
}
