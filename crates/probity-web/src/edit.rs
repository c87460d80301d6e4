//! What people send to have kept: who they are, and what they think of a result.
//!
//! A form has to come from a page that this server made for this browser: it holds a token that is made of a cookie and of a
//! secret which nobody else knows. That comes on top of what every edit has to show (see `guard`).

use std::{io, sync::Arc, time::Duration};

use data_encoding::HEXLOWER;
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Method,
    body::Incoming,
    header::{self, HeaderValue},
    http::request::Parts,
};
use probity_core::{
    named_enum,
    people::{Mark, Name, Note, OVERALL, POINTS, Remark, ReplyDigest, Said, Unfit},
    record::CaseRecord,
};
use probity_grade::internal::people::criteria;
use probity_store::{LaneView, say};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

use crate::{
    Edits,
    address::{self, decoded, encoded},
    guard::{cookies, is_same, random},
    load,
    pages::case::Which,
    problem::Problem,
    query::Query,
    reply::{self, Response},
    site::Site,
};

const SESSION: &str = "probity_session";
const PERSON: &str = "probity_person";
/// Bytes of a session.
const SESSION_BYTES: usize = 16;
/// How long a browser remembers a name, in seconds.
const REMEMBERED: u32 = 365 * 24 * 60 * 60;
/// Bytes of a form: a note whose every character takes twelve of them, and the rest.
const MOST_BYTES: usize = 64 << 10;
/// Bytes that are read and thrown away, so that whoever sends too much hears why it is refused.
const MOST_DISCARDED: usize = 8 << 20;
/// How long sending a form may take.
const LONGEST: Duration = Duration::from_secs(20);
/// How long others who write to the store are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets people edit.
#[derive(Debug)]
pub(crate) struct Editing {
    edits: Edits,
    secret: [u8; 32],
    /// One at a time writes.
    turn: Arc<Semaphore>,
}

/// Somebody who may edit.
#[derive(Clone, Debug)]
pub(crate) struct Editor {
    /// Who they are, once they have said so.
    pub(crate) person: Option<Name>,
    /// What their forms have to hold.
    pub(crate) token: String,
    /// A session that begins with this request.
    new_session: Option<String>,
}

named_enum! {
    /// What a form says.
    pub(crate) enum What ("what a form says") {
        Verdict = "verdict",
        Points = "points",
        Note = "note",
        Tag = "tag",
        Untag = "untag",
    }
}

/// Whether something can be sent to an address to have it kept.
pub(crate) fn is_address(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    matches!(parts[..], ["person"] | ["runs", _, "cases", _, "remarks"])
}

/// Whether a program sends something, which reads no pages.
pub(crate) fn is_from_program(head: &Parts) -> bool {
    let accepts = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.contains("text/html"));
    head.method == Method::POST && !head.headers.get_all(header::ACCEPT).iter().any(accepts)
}

/// The name of the field with the points for a criterion.
pub(crate) fn points_field(criterion: &str) -> String {
    format!("points {criterion}")
}

/// What of a reply people can give points for.
pub(crate) fn rubric(record: &CaseRecord) -> Vec<probity_grade::internal::people::Criterion> {
    let mut all = criteria(record);
    if all.is_empty() {
        let (name, description) = (OVERALL.to_owned(), None);
        all.push(probity_grade::internal::people::Criterion {
            name,
            description,
            judges: Vec::new(),
        });
    }
    all
}

impl Editing {
    pub(crate) fn new(edits: Edits) -> io::Result<Self> {
        Ok(Self { edits, secret: random()?, turn: Arc::new(Semaphore::new(1)) })
    }

    /// Who asks for a page.
    pub(crate) fn editor(&self, headers: &HeaderMap) -> Editor {
        let person = cookies(headers, PERSON).find_map(|it| Name::of_person(&decoded(it)?).ok());
        let known = session(headers).map(ToOwned::to_owned);
        // Without a session no form is taken, which its sender is told.
        let new_session = match known {
            Some(_) => None,
            None => random::<SESSION_BYTES>().ok().map(|it| HEXLOWER.encode(&it)),
        };
        let session = known.or_else(|| new_session.clone()).unwrap_or_default();
        Editor { person, token: self.token(&session), new_session }
    }

    fn token(&self, session: &str) -> String {
        blake3::keyed_hash(&self.secret, session.as_bytes()).to_string()
    }

    /// Refuses a form that no page of this server made for this browser.
    fn check_token(&self, headers: &HeaderMap, form: &mut Query) -> Result<(), Problem> {
        let given = form.take("token").unwrap_or_default();
        let expected = session(headers).map(|it| self.token(it));
        match expected {
            Some(token) if is_same(&given, &token) => Ok(()),
            Some(_) | None => Err(Problem::forbidden(
                "this form is not from a page that is still good",
            )
            .hint(
                "load the page again: it was made before the server started, or cookies are off",
            )),
        }
    }
}

/// The session that a browser has been given.
fn session(headers: &HeaderMap) -> Option<&str> {
    let is_one =
        |it: &&str| it.len() == 2 * SESSION_BYTES && it.bytes().all(|it| it.is_ascii_hexdigit());
    cookies(headers, SESSION).find(is_one)
}

impl Editor {
    /// Adds what a page with forms needs: the session, and that forms say where they come from.
    pub(crate) fn mark(&self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        let cookie = self.new_session.as_ref().and_then(|session| {
            // Also sent along when a link of another site leads here, so that forms in other windows stay good.
            let cookie = format!("{SESSION}={session}; HttpOnly; SameSite=Lax; Path=/");
            HeaderValue::from_str(&cookie).ok()
        });
        if let Some(cookie) = cookie {
            headers.insert(header::SET_COOKIE, cookie);
        }
    }
}

/// Takes a form.
pub(crate) async fn answer(
    site: &Arc<Site>,
    editing: &Arc<Editing>,
    head: &Parts,
    body: Incoming,
) -> Result<Response, Problem> {
    let mut form = read_form(head, body).await?;
    editing.check_token(&head.headers, &mut form)?;
    let path = head.uri.path();
    let parts: Option<Vec<String>> = path.trim_start_matches('/').split('/').map(decoded).collect();
    let parts = parts.ok_or_else(|| Problem::bad_request("the address is not UTF-8 text"))?;
    match parts.as_slice() {
        [_, run, _, id, _] => {
            let mut query = Query::parse(head.uri.query())?;
            let which = Which::read(&mut query)?;
            query.finish()?;
            let place = Place { run: run.clone(), id: id.clone(), which };
            remark(site, editing, editing.editor(&head.headers), place, form).await
        }
        _ => introduce(form),
    }
}

async fn read_form(head: &Parts, body: Incoming) -> Result<Query, Problem> {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Problem::bad_request("what is sent is not a form"));
    }
    let read = timeout(LONGEST, read_body(body)).await;
    let bytes = read.map_err(|_| Problem::bad_request("the form did not come to its end"))??;
    let text = String::from_utf8(bytes);
    Query::of_form(&text.map_err(|_| Problem::bad_request("the form is not UTF-8 text"))?)
}

async fn read_body(mut body: Incoming) -> Result<Vec<u8>, Problem> {
    let (mut bytes, mut total) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad_request("the form did not come to its end"))?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len();
        if total <= MOST_BYTES {
            bytes.extend_from_slice(&data);
        } else if total > MOST_DISCARDED {
            break;
        }
    }
    match total <= MOST_BYTES {
        true => Ok(bytes),
        false => Err(Problem::bad_request(format!("the form is longer than {MOST_BYTES} bytes"))),
    }
}

fn unfit(error: &Unfit) -> Problem {
    Problem::bad_request(error.to_string())
}

/// Remembers who somebody is.
fn introduce(mut form: Query) -> Result<Response, Problem> {
    let person = form.take("name").unwrap_or_default();
    let person = Name::of_person(&person).map_err(|it| unfit(&it))?;
    let back = form.take("back").unwrap_or_default();
    form.finish()?;
    // Two slashes at the beginning would name another host.
    let back = format!("/{}", back.trim_start_matches(['/', '\\']));
    let cookie = format!(
        "{PERSON}={}; HttpOnly; SameSite=Lax; Path=/; Max-Age={REMEMBERED}",
        encoded(person.as_str())
    );
    let bad = |_| Problem::bad_request("`back` is not an address of a page");
    let back = HeaderValue::from_str(&back).map_err(bad)?;
    Ok(reply::redirect(&back, HeaderValue::from_str(&cookie).map_err(bad)?))
}

/// A result, as it stands in an address.
struct Place {
    run: String,
    id: String,
    which: Which,
}

/// A result that was found.
struct Found {
    run_id: String,
    lane: usize,
    view: LaneView,
    record: CaseRecord,
}

/// Keeps what somebody thinks of a result.
async fn remark(
    site: &Arc<Site>,
    editing: &Arc<Editing>,
    editor: Editor,
    place: Place,
    mut form: Query,
) -> Result<Response, Problem> {
    let person = editor.person.ok_or_else(|| {
        Problem::bad_request("nobody knows who says this").hint("go back and enter your name first")
    })?;
    let found = site.read(move |_, reader| {
        let case = load::case(reader, &place.run, &place.id)?;
        let at = place.which.find(&case)?;
        let run_id = case.row.run_id;
        let (lane, view, record) = case
            .results
            .into_iter()
            .nth(at)
            .ok_or_else(|| Problem::internal("a result is gone that was there"))?;
        Ok(Found { run_id, lane, view, record })
    });
    let found = found.await?;
    let seen = form.take("reply").unwrap_or_default();
    if seen != ReplyDigest::of(&found.record).to_string() {
        return Err(Problem::conflict(
            "the case has another reply by now, and nothing was changed",
        )
        .hint("load the page again"));
    }
    let remarks = remarks(&mut form, &found.record)?;
    form.finish()?;
    let at_ms = (editing.edits.now_ms)();
    let said = |remark| Said { person: person.clone(), at_ms, remark, carried_from: None };
    let said: Vec<Said> = remarks.into_iter().map(said).collect();
    let to = address::case(&found.run_id, &found.record.case_id, found.lane, found.record.repeat);
    write(site, editing, found, said).await?;
    let to = HeaderValue::from_str(&format!("{to}#people"));
    Ok(reply::see(&to.map_err(|error| Problem::internal(error.to_string()))?))
}

async fn write(
    site: &Arc<Site>,
    editing: &Arc<Editing>,
    found: Found,
    said: Vec<Said>,
) -> Result<(), Problem> {
    let turn = Arc::clone(&editing.turn).acquire_owned();
    let turn = timeout(PATIENCE, turn).await.map_err(|_| Problem::busy())?;
    let turn = turn.map_err(|_| Problem::internal("the server is ending"))?;
    let store = site.options.store.clone();
    let written = spawn_blocking(move || {
        // Whoever sent it may be gone: the turn lasts as long as the work.
        let _turn = turn;
        say(&store, &found.view, &found.record, &said, PATIENCE)
    });
    let written = written.await;
    Ok(written.map_err(|_| Problem::internal("keeping this failed"))??)
}

/// What a form says of a result.
fn remarks(form: &mut Query, record: &CaseRecord) -> Result<Vec<Remark>, Problem> {
    let what = form.take_as::<What>("what", "something that can be said of a result")?;
    let what = what.ok_or_else(|| Problem::bad_request("`what` is missing"))?;
    let tag = |form: &mut Query| {
        Name::of_tag(&form.take("tag").unwrap_or_default()).map_err(|it| unfit(&it))
    };
    Ok(match what {
        What::Verdict => {
            vec![Remark::Verdict { mark: form.take_as::<Mark>("mark", "`pass` or `fail`")? }]
        }
        What::Points => {
            let given = rubric(record).into_iter().map(|it| points(form, it.name));
            given.collect::<Result<_, _>>()?
        }
        What::Note => {
            let note = form.take("note").filter(|it| !it.trim().is_empty());
            let note = note.map(|it| it.parse::<Note>()).transpose();
            vec![Remark::Note { note: note.map_err(|it| unfit(&it))? }]
        }
        What::Tag => vec![Remark::Tag { tag: tag(form)?, is_set: true }],
        What::Untag => vec![Remark::Tag { tag: tag(form)?, is_set: false }],
    })
}

fn points(form: &mut Query, about: String) -> Result<Remark, Problem> {
    let points = form.take_as::<u8>(&points_field(&about), "a number of points")?;
    if points.is_some_and(|it| !POINTS.contains(&it)) {
        let (least, most) = (POINTS.start(), POINTS.end());
        return Err(Problem::bad_request(format!("points lie between {least} and {most}")));
    }
    Ok(Remark::Points { about, points })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use probity_store::Reader;

    use super::*;

    fn editing() -> Editing {
        Editing::new(Edits { now_ms: || 0 }).unwrap()
    }

    fn headers(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
        headers
    }

    fn form(token: &str) -> Query {
        Query::of_form(&format!("token={token}")).unwrap()
    }

    #[test]
    fn a_token_is_good_for_the_browser_and_the_server_that_it_was_made_for() {
        let editing = editing();
        let editor = editing.editor(&HeaderMap::new());
        let session = editor.new_session.clone().unwrap();
        let own = headers(&format!("{SESSION}={session}"));
        let status = |editing: &Editing, headers: &HeaderMap, token: &str| {
            editing.check_token(headers, &mut form(token)).map_err(|it| it.status.as_u16())
        };
        assert_eq!(status(&editing, &own, &editor.token), Ok(()));
        assert_eq!(editing.editor(&own).token, editor.token, "and stays the same");
        assert_eq!(status(&editing, &own, ""), Err(403));
        assert_eq!(status(&editing, &own, &"0".repeat(64)), Err(403));
        assert_eq!(status(&editing, &HeaderMap::new(), &editor.token), Err(403));
        let other = headers(&format!("{SESSION}={}", "a".repeat(32)));
        assert_eq!(status(&editing, &other, &editor.token), Err(403));
        let empty = headers(&format!("{SESSION}="));
        assert_eq!(status(&editing, &empty, &editing.token("")), Err(403));
        assert_eq!(status(&self::editing(), &own, &editor.token), Err(403));
    }

    /// A result of a store that is copied there.
    fn found(store: &Path) -> Found {
        let stored = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../probity-store/tests/fixtures/format8.db");
        fs::copy(stored, store).unwrap();
        let reader = Reader::open(store).unwrap();
        let run = reader.find("latest").unwrap();
        let view = reader.lanes(&run).unwrap().remove(0);
        let record = reader.case(&view, "pass").unwrap().remove(0);
        Found { run_id: run.run_id, lane: 0, view, record }
    }

    #[test]
    fn a_turn_to_write_lasts_as_long_as_the_writing() {
        let folder = tempfile::tempdir().unwrap();
        let mut site = crate::site::tests::site(&folder.path().join("x.db"));
        let store = folder.path().join("y.db");
        let found = found(&store);
        Arc::get_mut(&mut site).unwrap().options.store = store.clone();
        let editing = Arc::new(editing());
        let writer = rusqlite::Connection::open(&store).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let writing = tokio::spawn({
                let (site, editing) = (Arc::clone(&site), Arc::clone(&editing));
                async move { write(&site, &editing, found, Vec::new()).await }
            });
            while editing.turn.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            // Whoever sent the form goes away while the store is busy.
            writing.abort();
            assert!(writing.await.unwrap_err().is_cancelled());
            assert_eq!(editing.turn.available_permits(), 0);
            writer.execute_batch("COMMIT").unwrap();
            drop(editing.turn.acquire().await.unwrap());
        });
    }

    #[test]
    fn a_name_goes_into_a_cookie_and_comes_back() {
        let text = "name=Zo%C3%AB+%3B+%22B%22&back=%2F%2Fevil.example%2Fx";
        let response = introduce(Query::of_form(text).unwrap()).unwrap();
        assert_eq!(response.headers()["location"], "/evil.example/x");
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        let pair = cookie.split(';').next().unwrap();
        let person = editing().editor(&headers(pair)).person.unwrap();
        assert_eq!(person.as_str(), "Zoë ; \"B\"");
        for hostile in ["name=", "name=a%0d%0ab", "name=%E2%80%AE", "name=a&back=/%0d%0ax:y"] {
            let refused = introduce(Query::of_form(hostile).unwrap()).unwrap_err();
            assert_eq!(refused.status.as_u16(), 400, "{hostile}");
        }
    }

    #[test]
    fn only_some_addresses_take_anything() {
        for address in ["/person", "/runs/a/cases/b%2Fc/remarks"] {
            assert!(is_address(address), "{address}");
        }
        for other in ["/", "/person/x", "/runs/a/cases/b", "/api/v1/runs/a/cases/b/remarks"] {
            assert!(!is_address(other), "{other}");
        }
    }
}
