//! The socket in the network of a world that leads to its gateway.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::Doing as _;
use crate::gateway::PORT;

/// Listens where the world looks for its gateway. This process is in the network of the world, with all rights in it.
pub(super) fn listen() -> Result<TcpListener, String> {
    raise_loopback().doing("raising the network of the world")?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).doing("listening in the world")
}

/// Switches on the device through which a machine talks to itself.
fn raise_loopback() -> io::Result<()> {
    // No protocol is that of devices and routes.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // The number of the error follows the header.
    let code = answer[..length].get(HEADER..HEADER + 4).and_then(|it| it.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel does not answer")),
    }
}

/// The length of the header of a message.
const HEADER: usize = 16;

/// `struct nlmsghdr` and `struct ifinfomsg`: sets the flag `IFF_UP` of the first device, and wants to hear of it.
fn request() -> [u8; 32] {
    const FIRST_DEVICE: u32 = 1;
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
    let up = libc::IFF_UP.cast_unsigned();
    let mut message = [0; 32];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &32_u32.to_ne_bytes());
    put(4, &libc::RTM_NEWLINK.to_ne_bytes());
    put(6, &u16::try_from(flags).unwrap_or_default().to_ne_bytes());
    put(20, &FIRST_DEVICE.to_ne_bytes());
    put(24, &up.to_ne_bytes());
    put(28, &up.to_ne_bytes());
    message
}
