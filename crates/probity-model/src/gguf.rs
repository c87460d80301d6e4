//! What the beginning of a GGUF file says of the model in it.
//!
//! A file that is something else, or that is cut, is found out here, before an engine sees it. No length in
//! the file is believed: what is read is bounded, and so is what is kept.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

/// What a file says of its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of network, such as `llama`.
    pub architecture: String,
    /// What its makers call it.
    pub name: Option<String>,
    /// Tokens that it was trained to see at once.
    pub context: Option<u64>,
    /// How a conversation becomes a text, as a Jinja template.
    pub chat_template: Option<String>,
    /// The text that stands for the beginning.
    pub bos: Option<String>,
    /// The text that stands for the end.
    pub eos: Option<String>,
    /// Tensors that it says it has.
    pub tensors: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Why a file cannot be used as a model.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// It cannot be opened or read.
    #[error("failed to read the model `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is no model.
    #[error("`{path}` is not a model: {why}")]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
}

const MAGIC: &[u8; 4] = b"GGUF";
/// Versions with 64-bit counts. The first had others, and nobody has files of it any more.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;
const MOST_ENTRIES: u64 = 1 << 16;
const MOST_TENSORS: u64 = 1 << 20;
/// Vocabularies have some hundred thousand entries.
const MOST_ELEMENTS: u64 = 1 << 22;
/// A chat template is the longest text that there is.
const LONGEST_TEXT: u64 = 1 << 20;
/// Dimensions that a tensor can have.
const MOST_DIMENSIONS: u32 = 4;

/// Reads the header of a file.
pub fn read(path: &Path) -> Result<Header, GgufError> {
    let unread = |source| GgufError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unread)?;
    let meta = file.metadata().map_err(unread)?;
    if !meta.is_file() {
        return Err(GgufError::NotGguf { path: path.to_owned(), why: "it is no file".to_owned() });
    }
    parse(BufReader::with_capacity(1 << 16, file), meta.len()).map_err(|flaw| match flaw {
        Flaw::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => unread(source),
        Flaw::Io(_) => GgufError::NotGguf { path: path.to_owned(), why: cut(meta.len()) },
        Flaw::Form(why) => GgufError::NotGguf { path: path.to_owned(), why },
    })
}

fn cut(bytes: u64) -> String {
    format!("it ends after {bytes} bytes, in the middle of its header")
}

enum Flaw {
    Io(io::Error),
    Form(String),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A value that somebody could ask for. Others are read over.
enum Value {
    Text(String),
    Texts(Vec<String>),
    Number(u64),
    Other,
}

fn parse(source: impl Read, bytes: u64) -> Result<Header, Flaw> {
    let mut source = Source(source.take(bytes));
    let mut magic = [0; 4];
    source.0.read_exact(&mut magic).map_err(|_| not_magic(b""))?;
    if &magic != MAGIC {
        return Err(not_magic(&magic));
    }
    let version = source.u32()?;
    if !VERSIONS.contains(&version) {
        return Err(Flaw::Form(format!(
            "it has version {version} of the format, which is unknown"
        )));
    }
    let tensors = source.at_most(MOST_TENSORS, "tensors")?;
    let entries = source.at_most(MOST_ENTRIES, "entries")?;
    let mut values = BTreeMap::new();
    for _ in 0..entries {
        let key = source.text()?;
        let kind = source.u32()?;
        let value = source.value(kind, &key)?;
        if !matches!(value, Value::Other) {
            values.insert(key, value);
        }
    }
    let data = source.tensors(tensors)?;
    let header = bytes - source.0.limit();
    if tensors > 0 && header.saturating_add(data) >= bytes {
        return Err(Flaw::Form(format!(
            "it is cut: it ends after {bytes} bytes, before its last tensor"
        )));
    }
    describe(&values, tensors, bytes)
}

fn not_magic(found: &[u8]) -> Flaw {
    let is_text = !found.is_empty()
        && found.iter().all(|it| it.is_ascii_graphic() || it.is_ascii_whitespace());
    Flaw::Form(match (found.is_empty(), is_text) {
        (true, _) => "it is empty, or nearly so".to_owned(),
        (_, true) => "it begins like a text, and a GGUF file begins with `GGUF`".to_owned(),
        (_, false) => "it does not begin with `GGUF`".to_owned(),
    })
}

fn describe(values: &BTreeMap<String, Value>, tensors: u64, bytes: u64) -> Result<Header, Flaw> {
    let text = |key: &str| match values.get(key) {
        Some(Value::Text(text)) => Some(text.clone()),
        Some(Value::Texts(_) | Value::Number(_) | Value::Other) | None => None,
    };
    let number = |key: &str| match values.get(key) {
        Some(Value::Number(number)) => Some(*number),
        Some(Value::Texts(_) | Value::Text(_) | Value::Other) | None => None,
    };
    let token = |key: &str| match values.get("tokenizer.ggml.tokens") {
        Some(Value::Texts(tokens)) => {
            tokens.get(usize::try_from(number(key)?).unwrap_or(usize::MAX)).cloned()
        }
        Some(Value::Text(_) | Value::Number(_) | Value::Other) | None => None,
    };
    let architecture = text("general.architecture")
        .ok_or_else(|| Flaw::Form("it does not say its `general.architecture`".to_owned()))?;
    Ok(Header {
        name: text("general.name"),
        context: number(&format!("{architecture}.context_length")),
        chat_template: text("tokenizer.chat_template"),
        bos: token("tokenizer.ggml.bos_token_id"),
        eos: token("tokenizer.ggml.eos_token_id"),
        architecture,
        tensors,
        bytes,
    })
}

struct Source<R>(io::Take<R>);

impl<R: Read> Source<R> {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn at_most(&mut self, most: u64, what: &str) -> Result<u64, Flaw> {
        match self.u64()? {
            count if count <= most => Ok(count),
            count => Err(Flaw::Form(format!("it says that it has {count} {what}"))),
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.0).take(bytes), &mut io::sink())?;
        match skipped == bytes {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn text(&mut self) -> Result<String, Flaw> {
        let length = self.at_most(LONGEST_TEXT, "bytes in one text")?;
        let mut bytes = Vec::new();
        (&mut self.0).take(length).read_to_end(&mut bytes)?;
        match bytes.len() as u64 == length {
            // Some tokens are half a letter.
            true => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            false => Err(Flaw::Io(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn value(&mut self, kind: u32, key: &str) -> Result<Value, Flaw> {
        Ok(match kind {
            TEXT => Value::Text(self.text()?),
            4 => Value::Number(self.u32()?.into()),
            10 => Value::Number(self.u64()?),
            ARRAY => self.array(key)?,
            other => {
                self.skip(width(other, key)?)?;
                Value::Other
            }
        })
    }

    fn array(&mut self, key: &str) -> Result<Value, Flaw> {
        let kind = self.u32()?;
        let length = self.at_most(MOST_ELEMENTS, "values in one list")?;
        match kind {
            TEXT => {
                let mut texts = Vec::new();
                for _ in 0..length {
                    texts.push(self.text()?);
                }
                // Merges and scores are as many as tokens, and nobody asks for them.
                Ok(if key == "tokenizer.ggml.tokens" { Value::Texts(texts) } else { Value::Other })
            }
            other => {
                self.skip(width(other, key)? * length)?;
                Ok(Value::Other)
            }
        }
    }

    /// Reads over the descriptions of the tensors; where the last of them begins.
    fn tensors(&mut self, count: u64) -> Result<u64, Flaw> {
        let mut last = 0;
        for _ in 0..count {
            let name = self.text()?;
            let dimensions = self.u32()?;
            if dimensions > MOST_DIMENSIONS {
                return Err(Flaw::Form(format!("its tensor `{name}` has {dimensions} dimensions")));
            }
            self.skip(u64::from(dimensions) * 8 + 4)?;
            last = last.max(self.u64()?);
        }
        Ok(last)
    }
}

const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// Bytes of a value of a kind.
fn width(kind: u32, key: &str) -> Result<u64, Flaw> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(Flaw::Form(format!("`{key}` has a value of the unknown kind {kind}"))),
    }
}

#[cfg(test)]
pub(crate) mod tests;
