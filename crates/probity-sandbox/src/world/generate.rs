//! Generated bulk: the same bytes for the same seed.

use fastrand::Rng;

use super::LineForm;

const WORDS: &[&str] = &[
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jetty",
    "kelp", "lagoon", "meadow", "north", "ocean", "prairie", "quarry", "river", "summit", "tundra",
    "upland", "valley", "willow", "yarrow", "zephyr", "error", "warning", "the", "and", "of",
];

/// Bytes without a pattern.
pub(super) fn noise(size: u64, seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    (0..size).map(|_| random.u8(..)).collect()
}

/// Lines of a form. Times in them count up from a fixed day.
pub(super) fn lines(form: LineForm, count: u32, seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let mut text = String::new();
    if form == LineForm::Csv {
        text.push_str("id,name,city,amount,date\n");
    }
    for number in 0..count {
        text.push_str(&line(form, number, &mut random));
        text.push('\n');
    }
    text
}

fn word(random: &mut Rng) -> &'static str {
    WORDS[random.usize(..WORDS.len())]
}

fn line(form: LineForm, number: u32, random: &mut Rng) -> String {
    match form {
        LineForm::Prose => {
            let words: Vec<_> = (0..random.usize(3..12)).map(|_| word(random)).collect();
            words.join(" ")
        }
        LineForm::Access => {
            let address = format!("10.0.{}.{}", random.u8(0..4), random.u8(1..20));
            let method = ["GET", "GET", "GET", "POST", "HEAD"][random.usize(..5)];
            let status = [200, 200, 200, 301, 404, 404, 500][random.usize(..7)];
            let page = word(random);
            let (hour, minute, second) = clock(number);
            let size = random.u32(100..90_000);
            format!(
                "{address} - - [03/Mar/2025:{hour:02}:{minute:02}:{second:02} +0000] \"{method} /{page}.html HTTP/1.1\" {status} {size} \"-\" \"Mozilla/5.0 ({page})\""
            )
        }
        LineForm::Syslog => {
            let (hour, minute, second) = clock(number);
            let (program, id) =
                (["sshd", "cron", "kernel", "nginx"][random.usize(..4)], random.u16(..));
            let what = [
                "session opened for user ada",
                "Failed password for root",
                "error: disk full",
                "started",
            ];
            format!(
                "Mar  3 {hour:02}:{minute:02}:{second:02} harbor {program}[{id}]: {}",
                what[random.usize(..4)]
            )
        }
        LineForm::Csv | LineForm::Tsv => {
            let sign = if form == LineForm::Csv { "," } else { "\t" };
            let (name, city) = (word(random), word(random));
            let (amount, cents) = (random.u32(1..2000), random.u8(..100));
            let day = number % 28 + 1;
            [
                (number + 1).to_string(),
                name.to_owned(),
                city.to_owned(),
                format!("{amount}.{cents:02}"),
                format!("2025-03-{day:02}"),
            ]
            .join(sign)
        }
        LineForm::Numbers => random.i32(-50..500).to_string(),
    }
}

fn clock(number: u32) -> (u32, u32, u32) {
    let seconds = number * 37;
    (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}
