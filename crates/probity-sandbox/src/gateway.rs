//! The way out of a world: from one port of its own to a few addresses, and nowhere else.
//!
//! The port is in the network of the world, who listens there is the program itself. Names are resolved outside, so a
//! world needs no resolver.

#[cfg(target_os = "linux")]
mod serve;

use std::fmt;

#[cfg(target_os = "linux")]
pub(crate) use serve::Open;

/// The port where a world finds its gateway.
#[cfg(target_os = "linux")]
pub(crate) const PORT: u16 = 3128;

/// An address of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or a number, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Address {
    /// The address in `HOST:PORT`.
    pub fn read(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |host: &str| {
            !host.is_empty()
                && host.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it))
        };
        let host = match bare {
            Some(number) => number.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
            None if is_name(host) => host.to_ascii_lowercase(),
            None => return None,
        };
        let port = port.parse().ok().filter(|port| *port != 0)?;
        Some(Self { host, port })
    }
}

/// What a world reaches of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// Who gets everything that is sent to [`Gateway::ADDRESS`] and does not ask for a tunnel: a server that speaks HTTP.
    pub server: Option<Address>,
    /// Where tunnels may lead. The gateway is a proxy to who asks for one (`CONNECT`), and sees nothing of what goes
    /// through it.
    pub tunnels: Vec<Address>,
}

impl Gateway {
    /// Where a world finds it.
    pub const ADDRESS: &str = "127.0.0.1:3128";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let read = |text: &str| Address::read(text).map(|it| it.to_string());
        assert_eq!(read("API.example.com:443").as_deref(), Some("api.example.com:443"));
        assert_eq!(read("127.0.0.1:80").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(read("[::1]:80").as_deref(), Some("[::1]:80"));
        for wrong in
            ["", "host", "host:", ":80", "host:0", "host:70000", "a b:1", "::1:80", "a/b:1"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
