//! Descriptors that go from process to process, each with a byte.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Sends a byte, and a descriptor with it.
pub(crate) fn send(to: impl AsFd, byte: u8, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &with {
        ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
    }
    sendmsg(to, &[io::IoSlice::new(&[byte])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next byte and what comes with it. [`io::ErrorKind::UnexpectedEof`] if nobody is there any more.
pub(crate) fn receive(from: impl AsFd) -> io::Result<(u8, Option<OwnedFd>)> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [io::IoSliceMut::new(&mut byte)];
    let received = loop {
        match recvmsg(&from, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    match received.bytes {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((byte[0], first(&mut ancillary))),
    }
}

/// The descriptor that came with a message.
pub(crate) fn first(ancillary: &mut RecvAncillaryBuffer<'_>) -> Option<OwnedFd> {
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        RecvAncillaryMessage::ScmCredentials(_) | _ => None,
    })
}
