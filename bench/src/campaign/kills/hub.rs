//! A model hub on this machine, which sends one small file in pieces.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::OnceLock,
    thread,
    time::Duration,
};

/// Its address. It lasts as long as this program.
pub(super) fn address() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the machine has a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                thread::spawn(move || serve(stream));
            }
        });
        format!("http://{address}")
    })
}

/// The beginning of a file of weights, and weights that nobody reads.
pub(super) fn model() -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let entry =
        |key: &str, value: &str| [text(key), 8_u32.to_le_bytes().to_vec(), text(value)].concat();
    let entries = [
        entry("general.architecture", "llama"),
        entry("general.name", "Small"),
        entry("tokenizer.chat_template", "x"),
    ];
    let head = [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &3_u64.to_le_bytes()];
    let weights: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
    [head.concat(), entries.concat(), weights].concat()
}

fn serve(mut stream: TcpStream) {
    let Ok(reader) = stream.try_clone() else { return };
    let head = BufReader::new(reader).lines();
    let head: Vec<String> = head.map_while(Result::ok).take_while(|it| !it.is_empty()).collect();
    let from = head.iter().find_map(|it| {
        it.to_ascii_lowercase().strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok()
    });
    let body = model();
    let from = from.unwrap_or(0_usize).min(body.len());
    let (last, size) = (body.len() - 1, body.len());
    let status = match from {
        0 => "200 OK".to_owned(),
        _ => format!("206 Partial Content\r\ncontent-range: bytes {from}-{last}/{size}"),
    };
    let length = size - from;
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    // Whoever fetches it may go away at any time.
    let _ = stream.write_all(head.as_bytes());
    for piece in body[from..].chunks(16 << 10) {
        if stream.write_all(piece).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}
