//! Serves the connections of a world.

use std::{
    collections::BTreeMap,
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use super::{Address, Gateway};

/// How long a connection may take to say where it leads, and an address to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long nobody is let in after a failure.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest request for a tunnel.
const LONGEST_HEAD: usize = 8 << 10;
/// Connections at a time.
const MOST: usize = 64;
/// How a request for a tunnel begins.
const CONNECT: &[u8] = b"CONNECT ";

impl Gateway {
    /// Serves who connects, until what is returned is dropped.
    pub(crate) fn open(&self, listener: TcpListener) -> io::Result<Open> {
        let shared = Arc::new(Shared { gateway: self.clone(), streams: Mutex::default() });
        let (ours, doorman) = (listener.try_clone()?, Arc::clone(&shared));
        let thread = thread::Builder::new().name("gateway".to_owned());
        thread.spawn(move || doorman.serve(&ours))?;
        Ok(Open { listener, shared })
    }
}

/// A gateway that is open. All connections end with it.
#[derive(Debug)]
pub(crate) struct Open {
    listener: TcpListener,
    shared: Arc<Shared>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut streams = self.shared.streams();
        streams.closed = true;
        // Who waits for the next connection is woken up by it.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        for pair in streams.open.values() {
            pair.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
    }
}

#[derive(Debug)]
struct Shared {
    gateway: Gateway,
    streams: Mutex<Streams>,
}

/// The connections, by their numbers: to the world, and to the address that it leads to.
#[derive(Debug, Default)]
struct Streams {
    open: BTreeMap<u64, Vec<TcpStream>>,
    next: u64,
    closed: bool,
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(_) if self.streams().closed => return,
                Err(_) => {
                    // Who came has gone again, or there are no descriptors left for a while.
                    thread::sleep(PAUSE);
                    continue;
                }
            };
            let Some(number) = self.enter(&stream) else { continue };
            let shared = Arc::clone(self);
            let started = thread::Builder::new().name("gateway".to_owned()).spawn(move || {
                // Who is cut off sees it, and there is nobody else to tell.
                let _ = shared.attend(stream, number);
                shared.streams().open.remove(&number);
            });
            if started.is_err() {
                self.streams().open.remove(&number);
            }
        }
    }

    /// Notes a connection. Nothing if there are too many already.
    fn enter(&self, stream: &TcpStream) -> Option<u64> {
        let mut streams = self.streams();
        if streams.closed || streams.open.len() >= MOST {
            return None;
        }
        streams.next += 1;
        let number = streams.next;
        streams.open.insert(number, vec![stream.try_clone().ok()?]);
        Some(number)
    }

    fn attend(&self, mut world: TcpStream, number: u64) -> io::Result<()> {
        world.set_read_timeout(Some(PATIENCE))?;
        let mut said = Vec::new();
        let is_tunnel = asks_for_tunnel(&mut world, &mut said)?;
        let target = match is_tunnel {
            true => tunnel_target(&mut world, &mut said)?
                .filter(|target| self.gateway.tunnels.contains(target)),
            false => self.gateway.server.clone(),
        };
        let Some(target) = target else { return refuse(&mut world, "403 Forbidden") };
        let Ok(mut outside) = connect(&target) else {
            return refuse(&mut world, "502 Bad Gateway");
        };
        {
            let mut streams = self.streams();
            if streams.closed {
                return Ok(());
            }
            let clone = outside.try_clone()?;
            streams.open.entry(number).or_default().push(clone);
        }
        if is_tunnel {
            world.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        }
        outside.write_all(&said)?;
        world.set_read_timeout(None)?;
        let (mut back_from, mut back_to) = (outside.try_clone()?, world.try_clone()?);
        thread::scope(|scope| {
            scope.spawn(|| pass_on(&mut back_from, &mut back_to));
            pass_on(&mut world, &mut outside);
        });
        Ok(())
    }
}

/// Hands on what comes, until nothing more does.
fn pass_on(from: &mut TcpStream, to: &mut TcpStream) {
    if io::copy(from, to).is_err() {
        let _ = from.shutdown(Shutdown::Both);
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Reads until it is clear whether a tunnel is asked for.
fn asks_for_tunnel(from: &mut TcpStream, said: &mut Vec<u8>) -> io::Result<bool> {
    while said.len() < CONNECT.len() && CONNECT.starts_with(said) {
        read_more(from, said)?;
    }
    Ok(said.starts_with(CONNECT))
}

/// Where a tunnel is to lead. What was said after the request remains.
fn tunnel_target(from: &mut TcpStream, said: &mut Vec<u8>) -> io::Result<Option<Address>> {
    const END: &[u8] = b"\r\n\r\n";
    let end = loop {
        if let Some(at) = said.windows(END.len()).position(|it| it == END) {
            break at + END.len();
        }
        if said.len() > LONGEST_HEAD {
            return Ok(None);
        }
        read_more(from, said)?;
    };
    let head: Vec<u8> = said.drain(..end).collect();
    let line = head[CONNECT.len()..].split(|it| *it == b' ').next().unwrap_or_default();
    Ok(std::str::from_utf8(line).ok().and_then(Address::read))
}

fn read_more(from: &mut TcpStream, said: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 4096];
    match from.read(&mut part)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => {
            said.extend_from_slice(&part[..length]);
            Ok(())
        }
    }
}

fn refuse(to: &mut TcpStream, status: &str) -> io::Result<()> {
    write!(to, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
    to.shutdown(Shutdown::Write)
}

fn connect(to: &Address) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (&*to.host, to.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it is sent, once.
    fn echo() -> (Address, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut back = stream.try_clone().unwrap();
            io::copy(&mut stream, &mut back).unwrap();
        });
        (Address { host: "127.0.0.1".to_owned(), port }, thread)
    }

    fn ask(gateway: &Gateway, said: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _open = gateway.open(listener).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn what_asks_for_no_tunnel_goes_to_the_server() {
        let (server, thread) = echo();
        let gateway = Gateway { server: Some(server), tunnels: Vec::new() };
        assert_eq!(ask(&gateway, "CON"), "", "neither one nor the other");
        assert_eq!(ask(&gateway, "GET / HTTP/1.1\r\n\r\n"), "GET / HTTP/1.1\r\n\r\n");
        thread.join().unwrap();
        assert!(ask(&Gateway::default(), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
    }

    #[test]
    fn tunnels_lead_where_they_may_and_nowhere_else() {
        let (target, thread) = echo();
        let gateway = Gateway { server: None, tunnels: vec![target.clone()] };
        for other in ["127.0.0.1:1", "example.com:443", "nonsense", ""] {
            let answer = ask(&gateway, &format!("CONNECT {other} HTTP/1.1\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 403 "), "{other}: {answer}");
        }
        let answer = ask(&gateway, &format!("CONNECT {target} HTTP/1.1\r\nhost: x\r\n\r\nhello"));
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello");
        thread.join().unwrap();
        let gone = ask(&gateway, &format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(gone.starts_with("HTTP/1.1 502 "), "{gone}");
    }

    #[test]
    fn connections_end_with_their_gateway() {
        let (target, thread) = echo();
        let gateway = Gateway { server: Some(target), tunnels: Vec::new() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = gateway.open(listener).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"hello!!!").unwrap();
        let mut back = [0; 8];
        stream.read_exact(&mut back).unwrap();
        drop(open);
        assert_eq!(stream.read(&mut back).unwrap_or(0), 0);
        thread.join().unwrap();
        assert!(TcpStream::connect(address).is_err());
    }
}
