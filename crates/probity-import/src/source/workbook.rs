//! Tables in workbooks (`.xlsx`): the records of one sheet, as those of a CSV file.

use std::collections::BTreeMap;

use quick_xml::{Reader, escape::unescape, events::Event};

use crate::results::archive::Archive;

/// Columns that a sheet may have.
const MOST_COLUMNS: usize = 16_384;

/// The rows of a sheet.
pub(super) struct Rows {
    /// Each is as long as its last cell.
    pub(super) rows: Vec<Vec<String>>,
    /// Bytes that they take.
    pub(super) bytes: usize,
}

/// The rows of a sheet: the one of a name or a number, or the first. They may take `most` bytes.
pub(super) fn rows(
    archive: &Archive<'_>,
    wanted: Option<&str>,
    most: usize,
) -> Result<Rows, String> {
    let member = |name: &str| {
        let found = archive.find(name).ok_or_else(|| format!("there is no `{name}` in it"))?;
        archive.text(found, most).map_err(|error| error.to_string())
    };
    let sheets = sheets(&member("xl/workbook.xml")?)?;
    let number = match wanted {
        None => 1,
        Some(wanted) => {
            let named = sheets.iter().position(|it| it.name == wanted).map(|it| it + 1);
            let number = named.or_else(|| wanted.parse().ok());
            let known = number.filter(|it| (1..=sheets.len()).contains(it));
            known.ok_or_else(|| format!("there is no sheet `{wanted}` in it"))?
        }
    };
    let shared = match archive.find("xl/sharedStrings.xml") {
        Some(_) => texts(&member("xl/sharedStrings.xml")?)?,
        None => Vec::new(),
    };
    let related = match archive.find(RELATIONS) {
        Some(_) => targets(&member(RELATIONS)?)?,
        None => BTreeMap::new(),
    };
    let sheet = sheets.get(number - 1).and_then(|it| related.get(&it.relation));
    let usual = format!("xl/worksheets/sheet{number}.xml");
    cells(&member(sheet.unwrap_or(&usual))?, &shared, most)
}

/// The part that says which part is which sheet.
const RELATIONS: &str = "xl/_rels/workbook.xml.rels";

/// A sheet of a workbook.
#[derive(Debug, PartialEq, Eq)]
struct Sheet {
    name: String,
    /// The id of the part that it is.
    relation: String,
}

/// The sheets, in their order.
fn sheets(xml: &str) -> Result<Vec<Sheet>, String> {
    let mut sheets = Vec::new();
    walk(xml, |name, attributes, event| {
        if let (Seen::Begins, "sheet") = (event, name) {
            let relation = attributes.iter().find(|(key, _)| key.ends_with(":id"));
            sheets.push(Sheet {
                name: attributes.get("name").cloned().unwrap_or_default(),
                relation: relation.map(|(_, id)| id.clone()).unwrap_or_default(),
            });
        }
        Ok(())
    })?;
    Ok(sheets)
}

/// The parts of a workbook, by their ids.
fn targets(xml: &str) -> Result<BTreeMap<String, String>, String> {
    let mut parts = BTreeMap::new();
    walk(xml, |name, attributes, event| {
        if let (Seen::Begins, "Relationship") = (event, name)
            && let (Some(id), Some(target)) = (attributes.get("Id"), attributes.get("Target"))
        {
            let part = match target.strip_prefix('/') {
                Some(whole) => whole.to_owned(),
                None => format!("xl/{target}"),
            };
            parts.insert(id.clone(), part);
        }
        Ok(())
    })?;
    Ok(parts)
}

/// The texts that cells share. How they are to be read aloud is no part of them.
fn texts(xml: &str) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = Vec::new();
    let mut is_spoken = false;
    walk(xml, |name, _, event| {
        match (event, name) {
            (Seen::Begins, "si") => {
                all.push(String::new());
                is_spoken = false;
            }
            (Seen::Begins, "rPh") => is_spoken = true,
            (Seen::Text(_), "rPh") => is_spoken = false,
            (Seen::Text(text), "t") if !is_spoken => {
                if let Some(last) = all.last_mut() {
                    last.push_str(text);
                }
            }
            (Seen::Begins | Seen::Text(_), _) => {}
        }
        Ok(())
    })?;
    Ok(all)
}

/// The cells of a sheet, row by row. They may take `most` bytes.
fn cells(xml: &str, shared: &[String], most: usize) -> Result<Rows, String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut column, mut kind) = (0, String::new());
    let mut bytes = 0_usize;
    let mut spend = |count: usize| {
        bytes = bytes.saturating_add(count);
        if bytes > most { Err(format!("its cells take more than {most} bytes")) } else { Ok(()) }
    };
    walk(xml, |name, attributes, event| {
        match (event, name) {
            (Seen::Begins, "row") => {
                spend(size_of::<Vec<String>>())?;
                rows.push(Vec::new());
            }
            (Seen::Begins, "c") => {
                let next = rows.last().map_or(0, Vec::len);
                column = attributes.get("r").and_then(|it| place(it)).unwrap_or(next);
                kind = attributes.get("t").cloned().unwrap_or_default();
            }
            (Seen::Text(text), "v" | "t") => {
                let row = rows.last_mut().filter(|_| column < MOST_COLUMNS);
                let Some(row) = row else { return Ok(()) };
                if row.len() <= column {
                    spend((column + 1 - row.len()) * size_of::<String>())?;
                    row.resize(column + 1, String::new());
                }
                let value = match kind.as_str() {
                    "s" => {
                        let known = text.parse::<usize>().ok().and_then(|it| shared.get(it));
                        row[column].clear();
                        known.map_or("", String::as_str)
                    }
                    "b" if text == "1" => "true",
                    "b" => "false",
                    _ => text,
                };
                spend(value.len())?;
                row[column].push_str(value);
            }
            (Seen::Begins | Seen::Text(_), _) => {}
        }
        Ok(())
    })?;
    Ok(Rows { rows, bytes })
}

/// The column of a cell such as `AB12`, from 0 on.
fn place(cell: &str) -> Option<usize> {
    let letters = cell.bytes().take_while(u8::is_ascii_uppercase);
    let number = letters
        .fold(0_usize, |sum, it| sum.saturating_mul(26).saturating_add(usize::from(it - b'A') + 1));
    number.checked_sub(1)
}

#[derive(Clone, Copy)]
enum Seen<'s> {
    /// An element begins.
    Begins,
    /// All the text of an element without others in it, at its end.
    Text(&'s str),
}

/// Goes through the elements of a document.
fn walk(
    xml: &str,
    mut see: impl FnMut(&str, &BTreeMap<String, String>, Seen<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: quick_xml::Error| error.to_string();
    let mut reader = Reader::from_str(xml);
    let mut text = String::new();
    let none = BTreeMap::new();
    loop {
        match reader.read_event().map_err(failed)? {
            Event::Eof => return Ok(()),
            Event::Start(tag) | Event::Empty(tag) => {
                text.clear();
                let mut attributes = BTreeMap::new();
                for attribute in tag.attributes() {
                    let attribute = attribute.map_err(|error| error.to_string())?;
                    let value = unescape(&attribute.value).map_err(|error| error.to_string())?;
                    attributes.insert(attribute.key.as_ref().to_owned(), value.into_owned());
                }
                see(plain(tag.name().as_ref()), &attributes, Seen::Begins)?;
            }
            Event::Text(part) => text.push_str(&part),
            Event::CData(part) => text.push_str(&part),
            Event::GeneralRef(name) => {
                let entity = format!("&{};", &*name);
                text.push_str(&unescape(&entity).map_err(|error| error.to_string())?);
            }
            Event::End(tag) => {
                see(plain(tag.name().as_ref()), &none, Seen::Text(&text))?;
                text.clear();
            }
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::DocType(_) => {}
        }
    }
}

/// A name without its namespace.
fn plain(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_where_they_say() {
        let shared = ["hello".to_owned(), "a & b".to_owned()];
        let sheet = r#"<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>in</t></is></c></row>
            <row r="2"><c r="A2"><v>3.5</v></c><c r="B2" t="b"><v>1</v></c><c r="AA2" t="s"><v>1</v></c></row></sheetData></worksheet>"#;
        let rows = cells(sheet, &shared, 10_000).unwrap().rows;
        assert_eq!(rows[0], ["hello", "", "in"]);
        assert_eq!(rows[1][..2], ["3.5", "true"]);
        assert_eq!((rows[1].len(), rows[1][26].as_str()), (27, "a & b"));
        assert_eq!(
            texts("<sst><si><t>a</t></si><si><r><t>b </t></r><r><t>&amp; c</t></r></si></sst>")
                .unwrap(),
            ["a", "b & c"]
        );
        let book = r#"<w:workbook><sheets><sheet name="One" r:id="rId7"/></sheets></w:workbook>"#;
        let one = Sheet { name: "One".to_owned(), relation: "rId7".to_owned() };
        assert_eq!(sheets(book).unwrap(), [one]);
        let related = r#"<Relationships><Relationship Id="rId7" Target="worksheets/sheet3.xml"/>
            <Relationship Id="rId8" Target="/xl/other.xml"/></Relationships>"#;
        let parts = targets(related).unwrap();
        assert_eq!(
            (&*parts["rId7"], &*parts["rId8"]),
            ("xl/worksheets/sheet3.xml", "xl/other.xml")
        );
    }

    #[test]
    fn how_texts_are_spoken_is_left_out() {
        let shared = "<sst><si><t>課長</t><rPh sb=\"0\" eb=\"2\"><t>カチョウ</t></rPh></si><si><t>b</t></si></sst>";
        assert_eq!(texts(shared).unwrap(), ["課長", "b"]);
    }

    #[test]
    fn a_small_sheet_that_means_a_large_one_is_refused() {
        let far = r#"<row><c r="XFD1"><v>1</v></c></row>"#.repeat(100);
        assert!(cells(&far, &[], 1 << 20).is_err());
        let shared = ["x".repeat(10_000)];
        let same = r#"<row><c r="A1" t="s"><v>0</v></c></row>"#.repeat(200);
        assert!(cells(&same, &shared, 1 << 20).is_err());
        assert!(cells(&same, &shared, 4 << 20).is_ok());
    }
}
