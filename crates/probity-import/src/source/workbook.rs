//! Tables in workbooks (`.xlsx`): the records of one sheet, as those of a CSV file.

use std::collections::BTreeMap;

use quick_xml::{Reader, escape::unescape, events::Event};

use crate::results::archive::Archive;

/// Columns that a sheet may have.
const MOST_COLUMNS: usize = 16_384;

/// The rows of a sheet: the one of a name or a number, or the first. Each is as long as its last cell.
pub(super) fn rows(
    archive: &Archive<'_>,
    wanted: Option<&str>,
) -> Result<Vec<Vec<String>>, String> {
    let member = |name: &str| {
        let found = archive.find(name).ok_or_else(|| format!("there is no `{name}` in it"))?;
        archive.text(found).map_err(|error| error.to_string())
    };
    let sheets = sheets(&member("xl/workbook.xml")?)?;
    let number = match wanted {
        None => 1,
        Some(wanted) => {
            let named = sheets.iter().position(|it| it == wanted).map(|it| it + 1);
            let number = named.or_else(|| wanted.parse().ok());
            let known = number.filter(|it| (1..=sheets.len()).contains(it));
            known.ok_or_else(|| format!("there is no sheet `{wanted}` in it"))?
        }
    };
    let shared = match archive.find("xl/sharedStrings.xml") {
        Some(_) => texts(&member("xl/sharedStrings.xml")?)?,
        None => Vec::new(),
    };
    cells(&member(&format!("xl/worksheets/sheet{number}.xml"))?, &shared)
}

/// The names of the sheets, in their order.
fn sheets(xml: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    walk(xml, |name, attributes, event| {
        if let (Seen::Begins, "sheet") = (event, name) {
            names.push(attributes.get("name").cloned().unwrap_or_default());
        }
    })?;
    Ok(names)
}

/// The texts that cells share.
fn texts(xml: &str) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = Vec::new();
    walk(xml, |name, _, event| match (event, name) {
        (Seen::Begins, "si") => all.push(String::new()),
        (Seen::Text(text), "t") => {
            if let Some(last) = all.last_mut() {
                last.push_str(text);
            }
        }
        (Seen::Begins | Seen::Text(_), _) => {}
    })?;
    Ok(all)
}

/// The cells of a sheet, row by row.
fn cells(xml: &str, shared: &[String]) -> Result<Vec<Vec<String>>, String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut column, mut kind) = (0, String::new());
    walk(xml, |name, attributes, event| match (event, name) {
        (Seen::Begins, "row") => rows.push(Vec::new()),
        (Seen::Begins, "c") => {
            let next = rows.last().map_or(0, Vec::len);
            column = attributes.get("r").and_then(|it| place(it)).unwrap_or(next);
            kind = attributes.get("t").cloned().unwrap_or_default();
        }
        (Seen::Text(text), "v" | "t") => {
            let Some(row) = rows.last_mut().filter(|_| column < MOST_COLUMNS) else { return };
            if row.len() <= column {
                row.resize(column + 1, String::new());
            }
            match kind.as_str() {
                "s" => {
                    let known = text.parse::<usize>().ok().and_then(|it| shared.get(it));
                    row[column] = known.cloned().unwrap_or_default();
                }
                "b" => row[column] = (text == "1").to_string(),
                _ => row[column].push_str(text),
            }
        }
        (Seen::Begins | Seen::Text(_), _) => {}
    })?;
    Ok(rows)
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
    mut see: impl FnMut(&str, &BTreeMap<String, String>, Seen<'_>),
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
                see(plain(tag.name().as_ref()), &attributes, Seen::Begins);
            }
            Event::Text(part) => text.push_str(&part),
            Event::CData(part) => text.push_str(&part),
            Event::GeneralRef(name) => {
                let entity = format!("&{};", &*name);
                text.push_str(&unescape(&entity).map_err(|error| error.to_string())?);
            }
            Event::End(tag) => {
                see(plain(tag.name().as_ref()), &none, Seen::Text(&text));
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
        let rows = cells(sheet, &shared).unwrap();
        assert_eq!(rows[0], ["hello", "", "in"]);
        assert_eq!(rows[1][..2], ["3.5", "true"]);
        assert_eq!((rows[1].len(), rows[1][26].as_str()), (27, "a & b"));
        assert_eq!(
            texts("<sst><si><t>a</t></si><si><r><t>b </t></r><r><t>&amp; c</t></r></si></sst>")
                .unwrap(),
            ["a", "b & c"]
        );
        assert_eq!(
            sheets(r#"<w:workbook><sheets><sheet name="One"/></sheets></w:workbook>"#).unwrap(),
            ["One"]
        );
    }
}
