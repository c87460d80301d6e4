//! The three pipes of a program, all served at once.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
};

/// The ends of the pipes that we hold.
pub(super) struct Pipes {
    stdin: Option<(ChildStdin, Vec<u8>)>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child, bytes: Option<Vec<u8>>) -> Self {
        Self {
            stdin: child.stdin.take().zip(bytes),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        }
    }

    /// Writes all that is to be read and reads all that is written, until nobody holds
    /// the other ends. Returns early, and false, when standard output is too much.
    ///
    /// What has been read stays if the future is dropped.
    pub(super) async fn exchange(self, out: &mut Captured, err: &mut Captured) -> bool {
        let Self { stdin, stdout, stderr } = self;
        let feed = async {
            if let Some((mut pipe, bytes)) = stdin {
                // A program that does not read to the end has its reasons.
                let _ = pipe.write_all(&bytes).await;
            }
            Ok(())
        };
        let read_out = read(stdout, |bytes| out.take(bytes));
        let read_err = read(stderr, |bytes| {
            err.take_ends(bytes);
            true
        });
        tokio::try_join!(feed, read_out, read_err).is_ok()
    }
}

/// The rest of a pipe is too much.
struct TooMuch;

async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), TooMuch> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut buffer = vec![0; 16 << 10];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) => return Ok(()),
            Ok(n) if take(&buffer[..n]) => {}
            Ok(_) => return Err(TooMuch),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(()),
        }
    }
}

/// What is kept of a pipe.
pub(super) struct Captured {
    bytes: Vec<u8>,
    cap: usize,
}

impl Captured {
    pub(super) fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap }
    }

    /// Takes bytes up to the cap; false if there were more.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let room = self.cap.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.len() <= room
    }

    /// Takes all bytes, and forgets some of the middle if they are too many.
    ///
    /// A banner stands at the beginning and an error at the end.
    pub(super) fn take_ends(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.cap * 2 {
            self.forget_middle();
        }
    }

    fn forget_middle(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.cap);
        if excess > 0 {
            let head = self.cap / 4;
            self.bytes.drain(head..head + excess);
        }
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.forget_middle();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_output_is_cut_and_told() {
        let mut kept = Captured::new(4);
        assert!(kept.take(b"abc"));
        assert!(kept.take(b"d"));
        assert!(!kept.take(b"e"));
        assert_eq!(kept.into_bytes(), b"abcd");
    }

    #[test]
    fn of_too_many_errors_the_ends_are_kept() {
        let mut kept = Captured::new(8);
        for byte in b'a'..=b'z' {
            kept.take_ends(&[byte]);
        }
        assert_eq!(kept.into_bytes(), b"abuvwxyz");
        let mut short = Captured::new(8);
        short.take_ends(b"a");
        assert_eq!(short.into_bytes(), b"a");
    }
}
