//! How values are written and read where serde's own way will not do.

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

/// Reads a value by way of a JSON tree.
///
/// Numbers are kept to the last digit, and serde cannot hand such numbers to a variant of an
/// untagged or internally tagged enum directly.
pub(crate) fn through_tree<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let tree = serde_json::Value::deserialize(deserializer)?;
    serde_json::from_value(tree).map_err(serde::de::Error::custom)
}

/// A byte range as `[start, end]`.
pub(crate) mod span {
    use super::{Deserialize, Deserializer, Range, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        span: &Range<usize>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        [span.start, span.end].serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D>(deserializer: D) -> Result<Range<usize>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let [start, end] = <[usize; 2]>::deserialize(deserializer)?;
        Ok(start..end)
    }
}

/// The same, where there may be none.
pub(crate) mod optional_span {
    use super::{Deserialize, Deserializer, Range, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes a reference")]
    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Range<usize>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        span.as_ref().map(|it| [it.start, it.end]).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D>(deserializer: D) -> Result<Option<Range<usize>>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let span = Option::<[usize; 2]>::deserialize(deserializer)?;
        Ok(span.map(|[start, end]| start..end))
    }
}
