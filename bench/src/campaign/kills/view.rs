//! `probity view --allow-edit`, hit while somebody writes notes: what was confirmed is there, and nothing is there twice.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{HITS, Hit, LEFT, LOST, Stand, TWICE, end, scenes, strike};
use crate::campaign::{
    Shot,
    room::{Lab, PATIENCE, Room, Running},
};

const CASE: &str = "/runs/latest/cases/case-1";

pub(super) fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::run(&stand)?;
    let room = &stand.room;
    let hit = *shot.choose(&HITS);
    let after = Duration::from_millis(shot.random.u64(0..400));
    let what = format!("view --allow-edit, {hit:?} after {after:?}");
    let running = room.start(room.command(&["view", "--port", "0", "--allow-edit"]))?;
    let page = Page::open(&running)?;
    if !page.note(0)? {
        return Err(io::Error::other("a note was refused"));
    }
    let is_over = AtomicBool::new(false);
    let (confirmed, ran) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut confirmed = 1_u32;
            while !is_over.load(Ordering::Relaxed) && page.note(confirmed).unwrap_or(false) {
                confirmed += 1;
            }
            confirmed
        });
        thread::sleep(after);
        strike(hit, &running, shot);
        let ran = end(running, Duration::from_secs(3), &what, shot);
        is_over.store(true, Ordering::Relaxed);
        (writer.join().unwrap_or(0), ran)
    });
    let ran = ran?;
    let is_known = matches!(ran.code, Some(0 | 3 | 130)) || hit == Hit::Kill || ran.code.is_none();
    shot.expect(is_known && !ran.is_crash(), super::DIFFERING, || {
        format!("{what}: {}", ran.tail())
    });
    let orphans = room.orphans();
    shot.expect(orphans.is_empty(), LEFT, || format!("{what}: {}", orphans.join("; ")));
    let kept = tags(room)?;
    let expected: Vec<String> = (0..confirmed).map(|at| format!("note-{at}")).collect();
    let lost: Vec<&String> = expected.iter().filter(|it| !kept.contains(it)).collect();
    shot.expect(lost.is_empty(), LOST, || format!("{what}: {lost:?} of {confirmed}"));
    // One more may have been under way.
    let most = usize::try_from(confirmed).unwrap_or(usize::MAX) + 1;
    shot.expect(kept.len() <= most, TWICE, || {
        format!("{what}: {} kept of {confirmed}", kept.len())
    });
    Ok(())
}

/// A page of the server, as a browser has it.
struct Page {
    address: String,
    cookie: String,
    token: String,
    reply: String,
}

impl Page {
    fn open(running: &Running) -> io::Result<Self> {
        let address = listening(running)?;
        let mut page =
            Self { address, cookie: String::new(), token: String::new(), reply: String::new() };
        page.load()?;
        let form = format!("token={}&name=ada&back=%2F", page.token);
        page.post("/person", &form)?;
        page.load()?;
        Ok(page)
    }

    fn load(&mut self) -> io::Result<()> {
        let host = self.address.clone();
        let head = format!("GET {CASE} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n", self.cookie);
        let answer = self.send(&head, "")?;
        self.keep(&answer);
        let hidden = |name: &str| {
            let start = format!("type=\"hidden\" name=\"{name}\" value=\"");
            let rest = answer.split_once(&start).map_or("", |it| it.1);
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        (self.token, self.reply) = (hidden("token"), hidden("reply"));
        match self.token.is_empty() {
            true => Err(io::Error::other("the page has no form")),
            false => Ok(()),
        }
    }

    /// Sets a tag. Whether that was confirmed is returned.
    fn note(&self, number: u32) -> io::Result<bool> {
        let (token, reply) = (&self.token, &self.reply);
        let form = format!("token={token}&reply={reply}&what=tag&tag=note-{number}");
        Ok(post(self, &format!("{CASE}/remarks?"), &form)?.starts_with("HTTP/1.1 303"))
    }

    fn post(&mut self, action: &str, form: &str) -> io::Result<()> {
        let answer = post(self, action, form)?;
        self.keep(&answer);
        Ok(())
    }

    fn keep(&mut self, answer: &str) {
        for line in answer.lines().take_while(|it| !it.is_empty()) {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("set-cookie") {
                let pair = value.split(';').next().unwrap_or_default();
                let known = std::mem::take(&mut self.cookie);
                let name = pair.split('=').next().unwrap_or_default();
                let others = known.split("; ").filter(|it| !it.is_empty());
                let others = others.filter(|it| it.split('=').next() != Some(name));
                self.cookie = others.chain([pair]).collect::<Vec<_>>().join("; ");
            }
        }
    }

    fn send(&self, head: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "{head}Connection: close\r\n\r\n{body}")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

fn post(page: &Page, action: &str, form: &str) -> io::Result<String> {
    let (host, cookie, length) = (&page.address, &page.cookie, form.len());
    let head = format!(
        "POST {action} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\nAccept: text/html\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"
    );
    page.send(&head, form)
}

/// The address that a server prints when it listens.
fn listening(running: &Running) -> io::Result<String> {
    let begun = Instant::now();
    loop {
        let said = running.said();
        if let Some(line) = said.lines().next().filter(|_| said.contains('\n')) {
            let address = line.strip_prefix("http://").unwrap_or(line);
            return Ok(address.split('/').next().unwrap_or_default().to_owned());
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other("the server does not listen"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The tags of the case, as the server that is started next shows them.
fn tags(room: &Room<'_>) -> io::Result<Vec<String>> {
    let running = room.start(room.command(&["view", "--port", "0"]))?;
    let address = listening(&running)?;
    let page = Page { address, cookie: String::new(), token: String::new(), reply: String::new() };
    let head = format!("GET /api/v1{CASE} HTTP/1.1\r\nHost: {}\r\n", page.address);
    let answer = page.send(&head, "");
    running.signal(rustix::process::Signal::TERM);
    running.end()?;
    let answer = answer?;
    let body = answer.split_once("\r\n\r\n").map_or("", |it| it.1);
    let case: Value = serde_json::from_str(body).map_err(io::Error::other)?;
    let people = case["results"][0]["people"].as_array().cloned().unwrap_or_default();
    Ok(people.iter().filter_map(|it| it["tag"].as_str()).map(ToOwned::to_owned).collect())
}
