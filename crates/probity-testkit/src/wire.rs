//! A connection that can be cut from inside, politely or not.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
};

/// How a request tells its connection to end.
#[derive(Debug, Default)]
pub(crate) struct Line {
    cut: Notify,
    reset: AtomicBool,
}

impl Line {
    /// Closes the connection with FIN.
    pub(crate) fn close(&self) {
        self.cut.notify_one();
    }

    /// Closes the connection with RST.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
        self.cut.notify_one();
    }

    /// Waits until one of the above. Whoever serves the connection then drops it.
    pub(crate) async fn is_cut(&self) {
        self.cut.notified().await;
    }
}

/// A TCP stream that is reset when it is dropped, if its line says so.
pub(crate) struct Wire {
    stream: TcpStream,
    line: Arc<Line>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, line: Arc<Line>) -> Self {
        Self { stream, line }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.line.reset.load(Ordering::Relaxed) {
            // It fails only on a socket that is gone already.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
