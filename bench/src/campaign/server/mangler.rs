//! Stands between the program and a server, and spoils what is answered.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use fastrand::Rng;
use flate2::{Compression, write::GzEncoder};

/// What is done to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mangle {
    Nothing,
    Mark,
    Gzip,
    HalfGzip,
    FalseGzip,
    TinyChunks,
    BadChunk,
    Cut,
    ShortLength,
    LongBody,
    OtherType,
    Flip,
    Prefixed,
    LongHeader,
    NoHttp,
}

pub(super) struct Mangler {
    pub(super) url: String,
    asked: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Mangler {
    pub(super) fn start(server: String, mangle: Mangle, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (asked, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, over) = (Arc::clone(&asked), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let (server, counter) = (server.clone(), Arc::clone(&counter));
                thread::spawn(move || {
                    let number = counter.load(Ordering::Relaxed);
                    // Whoever asks may go away at any time.
                    let _ = pass(stream, &server, mangle, &counter, Rng::with_seed(seed ^ number));
                });
            }
        });
        Ok(Self { url: format!("http://{address}"), asked, is_over })
    }

    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Mangler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

/// Hands a request on, and its answer back.
fn pass(
    mut client: TcpStream,
    server: &str,
    mangle: Mangle,
    asked: &AtomicU64,
    mut random: Rng,
) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0_usize);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            head.push_str("connection: close\r\n\r\n");
            break;
        }
        if !lower.starts_with("connection:") && !lower.starts_with("accept-encoding:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.fetch_add(1, Ordering::Relaxed);
    let mut upstream = TcpStream::connect(server.trim_start_matches("http://"))?;
    upstream.write_all(head.as_bytes())?;
    upstream.write_all(&body)?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    client.write_all(&spoil(&answer, mangle, &mut random)?)
}

fn spoil(answer: &[u8], mangle: Mangle, random: &mut Rng) -> io::Result<Vec<u8>> {
    let at = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or(0);
    let (head, body) = (&answer[..at], answer.get(at + 4..).unwrap_or_default().to_vec());
    let head = String::from_utf8_lossy(head);
    let is_kept = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let is_type = mangle == Mangle::OtherType && line.starts_with("content-type:");
        !line.starts_with("content-length:") && !line.starts_with("transfer-encoding:") && !is_type
    };
    let mut head = head.lines().filter(is_kept).collect::<Vec<_>>().join("\r\n");
    let size = body.len();
    // Without its last byte at the least.
    let cut = random.usize(..size.max(1));
    let (more, body, length): (String, Vec<u8>, Option<usize>) = match mangle {
        Mangle::Nothing => (String::new(), body, Some(size)),
        Mangle::Mark if head.contains("amazon.eventstream") => (String::new(), body, Some(size)),
        Mangle::Mark => (String::new(), [b"\xef\xbb\xbf", &body[..]].concat(), Some(size + 3)),
        Mangle::Gzip | Mangle::HalfGzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&body)?;
            let mut packed = encoder.finish()?;
            if mangle == Mangle::HalfGzip {
                packed.truncate(packed.len() / 2);
            }
            let length = packed.len();
            ("\r\ncontent-encoding: gzip".to_owned(), packed, Some(length))
        }
        Mangle::FalseGzip => ("\r\ncontent-encoding: gzip".to_owned(), body, Some(size)),
        Mangle::TinyChunks => {
            let mut chunks: Vec<u8> =
                body.iter().flat_map(|byte| [b'1', b'\r', b'\n', *byte, b'\r', b'\n']).collect();
            chunks.extend(b"0\r\n\r\n");
            ("\r\ntransfer-encoding: chunked".to_owned(), chunks, None)
        }
        Mangle::BadChunk => {
            ("\r\ntransfer-encoding: chunked".to_owned(), b"zz\r\nnot a chunk\r\n".to_vec(), None)
        }
        Mangle::Cut => (String::new(), body[..cut].to_vec(), Some(size)),
        Mangle::ShortLength => (String::new(), body[..cut].to_vec(), Some(cut)),
        Mangle::LongBody => (String::new(), [&body[..], b"{\"more\":1}"].concat(), Some(size)),
        Mangle::OtherType => {
            let types = ["text/html", "text/plain", "application/octet-stream", "image/png", ""];
            let other = types[random.usize(..types.len())];
            (format!("\r\ncontent-type: {other}"), body, Some(size))
        }
        Mangle::Flip => {
            let mut body = body;
            if let Some(byte) = body.get_mut(cut) {
                *byte ^= 1 << random.u8(..8);
            }
            (String::new(), body, Some(size))
        }
        Mangle::Prefixed => {
            let body = [b"<html>wait</html>\n", &body[..]].concat();
            let length = body.len();
            (String::new(), body, Some(length))
        }
        Mangle::LongHeader => (format!("\r\nx-long: {}", "a".repeat(1 << 20)), body, Some(size)),
        Mangle::NoHttp => return Ok(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
    };
    head.push_str(&more);
    if let Some(length) = length {
        head = format!("{head}\r\ncontent-length: {length}");
    }
    Ok([head.as_bytes(), b"\r\n\r\n", &body].concat())
}
