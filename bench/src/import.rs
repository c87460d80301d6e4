//! How long an import of a table takes, and of one that is twice as long.

use std::{fmt::Write as _, fs, io, path::Path};

use crate::{classify::command, measure};

/// Prints the time of `probity import` for a table of tests.
pub(crate) fn run(probity: &Path, count: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    for count in [count, 2 * count] {
        let mut table = "question,__expected,__description\n".to_owned();
        for at in 0..count {
            let _ = writeln!(table, "what is {at} and one?,icontains: {},sum {at}", at + 1);
        }
        fs::write(folder.path().join("tests.csv"), table)?;
        let config = folder.path().join("promptfooconfig.yaml");
        fs::write(&config, "prompts: ['Say {{question}}']\nproviders: [echo]\ntests: tests.csv\n")?;
        let mut import = command(probity);
        import.arg("import").arg(&config).arg("-o").arg(folder.path().join("out")).arg("--force");
        let measured = measure::run(&mut import)?;
        println!("import of {count} tests: {:.2} s", measured.wall.as_secs_f64());
    }
    Ok(())
}
