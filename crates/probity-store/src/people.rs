//! What people say of results: written by whoever looks at them, while runs go on.

use std::{path::Path, time::Duration};

use probity_core::{
    named_enum,
    people::{Mark, Name, Note, Remark, ReplyDigest, Said, current},
    record::{CaseRecord, InputDigest},
};
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params, types::Type};

use crate::{LaneView, Reader, RunRow, StoreError, open, result};

named_enum! {
    /// The columns of a remark beside its lane.
    pub(crate) enum RemarkColumn ("a column of a remark") {
        CaseId = "case_id",
        Repeat = "repeat",
        Reply = "reply",
        Person = "person",
        AtMs = "at_ms",
        Matter = "matter",
        About = "about",
        Value = "value",
        CarriedFrom = "carried_from",
    }
}

named_enum! {
    /// What a remark is about.
    enum Matter ("the matter of a remark") {
        Verdict = "verdict",
        Points = "points",
        Note = "note",
        Tag = "tag",
    }
}

impl RemarkColumn {
    /// The names of all columns.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

/// A result, and all that people said of its reply, in order.
#[derive(Clone, Debug)]
pub struct Rated {
    /// The result.
    pub record: CaseRecord,
    /// What was said.
    pub history: Vec<Said>,
}

/// How much people have said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastRemark {
    count: u64,
    last: i64,
}

/// A result that something is said of.
struct Subject<'a> {
    lane: i64,
    case_id: &'a str,
    repeat: u32,
    reply: InputDigest,
}

impl<'a> Subject<'a> {
    fn of(lane: &LaneView, record: &'a CaseRecord) -> Self {
        let ReplyDigest(reply) = ReplyDigest::of(record);
        Self { lane: lane.row, case_id: &record.case_id, repeat: record.repeat, reply }
    }
}

/// What is copied of a result to another run.
struct Carried {
    lane: i64,
    case_id: String,
    repeat: u32,
    reply: InputDigest,
    history: Vec<Said>,
}

impl Carried {
    fn subject(&self) -> Subject<'_> {
        let Self { lane, case_id, repeat, reply, history: _ } = self;
        Subject { lane: *lane, case_id, repeat: *repeat, reply: *reply }
    }
}

impl Reader {
    /// All that people said of the reply of a result, in order.
    pub fn remarks(&self, lane: &LaneView, record: &CaseRecord) -> Result<Vec<Said>, StoreError> {
        history(&self.connection, &Subject::of(lane, record)).map_err(StoreError::of_reading)
    }

    /// What changes whenever somebody says something of results of lanes: how much was said, and the last of it.
    pub fn last_remark(&self, lanes: &[LaneView]) -> Result<LastRemark, StoreError> {
        let read = || {
            let mut sum = LastRemark::default();
            for lane in lanes {
                let sql = "SELECT count(*), coalesce(max(id), 0) FROM remarks WHERE lane = ?";
                let mut statement = self.connection.prepare_cached(sql)?;
                let (count, last) = statement
                    .query_row([lane.row], |row| Ok((row.get::<_, u64>(0)?, row.get(1)?)))?;
                sum.count += count;
                sum.last = sum.last.max(last);
            }
            Ok(sum)
        };
        read().map_err(StoreError::of_reading)
    }

    /// The results of a lane that people said something of one by one, in the order of their ids.
    pub fn rated<E: From<StoreError>>(
        &self,
        lane: &LaneView,
        mut each: impl FnMut(Rated) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT r.id FROM (SELECT DISTINCT lane, case_id, repeat FROM remarks WHERE lane = ?) m
                 JOIN results r ON r.lane = m.lane AND r.case_id = m.case_id AND r.repeat = m.repeat
                 WHERE r.stale = 0 ORDER BY r.case_id, r.repeat",
            )?;
            let rows = statement.query_map([lane.row], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<i64>>>()
        };
        for row in rows().map_err(StoreError::of_reading)? {
            let record = self.record_at(row)?;
            let history = self.remarks(lane, &record)?;
            if !history.is_empty() {
                each(Rated { record, history })?;
            }
        }
        Ok(())
    }
}

/// Keeps what a person says of the reply of a result. Nothing is kept of what they have said already.
///
/// Others that write to the store are waited for no longer than `patience`.
pub fn say(
    path: &Path,
    lane: &LaneView,
    record: &CaseRecord,
    said: &[Said],
    patience: Duration,
) -> Result<(), StoreError> {
    let mut connection = open(path)?;
    connection.busy_timeout(patience).map_err(StoreError::Write)?;
    let transaction = begin(&mut connection)?;
    let subject = Subject::of(lane, record);
    let write = || {
        let known = history(&transaction, &subject)?;
        for new in said {
            let of_same =
                |it: &&&Said| it.person == new.person && it.remark.is_on_matter_of(&new.remark);
            let before = current(&known).iter().find(of_same).map(|it| &it.remark);
            let is_news = match before {
                Some(before) => *before != new.remark,
                None => !new.remark.is_withdrawal(),
            };
            if is_news {
                insert(&transaction, &subject, new)?;
            }
        }
        Ok(())
    };
    write().and_then(|()| transaction.commit()).map_err(StoreError::Write)
}

/// Copies what people said of a run to another one that judges its replies again. Returns for how many results.
pub fn carry_remarks(path: &Path, from: &RunRow, to: &RunRow) -> Result<u64, StoreError> {
    let reader = Reader::open(path)?;
    let lanes = reader.lanes(to)?;
    let mut carried: Vec<Carried> = Vec::new();
    for before in reader.lanes(from)? {
        let Some(lane) = lanes.iter().find(|it| it.lane.key() == before.lane.key()) else {
            continue;
        };
        reader.rated(&before, |Rated { record, mut history }| {
            let digest = ReplyDigest::of(&record);
            let is_same =
                |it: &CaseRecord| it.repeat == record.repeat && ReplyDigest::of(it) == digest;
            if reader.case(lane, &record.case_id)?.iter().any(is_same) {
                for said in &mut history {
                    said.carried_from.get_or_insert_with(|| from.run_id.clone());
                }
                let CaseRecord { case_id, repeat, .. } = record;
                let ReplyDigest(reply) = digest;
                carried.push(Carried { lane: lane.row, case_id, repeat, reply, history });
            }
            Ok::<_, StoreError>(())
        })?;
    }
    if carried.is_empty() {
        return Ok(0);
    }
    let mut connection = open(path)?;
    let transaction = begin(&mut connection)?;
    let write = || {
        carried.iter().try_for_each(|it| {
            it.history.iter().try_for_each(|said| insert(&transaction, &it.subject(), said))
        })
    };
    write().and_then(|()| transaction.commit()).map_err(StoreError::Write)?;
    Ok(carried.len() as u64)
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(StoreError::Write)
}

fn history(connection: &Connection, of: &Subject<'_>) -> rusqlite::Result<Vec<Said>> {
    let mut statement = connection.prepare_cached(
        "SELECT person, at_ms, matter, about, value, carried_from FROM remarks
         WHERE lane = ? AND case_id = ? AND repeat = ? AND reply = ? ORDER BY id",
    )?;
    let values = params![of.lane, of.case_id, of.repeat, of.reply.0];
    statement.query_map(values, read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Said> {
    let wrong = |column, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error)
    };
    let name = |column| {
        let text: String = row.get(column)?;
        Name::of_person(&text).map_err(|error| wrong(column, error.into()))
    };
    let result::Name(matter) = row.get(2)?;
    let value: Option<String> = row.get(4)?;
    let remark = match matter {
        Matter::Verdict => {
            let mark = value.map(|it| it.parse::<Mark>()).transpose();
            Remark::Verdict { mark: mark.map_err(|error| wrong(4, error.into()))? }
        }
        Matter::Points => {
            let points = value.map(|it| it.parse::<u8>()).transpose();
            let points = points.map_err(|error| wrong(4, error.into()))?;
            Remark::Points { about: row.get(3)?, points }
        }
        Matter::Note => {
            let note = value.map(|it| it.parse::<Note>()).transpose();
            Remark::Note { note: note.map_err(|error| wrong(4, error.into()))? }
        }
        Matter::Tag => Remark::Tag { tag: name(3)?, is_set: value.is_some() },
    };
    Ok(Said { person: name(0)?, at_ms: row.get(1)?, remark, carried_from: row.get(5)? })
}

fn insert(connection: &Connection, of: &Subject<'_>, said: &Said) -> rusqlite::Result<()> {
    let Said { person, at_ms, remark, carried_from } = said;
    let (matter, about, value) = match remark {
        Remark::Verdict { mark } => (Matter::Verdict, "", mark.map(|it| it.as_str().to_owned())),
        Remark::Points { about, points } => {
            (Matter::Points, about.as_str(), points.map(|it| it.to_string()))
        }
        Remark::Note { note } => (Matter::Note, "", note.as_ref().map(|it| it.as_str().to_owned())),
        Remark::Tag { tag, is_set } => {
            (Matter::Tag, tag.as_str(), is_set.then(|| "set".to_owned()))
        }
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO remarks (lane, case_id, repeat, reply, person, at_ms, matter, about, value, carried_from)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        of.lane,
        of.case_id,
        of.repeat,
        of.reply.0,
        person.as_str(),
        at_ms,
        matter.as_str(),
        about,
        value,
        carried_from,
    ])?;
    Ok(())
}
