//! The operands of `dd`, with sizes in bytes.

use std::collections::BTreeMap;

use crate::{
    canonical::command::{Argv, Token, TokenKind},
    field::{self, Field},
};

pub(super) fn dd(arguments: &[Field]) -> Option<Argv> {
    let mut operands = BTreeMap::new();
    for argument in arguments {
        let (key, value) = argument.text.split_once('=')?;
        if !field::is_literal(key) || key.starts_with('-') {
            return None;
        }
        let value = match key {
            "bs" | "ibs" | "obs" | "cbs" => bytes(value).unwrap_or_else(|| value.to_owned()),
            _ => value.to_owned(),
        };
        // Said twice, some of them add up.
        if operands.insert(key, value).is_some() {
            return None;
        }
    }
    let mut tokens = vec![Token::new(TokenKind::Program, "dd")];
    tokens
        .extend(operands.into_iter().map(|(key, value)| Token::operand(format!("{key}={value}"))));
    Some(Argv { tokens, known: true, input: None })
}

fn bytes(text: &str) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "kB" => 1000,
        "k" | "K" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()?.checked_mul(unit)?.to_string())
}
