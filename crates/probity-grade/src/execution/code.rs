//! The code in a reply that becomes a file.

use probity_text::extract::{Extraction, Take};

/// What blocks of code are called, by the ending of the file and by the program that runs it.
const LANGUAGES: &[(&[&str], &[&str])] = &[
    (&["py", "python", "python3", "pytest"], &["python", "py", "python3"]),
    (&["sh", "bash", "dash"], &["bash", "sh", "shell", "zsh"]),
    (&["js", "mjs", "cjs", "node", "nodejs"], &["javascript", "js", "node", "mjs"]),
    (&["ts", "deno", "tsx"], &["typescript", "ts", "tsx"]),
    (&["rb", "ruby"], &["ruby", "rb"]),
    (&["pl", "perl"], &["perl", "pl"]),
    (&["php"], &["php"]),
    (&["lua"], &["lua"]),
    (&["awk", "gawk", "mawk"], &["awk"]),
    (&["sed"], &["sed"]),
    (&["sql", "sqlite3"], &["sql", "sqlite"]),
    (&["c", "gcc", "cc"], &["c"]),
    (&["cpp", "cc", "cxx", "g++"], &["cpp", "c++"]),
    (&["java", "javac"], &["java"]),
    (&["go"], &["go", "golang"]),
    (&["rs", "rustc"], &["rust", "rs"]),
    (&["r", "R", "Rscript"], &["r"]),
    (&["json", "jq"], &["json"]),
    (&["yaml", "yml"], &["yaml", "yml"]),
    (&["toml"], &["toml"]),
    (&["xml"], &["xml"]),
    (&["html"], &["html"]),
    (&["css"], &["css"]),
    (&["make", "mk", "Makefile"], &["make", "makefile"]),
];

/// The code in a reply: the last block of code in the language that the file promises, or the command that runs it; else
/// the last block; else all of it.
///
/// Many replies show the script first, and then how to start it.
pub(super) fn code_in(reply: &str, file: &str, run: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let ending = name.rsplit('.').next().into_iter();
    let programs = run.split(|it: char| !it.is_alphanumeric() && it != '+');
    let named = ending.chain(programs).find_map(|word| {
        LANGUAGES.iter().find(|(words, _)| words.contains(&word)).map(|(_, languages)| *languages)
    });
    let last = |language: Option<String>| {
        Extraction::CodeBlock { language, take: Take::Last }.find(reply).ok()
    };
    let fitting = named.unwrap_or_default().iter().filter_map(|it| last(Some((*it).to_owned())));
    let block = fitting.max_by_key(|it| it.start).or_else(|| last(None));
    let code = block.map_or(reply, |span| &reply[span]);
    format!("{}\n", code.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_fits_the_file_is_taken() {
        let reply = "```python\nprint(1)\n```\nRun it:\n```bash\npython3 answer.py\n```\n";
        for (file, run, code) in [
            ("answer.py", "python3 answer.py", "print(1)\n"),
            ("answer", "python3 answer", "print(1)\n"),
            ("run.sh", "bash run.sh", "python3 answer.py\n"),
            ("answer", "./answer", "python3 answer.py\n"),
            ("answer.rb", "ruby answer.rb", "python3 answer.py\n"),
        ] {
            assert_eq!(code_in(reply, file, run), code, "{file}");
        }
        assert_eq!(code_in("print(1)", "answer.py", "python3 answer.py"), "print(1)\n");
    }
}
