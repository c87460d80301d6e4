//! Google's Vertex AI: Gemini and Anthropic's messages, with a project and a location in the address.

use serde_json::json;

use super::{DialectSpec, Fields, KeyHeader, StreamSpec, Wanted, anthropic, gemini};

/// `generateContent` of a model of Google.
pub(super) const GEMINI: DialectSpec = DialectSpec {
    key_header: KeyHeader::Bearer,
    endpoint: |base, model| {
        format!("{}/publishers/google/models/{model}:generateContent", stem(base))
    },
    models: |base| models(base, "google"),
    // It lists publishers' models, and tuned ones have names of their own.
    bare_model: |_| "",
    ..gemini::SPEC
};

/// `rawPredict` of a model of Anthropic.
pub(super) const ANTHROPIC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Bearer,
    headers: &[],
    endpoint: |base, model| {
        format!("{}/publishers/anthropic/models/{model}:rawPredict", stem(base))
    },
    models: |base| models(base, "anthropic"),
    bare_model: |_| "",
    fields: messages_fields,
    stream: StreamSpec {
        endpoint: |url| url.replace(":rawPredict", ":streamRawPredict"),
        ..anthropic::SPEC.stream
    },
    ..anthropic::SPEC
};

/// Where the models of a project answer, in a location that is `global` unless stated.
pub(super) fn address(stated: &[Option<String>]) -> Option<String> {
    let value = |at: usize| stated.get(at)?.as_deref();
    let (project, location) = (value(0)?, value(1).unwrap_or("global"));
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        _ => format!("{location}-aiplatform.googleapis.com"),
    };
    Some(format!("https://{host}/v1/projects/{project}/locations/{location}"))
}

/// An address without a model: people copy the whole address, too.
fn stem(base: &str) -> &str {
    base.split("/publishers/").next().unwrap_or(base)
}

fn models(base: &str, publisher: &str) -> String {
    let home = base.split("/v1/").next().unwrap_or(base);
    format!("{home}/v1beta1/publishers/{publisher}/models")
}

/// The model stands in the address, and the version in the body.
fn messages_fields(wanted: &Wanted<'_>) -> Fields {
    let (mut fields, not_applied) = (anthropic::SPEC.fields)(wanted);
    fields.remove("model");
    fields.insert("anthropic_version".to_owned(), json!("vertex-2023-10-16"));
    (fields, not_applied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::dialect::addresses;

    fn home(project: &str, location: Option<&str>) -> String {
        address(&[Some(project.to_owned()), location.map(ToOwned::to_owned)]).unwrap()
    }

    #[test]
    fn project_and_location_are_part_of_the_address() {
        let base = home("mine", Some("us-central1"));
        let google = "https://us-central1-aiplatform.googleapis.com";
        assert_eq!(base, format!("{google}/v1/projects/mine/locations/us-central1"));
        let models = format!("{google}/v1beta1/publishers/google/models");
        let endpoint = format!("{base}/publishers/google/models/gemini-2.5-flash:generateContent");
        for copied in [&base, &endpoint] {
            let found = addresses(&GEMINI, copied, "gemini-2.5-flash");
            assert_eq!(found, (endpoint.clone(), models.clone()));
        }
        assert_eq!(
            home("mine", None),
            "https://aiplatform.googleapis.com/v1/projects/mine/locations/global"
        );
        assert_eq!(address(&[None, Some("us-central1".to_owned())]), None);
    }

    #[test]
    fn models_of_anthropic_have_an_address_of_their_own() {
        let base = home("mine", None);
        let (endpoint, _) = addresses(&ANTHROPIC, &base, "claude-sonnet-4-5@20250929");
        let model = "publishers/anthropic/models/claude-sonnet-4-5@20250929";
        assert_eq!(endpoint, format!("{base}/{model}:rawPredict"));
        let stream = (ANTHROPIC.stream.endpoint)(&endpoint);
        assert_eq!(stream, format!("{base}/{model}:streamRawPredict"));
    }
}
