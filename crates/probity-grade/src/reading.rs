//! Reads the answer out of a reply before a check looks at it.

use std::{borrow::Cow, ops::Range, sync::Arc};

use probity_core::{
    criteria::JsonLevel,
    reading::{Extract, ExtractName, Group, Reading, Take, Uncounted, Until},
};
use probity_text::{
    extract::{self as text, Extraction, Marker},
    normalize::{self, Normalizer},
    pattern::{self, Pattern},
};

use crate::{
    compile::Compiler,
    json::{Wanted, extract},
};

/// The longest extracted text that is kept, in bytes.
const KEPT: usize = 1000;

/// What is wrong with a reading, and which field says it.
#[derive(Debug)]
pub(crate) struct BadReading {
    pub(crate) field: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl BadReading {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, code: "bad-criterion", message: message.into() }
    }
}

/// Takes the answer out of a reply, and out of the answer what does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    steps: Vec<Arc<Step>>,
    normalizer: Normalizer,
}

/// One step of taking an answer out.
#[derive(Debug)]
pub(crate) enum Step {
    Text(Extraction),
    JsonPointer(String),
}

/// What a check looks at.
#[derive(Debug)]
pub(crate) struct Answer<'t> {
    pub(crate) text: Cow<'t, str>,
    /// Where it stands in the reply, if it is a part of it.
    pub(crate) span: Option<Range<usize>>,
    /// Whether the text is the reply's to the byte, so that places in it are places in the reply.
    pub(crate) is_verbatim: bool,
    /// What was extracted, if anything was to be.
    pub(crate) extracted: Option<String>,
}

impl Reader {
    pub(crate) fn new(reading: &Reading, compiler: &mut Compiler<'_>) -> Result<Self, BadReading> {
        let steps = reading.extract.iter().map(|it| compiler.extraction(it));
        let steps = steps.collect::<Result<_, _>>()?;
        let ignored = reading.ignore.iter().map(|pattern| {
            let regex = compiler.regex(pattern).map(|it| (*it).clone());
            regex.map_err(|why| BadReading { code: "bad-regex", ..BadReading::new("ignore", why) })
        });
        let uncounted = reading.normalize.iter().map(|it| step_of(*it)).collect();
        let normalizer = Normalizer::new(uncounted, ignored.collect::<Result<_, _>>()?);
        Ok(Self { steps, normalizer })
    }

    /// What takes out what does not count.
    pub(crate) fn normalizer(&self) -> &Normalizer {
        &self.normalizer
    }

    pub(crate) fn extracts(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The answer of a reply, or what is not there.
    pub(crate) fn read<'t>(&self, reply: &'t str) -> Result<Answer<'t>, String> {
        let mut text = Cow::Borrowed(reply);
        let mut span = Some(0..reply.len());
        for step in &self.steps {
            (text, span) = step.take(text, span)?;
        }
        let extracted = self.extracts().then(|| text[..text.floor_char_boundary(KEPT)].to_owned());
        let is_verbatim = self.normalizer.is_empty();
        if !is_verbatim {
            text = Cow::Owned(self.normalizer.apply(&text).into_owned());
        }
        Ok(Answer { text, span, is_verbatim, extracted })
    }
}

/// A text, and where it stands in the reply if it is a part of it.
type Taken<'t> = (Cow<'t, str>, Option<Range<usize>>);

impl Step {
    pub(crate) fn new(written: &Extract) -> Result<Self, BadReading> {
        let bad = |message: String| BadReading::new("extract", message);
        let extraction = match written {
            Extract::Named(ExtractName::FirstNumber) => Extraction::Number(text::Take::First),
            Extract::Named(ExtractName::LastNumber) => Extraction::Number(text::Take::Last),
            Extract::Named(ExtractName::Boxed) => Extraction::Boxed(text::Take::Last),
            Extract::Named(ExtractName::CodeBlock) => {
                Extraction::CodeBlock { language: None, take: text::Take::Last }
            }
            Extract::Regex(it) => {
                let group = it.group.as_ref().map(|group| match group {
                    Group::Number(number) => pattern::Group::Number(*number as usize),
                    Group::Name(name) => pattern::Group::Name(name.clone()),
                });
                let pattern = Pattern::new(&it.regex, group.as_ref())
                    .map_err(|why| BadReading { code: "bad-regex", ..bad(why) })?;
                Extraction::Regex { pattern, take: take(it.take) }
            }
            Extract::After(it) => {
                let marker = Marker::new(&it.after)
                    .ok_or_else(|| bad("the marker of `after` is too long".to_owned()))?;
                let until = match it.until {
                    None | Some(Until::Line) => text::Until::Line,
                    Some(Until::End) => text::Until::End,
                };
                Extraction::After { marker, take: take(it.take), until }
            }
            Extract::CodeBlock(it) => {
                let language = Some(it.code_block.trim().to_owned());
                Extraction::CodeBlock { language, take: take(it.take) }
            }
            Extract::JsonPointer(it) => {
                return match it.json_pointer.starts_with('/') {
                    true => Ok(Self::JsonPointer(it.json_pointer.clone())),
                    false => Err(bad("a JSON pointer begins with `/`, such as `/a/0`".to_owned())),
                };
            }
            Extract::XmlTag(it) => {
                let name = it.xml_tag.trim().to_owned();
                if name.contains(|c: char| "<>/\"'=".contains(c) || c.is_whitespace()) {
                    return Err(bad(format!(
                        "`{name}` is no name of a tag: leave out the brackets"
                    )));
                }
                Extraction::XmlTag { name, take: take(it.take) }
            }
        };
        Ok(Self::Text(extraction))
    }

    fn take<'t>(
        &self,
        text: Cow<'t, str>,
        span: Option<Range<usize>>,
    ) -> Result<Taken<'t>, String> {
        match self {
            Self::Text(extraction) => {
                let found = extraction.find(&text).map_err(|absent| absent.to_string())?;
                let span = span.map(|it| it.start + found.start..it.start + found.end);
                let part = match text {
                    Cow::Borrowed(text) => Cow::Borrowed(&text[found]),
                    Cow::Owned(text) => Cow::Owned(text[found].to_owned()),
                };
                Ok((part, span))
            }
            Self::JsonPointer(pointer) => {
                let json = extract(&text, JsonLevel::Lenient, Wanted::Any).value;
                let json = json.ok_or("no JSON")?;
                let value = json.pointer(pointer).ok_or_else(|| format!("no `{pointer}`"))?;
                let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                Ok((Cow::Owned(text), None))
            }
        }
    }
}

/// The last unless stated: models think first and answer last.
fn take(stated: Option<Take>) -> text::Take {
    match stated {
        Some(Take::First) => text::Take::First,
        Some(Take::Last) | None => text::Take::Last,
    }
}

fn step_of(uncounted: Uncounted) -> normalize::Step {
    match uncounted {
        Uncounted::Case => normalize::Step::Case,
        Uncounted::Punctuation => normalize::Step::Punctuation,
        Uncounted::Digits => normalize::Step::Digits,
        Uncounted::Articles => normalize::Step::Articles,
        Uncounted::Whitespace => normalize::Step::Whitespace,
        Uncounted::Unicode => normalize::Step::Unicode,
        Uncounted::Nfkc => normalize::Step::Compatibility,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    #[test]
    fn what_is_costly_to_compile_is_kept() {
        let rules = Rules::default();
        let mut compiler = Compiler::new(&rules);
        let written = r#"{"extract": [{"regex": "(a)", "group": 1}]}"#;
        let reading: Reading = serde_json::from_str(written).unwrap();
        let mut step = || Reader::new(&reading, &mut compiler).unwrap().steps.remove(0);
        assert!(Arc::ptr_eq(&step(), &step()));
    }
}
