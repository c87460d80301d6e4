//! Files of other tools: their configurations, their results, their models.

use std::{
    fs,
    path::{Component, Path},
};

use probity_import::{Options, Origin, results};
use probity_load::suite::Suite;
use probity_model::{
    chat::{ChatMessage, ChatTemplate},
    gguf,
};

use crate::input::{BETWEEN, Folder, check, choice};

/// Stands in every file beside the folder that may be read.
const SECRET: &str = "kept-outside-4711";
/// Files beside the folder that a configuration may name.
const OUTSIDE: [&str; 6] =
    ["secret.txt", "secret.yaml", "secret.json", "secret.jsonl", "secret.csv", "secret.js"];
/// The most that a template of a model makes of a question.
const LONGEST_PROMPT: usize = 16 << 20;

/// A folder of files of another tool. The first byte says which tool it is said to be, if any, and each part of the rest is the
/// name of a file, a line feed and its content; the first one is imported.
///
/// Nothing outside of the folder is read, the same twice, and of what comes out our own loader says where it is wrong.
pub fn import(bytes: &[u8]) {
    thread_local! {
        static FOLDER: Folder = folder_beside_secrets();
    }
    let from: Vec<Option<Origin>> = [None].into_iter().chain(Origin::ALL.map(Some)).collect();
    let Some((from, bytes)) = choice(bytes, &from) else { return };
    let files: Vec<(&str, &[u8])> =
        bytes.split(|it| *it == BETWEEN).filter_map(named).take(8).collect();
    let Some((first, _)) = files.first() else { return };
    FOLDER.with(|folder| {
        for (name, content) in &files {
            // A name may be that of a folder that another file is in.
            let path = folder.path().join("inside").join(name);
            let _ = path.parent().map(fs::create_dir_all);
            let _ = fs::write(path, content);
        }
        let inside = folder.path().join("inside");
        let options = Options { from, ..Options::default() };
        let read = || probity_import::import(&inside.join(first), &options);
        let once = read();
        let shown = |outcome: &Result<probity_import::Outcome, _>| match outcome {
            Ok(it) => format!("{:?} {:?}", it.draft, it.notes),
            Err(probity_import::ImportError::Shape { what, notes }) => format!("{what} {notes:?}"),
            Err(error) => error.to_string(),
        };
        let text = shown(&once);
        assert!(!text.trim().is_empty());
        assert!(!text.contains(SECRET), "{text}");
        assert_eq!(shown(&read()), text);
        if let Ok(outcome) = once {
            let root = fs::canonicalize(&inside).expect("it is there");
            for file in &outcome.files {
                let file = fs::canonicalize(file).expect("it was read");
                assert!(file.starts_with(&root), "{}", file.display());
            }
            loads(&outcome.draft, folder);
        }
        fs::remove_dir_all(&inside).expect("the folder is ours");
        fs::create_dir(&inside).expect("the folder is ours");
    });
}

fn folder_beside_secrets() -> Folder {
    let folder = Folder::new();
    folder.write("inside/x", b"");
    for name in OUTSIDE {
        folder.write(name, format!("{SECRET}: {SECRET}\n").as_bytes());
    }
    folder
}

/// A file of an input: its name, and what is in it. Names do not leave the folder; contents may try.
fn named(part: &[u8]) -> Option<(&str, &[u8])> {
    let end = part.iter().position(|it| *it == b'\n')?;
    let name = std::str::from_utf8(&part[..end]).ok()?;
    let is_plain = |it: Component<'_>| matches!(it, Component::Normal(_));
    let is_short = name.len() <= 60 && !name.contains('\0') && !name.is_empty();
    let is_inside = is_short && Path::new(name).components().all(is_plain);
    is_inside.then(|| (name, &part[end + 1..]))
}

/// The suite that was made, with the files beside it, is one that our own loader takes, or it says where it is wrong.
fn loads(draft: &probity_import::draft::Draft, folder: &Folder) {
    let written = probity_import::write::render(draft, "");
    for (name, content) in &written.files {
        folder.write(&format!("inside/made/{name}"), content.as_bytes());
    }
    let (suite, problems) = Suite::parse(
        &written.suite,
        &probity_import::write::SUITE.into(),
        &folder.path().join("inside/made"),
        &|_| Vec::new(),
    );
    problems.iter().for_each(check);
    assert!(suite.is_some() || !problems.is_empty(), "{}", written.suite);
}

/// Results of another tool, whatever the file is called: the same twice, and a lane has results.
pub fn results(bytes: &[u8]) {
    thread_local! {
        static FOLDER: Folder = Folder::new();
    }
    const NAMES: [&str; 5] = [
        "results.json",
        "results.jsonl",
        "log.eval",
        "samples_task_2026-01-01T00-00-00.000000.jsonl",
        "results_2026-01-01T00-00-00.000000.json",
    ];
    let Some((name, bytes)) = choice(bytes, &NAMES) else { return };
    FOLDER.with(|folder| {
        let path = folder.write(name, bytes);
        let options = results::Options::default();
        let read = || match results::read(&path, &options) {
            Ok(found) => {
                let lanes = found.iter().flat_map(|it| &it.run.lanes);
                assert!(
                    lanes.clone().count() == 0
                        || lanes.map(|it| it.results.len()).sum::<usize>() > 0
                );
                format!("{found:?}")
            }
            Err(error) => error.to_string(),
        };
        let once = read();
        assert!(!once.trim().is_empty());
        assert_eq!(read(), once);
        fs::remove_file(path).expect("the folder is ours");
    });
}

/// A model: what is kept of its header is no longer than the file, and its template makes a text that is not too long.
pub fn gguf(bytes: &[u8]) {
    thread_local! {
        static FOLDER: Folder = Folder::new();
    }
    FOLDER.with(|folder| {
        let path = folder.write("model.gguf", bytes);
        let read = gguf::read(&path);
        if let Err(error) = &read {
            assert!(error.to_string().contains("model.gguf"));
        }
        let Ok(header) = read else { return };
        assert_eq!(header.bytes, bytes.len() as u64);
        let texts = [&header.name, &header.chat_template, &header.bos, &header.eos];
        let kept: usize = texts.into_iter().flatten().map(String::len).sum();
        // The marks of the beginning and the end may be the same token.
        assert!(kept + header.architecture.len() <= 2 * bytes.len());
        assert_eq!(gguf::read(&path).ok().as_ref(), Some(&header));
        let messages = [
            ChatMessage { role: "system", content: "Be brief." },
            ChatMessage { role: "user", content: "What is {{ 1 + 1 }}?" },
        ];
        if let Ok(template) = ChatTemplate::of(&header)
            && let Ok(text) = template.render(&messages)
        {
            assert!(text.len() <= LONGEST_PROMPT, "{} bytes", text.len());
            assert_eq!(template.render(&messages).ok(), Some(text));
        }
    });
}
