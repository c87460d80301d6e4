//! Operands and values of options that the standard does not know.

use super::{
    Checker,
    args::Arg,
    options::{Given, Parsed, is_number},
    rules::Rule,
    standard::Utility,
};

/// Operands of `dd`.
const DD: &[&str] = &["bs", "cbs", "conv", "count", "ibs", "if", "obs", "of", "seek", "skip"];

/// What `dd conv=` takes.
const CONVERSIONS: &[&str] = &[
    "ascii", "block", "ebcdic", "ibm", "lcase", "noerror", "notrunc", "swab", "sync", "ucase",
    "unblock",
];

/// What `ps -o` takes.
const PS_FIELDS: &[&str] = &[
    "args", "comm", "etime", "group", "nice", "pcpu", "pgid", "pid", "ppid", "rgroup", "ruser",
    "time", "tty", "user", "vsz",
];

/// Conversions of `date` in POSIX.1-2017; POSIX.1-2024 takes those of `strftime`.
const DATE_2017: &str = "aAbBcCdDehHIjmMnprStTuUVwWxXyYZ%";
const DATE_2024: &str = "FgGRsz";

impl Checker<'_> {
    pub(super) fn head(&mut self, parsed: &Parsed<'_>) {
        let instead = "`sed '$d'` takes the last line away";
        self.values(parsed, "nc", |it| !it.starts_with('-'), instead);
    }

    pub(super) fn sort(&mut self, utility: &'static Utility, parsed: &Parsed<'_>) {
        self.values(parsed, "k", is_sort_key, "a key of the letters b, d, f, i, n and r");
        self.obsolete_number("sort", utility, parsed.operands);
    }

    pub(super) fn split(&mut self, parsed: &Parsed<'_>) {
        self.values(parsed, "b", is_split_size, "bytes, or a number with `k` or `m`");
    }

    pub(super) fn touch(&mut self, parsed: &Parsed<'_>) {
        self.values(parsed, "d", is_iso_time, "`YYYY-MM-DDThh:mm:SS`, or `-t`");
    }

    /// Reports values of these options that do not pass.
    pub(super) fn values(
        &mut self,
        parsed: &Parsed<'_>,
        letters: &str,
        passes: impl Fn(&str) -> bool,
        instead: &str,
    ) {
        for Given { letter, value, span } in &parsed.given {
            let Some(value) = value.filter(|_| letters.contains(*letter)) else { continue };
            if !passes(value) {
                let message = format!("`-{letter} {value}` is not in the standard");
                self.report_with(Rule::OptionArgument, *span, message, Some(instead));
            }
        }
    }

    fn operand(&mut self, arg: &Arg<'_>, instead: Option<&str>) {
        let message = format!("`{}` is not an operand of the standard", arg.text);
        self.report_with(Rule::Operand, arg.span(), message, instead);
    }

    /// `tail +5`, `sort +1`
    pub(super) fn obsolete_number(
        &mut self,
        name: &str,
        utility: &'static Utility,
        operands: &[Arg<'_>],
    ) {
        let first = operands.first();
        if let Some(arg) = first.filter(|it| it.text.strip_prefix('+').is_some_and(is_number)) {
            let message = format!("`{name} {}` is no longer in the standard", arg.text);
            let instead = utility.instead("+NUM").map(|it| it.replace("NUM", &arg.text[1..]));
            self.report_with(Rule::Operand, arg.span(), message, instead.as_deref());
        }
    }

    pub(super) fn date(&mut self, operands: &[Arg<'_>]) {
        let Some(format) = operands.iter().find(|it| it.text.starts_with('+')) else { return };
        let mut rest = &format.text[1..];
        while let Some(at) = rest.find('%') {
            rest = &rest[at + 1..];
            let conversion = rest.strip_prefix(['E', 'O']).unwrap_or(rest);
            let Some(letter) = conversion.chars().next() else { return };
            let known = DATE_2017.contains(letter) || !self.is_2017() && DATE_2024.contains(letter);
            if !known {
                let message = format!("`date` of the standard has no conversion `%{letter}`");
                let instead = match letter {
                    'F' => Some("`%Y-%m-%d`"),
                    'R' => Some("`%H:%M`"),
                    'k' => Some("`%H`"),
                    'l' => Some("`%I`"),
                    'P' => Some("`%p`"),
                    '-' | '_' | '^' => Some("the conversion without its flag"),
                    _ => Some("no portable form"),
                };
                return self.report_with(Rule::Operand, format.span(), message, instead);
            }
            rest = &conversion[letter.len_utf8()..];
        }
    }

    pub(super) fn dd(&mut self, operands: &[Arg<'_>]) {
        for arg in operands {
            let Some((key, value)) = arg.text.split_once('=') else { continue };
            if !DD.contains(&key) {
                let instead = match key {
                    "status" => Some("`2>/dev/null`, or leave it out"),
                    "iseek" => Some("`skip=`"),
                    "oseek" => Some("`seek=`"),
                    _ => Some("leave it out"),
                };
                self.operand(arg, instead);
                continue;
            }
            let sizes = matches!(key, "bs" | "cbs" | "ibs" | "obs") && arg.literal;
            if sizes && !value.split('x').all(is_dd_size) {
                self.operand(arg, Some("bytes, or a number with `k`: `bs=1024k` is 1 MiB"));
            }
            let conversions = key == "conv" && arg.literal;
            if conversions && value.split(',').any(|it| !CONVERSIONS.contains(&it)) {
                self.operand(arg, Some("`sync` after it, for `fsync`; otherwise leave it out"));
            }
        }
    }

    pub(super) fn ps(&mut self, parsed: &Parsed<'_>) {
        if let Some(arg) = parsed.operands.first().filter(|it| it.literal) {
            self.operand(arg, Some("`ps -A -o user,pid,ppid,pcpu,vsz,tty,time,args`"));
        }
        for Given { value, span, .. } in parsed.given.iter().filter(|it| it.letter == 'o') {
            let names = value.unwrap_or_default().split([',', ' ']).filter(|it| !it.is_empty());
            // What follows `=` is a heading, up to the end.
            for name in names {
                let field = name.split('=').next().unwrap_or_default();
                if !PS_FIELDS.contains(&field) {
                    let message = format!("`ps -o` of the standard has no field `{field}`");
                    let instead = match field {
                        "cmd" | "command" => Some("`args`"),
                        "%cpu" => Some("`pcpu`"),
                        "uname" | "euser" | "uid" => Some("`user`"),
                        "ucmd" | "ucomm" => Some("`comm`"),
                        "vsize" => Some("`vsz`"),
                        "tt" => Some("`tty`"),
                        "ni" => Some("`nice`"),
                        _ => Some("leave it out"),
                    };
                    self.report_with(Rule::OptionArgument, *span, message, instead);
                }
                if name.contains('=') {
                    break;
                }
            }
        }
    }

    /// GNU's `expr` has words for what the standard writes with `:`.
    pub(super) fn expr(&mut self, utility: &'static Utility, args: &[Arg<'_>]) {
        self.about("expr", utility, args);
        let [_, first, _, ..] = args else { return };
        let instead = match first.value() {
            Some("length") => "`${#x}`",
            Some("substr") => "`printf '%s\\n' \"$x\" | cut -c 2-4`",
            Some("index") => "`${x%%[CHARS]*}` and its length",
            Some("match") => "`expr \"$x\" : RE`",
            _ => return,
        };
        // `expr length = x` compares.
        if !matches!(args[2].value(), Some("=" | "!=" | "<" | ">" | "<=" | ">=" | "|" | "&" | ":"))
        {
            self.operand(first, Some(instead));
        }
    }

    pub(super) fn sleep(&mut self, operands: &[Arg<'_>]) {
        if let [first, rest @ ..] = operands
            && let Some(text) = first.value()
            && (!is_number(text) || !rest.is_empty())
        {
            self.operand(first, Some("whole seconds: `sleep 300`"));
        }
    }
}

/// `2,3nr`, `1.2b`: fields, characters and letters of the standard.
fn is_sort_key(key: &str) -> bool {
    key.chars().all(|it| it.is_ascii_digit() || ",.bdfinr".contains(it))
}

fn is_split_size(size: &str) -> bool {
    is_number(size.strip_suffix(['k', 'm']).unwrap_or(size))
}

fn is_dd_size(size: &str) -> bool {
    is_number(size.strip_suffix(['k', 'b']).unwrap_or(size))
}

/// `YYYY-MM-DDThh:mm:SS`, with a blank for the `T`, a fraction and a `Z` where wanted.
fn is_iso_time(time: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        other => byte == other,
    };
    let time = time.strip_suffix('Z').unwrap_or(time);
    let (whole, fraction) = time.split_at_checked(shape.len()).unwrap_or((time, ""));
    whole.len() == shape.len()
        && whole.as_bytes().iter().zip(shape).all(fits)
        && (fraction.is_empty() || fraction.strip_prefix(['.', ',']).is_some_and(is_number))
}
