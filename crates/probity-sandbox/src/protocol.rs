//! What a program and its keeper say to each other.
//!
//! On the control socket the program sends one byte, an [`Errand`], together with a connection. On the connection frames
//! follow: four bytes of length and the bytes. A frame is JSON, or the bytes of a file or a stream as they are.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::execution::{Change, Command, End, Entry, Execution, Limits, Output};

/// By this name of a program (`argv[0]`) a process knows that it is a keeper.
pub(crate) const KEEPER: &str = "probity-keeper";

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// A world is visited: [`Request`]s come, and each is answered. The visit ends with the connection.
    Visit,
    /// A [`Load`] and the [`Item`]s of a tree come, an empty answer goes back.
    Load,
    /// A [`Load`] comes whose tree is not needed any more, an empty answer goes back.
    Unload,
}

impl Errand {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Visit => b'v',
            Self::Load => b'l',
            Self::Unload => b'u',
        }
    }

    pub(crate) const fn of(byte: u8) -> Option<Self> {
        match byte {
            b'v' => Some(Self::Visit),
            b'l' => Some(Self::Load),
            b'u' => Some(Self::Unload),
            _ => None,
        }
    }
}

/// What is asked for in a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A way out is wanted, before anything is executed: one byte goes back, with the socket that listens in the world,
    /// and an empty answer.
    Open,
    /// A [`Report`] and two streams go back. The first one makes the world.
    Execute(Box<Job>),
    /// Paths to look at: an entry for each goes back, and what there is of its content.
    Look(Vec<String>),
}

/// What a path is. The bytes of the content follow, if there is any.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) entry: Option<Entry>,
    /// How long the content is.
    pub(crate) content: Option<u64>,
}

/// One execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) limits: Limits,
    /// The number of its tree.
    pub(crate) tree: u32,
    pub(crate) directory: String,
    /// Whether it may start at the root if commands before it removed the directory.
    pub(crate) may_be_gone: bool,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) processes: Vec<Vec<String>>,
    /// Paths of the host that are found in the world as well.
    pub(crate) paths: Vec<String>,
    /// Whether there is a way out.
    pub(crate) is_open: bool,
}

/// What came of a [`Job`]; the bytes of the streams follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) end: End,
    /// How much each stream carried: standard output, standard error.
    pub(crate) totals: [u64; 2],
    pub(crate) changes: Vec<Change>,
    pub(crate) ended: Vec<String>,
    pub(crate) refused: Vec<String>,
    pub(crate) began: i64,
    pub(crate) took_us: u64,
}

impl Report {
    pub(crate) fn with(self, streams: [Vec<u8>; 2]) -> Execution {
        let Self { end, totals, changes, ended, refused, began, took_us } = self;
        let [stdout, stderr] = streams;
        let stdout = Output { bytes: stdout, total: totals[0] };
        let stderr = Output { bytes: stderr, total: totals[1] };
        Execution { end, stdout, stderr, changes, ended, refused, began, took_us }
    }
}

/// A tree, by its number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) tree: u32,
}

/// Something in a tree. Directories come before what is in them. What a file holds follows in parts: where a part begins,
/// as JSON, and its bytes. After the last comes `null`. What is between the parts is a hole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    /// From the root of the tree, without a leading slash; empty for the root itself.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: ItemKind,
    pub(crate) mode: u32,
    /// Seconds and nanoseconds since 1970.
    pub(crate) accessed: (i64, u32),
    pub(crate) modified: (i64, u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ItemKind {
    Directory,
    File {
        /// In bytes.
        size: u64,
    },
    /// Another name of a file that came before.
    Same(Vec<u8>),
    Link(Vec<u8>),
    Pipe,
}

/// The longest frame. A file of a world is not larger, and neither is what is kept of a stream.
const LONGEST: usize = 512 << 20;

/// Nothing is sent if the bytes are too many ([`io::ErrorKind::InvalidInput`]).
pub(crate) fn send(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LONGEST);
    let length = length.ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "it is more than fits into a frame")
    })?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)
}

pub(crate) fn receive(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if usize::try_from(length).is_ok_and(|length| length > LONGEST) {
        return Err(io::Error::other("a frame is too long"));
    }
    let mut bytes = Vec::new();
    from.take(length.into()).read_to_end(&mut bytes)?;
    match u32::try_from(bytes.len()) == Ok(length) {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub(crate) fn send_json(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    send(to, &serde_json::to_vec(value)?)
}

pub(crate) fn receive_json<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&receive(from)?)?)
}
