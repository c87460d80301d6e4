//! Bitcoin addresses, by their checksums.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// What a bech32 checksum comes to, by BIP 173 and by BIP 350.
const BECH32_SUMS: [u32; 2] = [1, 0x2bc8_30a3];

/// The address that the digit at a place starts, or that `bc` before it starts.
pub(super) fn bitcoin(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_cut = |at: usize| at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    let from = match bytes[start] {
        b'1' | b'3' if is_cut(start) => start,
        b'1' if start >= 2
            && is_cut(start - 2)
            && bytes[start - 2..start].eq_ignore_ascii_case(b"bc") =>
        {
            start - 2
        }
        _ => return None,
    };
    let length = bytes[from..].iter().take(91).take_while(|it| it.is_ascii_alphanumeric()).count();
    let address = &bytes[from..from + length];
    let holds = if from == start { is_base58check(address) } else { is_bech32(address) };
    holds.then_some(from..from + length)
}

/// 25 bytes, the last four of which are the start of the hash of the hash of the others.
fn is_base58check(address: &[u8]) -> bool {
    if !(26..=35).contains(&address.len()) {
        return false;
    }
    let mut number = [0_u8; 25];
    for byte in address {
        let Some((mut carry, _)) = (0_u16..).zip(BASE58).find(|(_, it)| *it == byte) else {
            return false;
        };
        for place in number.iter_mut().rev() {
            let [high, low] = (carry + u16::from(*place) * 58).to_be_bytes();
            *place = low;
            carry = u16::from(high);
        }
        if carry > 0 {
            return false;
        }
    }
    let (payload, checksum) = number.split_at(21);
    Sha256::digest(Sha256::digest(payload)).starts_with(checksum)
}

fn is_bech32(address: &[u8]) -> bool {
    let mixed =
        address.iter().any(u8::is_ascii_lowercase) && address.iter().any(u8::is_ascii_uppercase);
    if mixed || !(14..=90).contains(&address.len()) {
        return false;
    }
    // `bc`, spread out as BIP 173 asks: the high bits, a zero, the low bits.
    let mut sum = [3, 3, 0, 2, 3].into_iter().fold(1, polymod);
    for byte in &address[3..] {
        let letter = byte.to_ascii_lowercase();
        let Some(value) = (0_u32..).zip(BECH32).find(|(_, it)| **it == letter) else {
            return false;
        };
        sum = polymod(sum, value.0);
    }
    BECH32_SUMS.contains(&sum)
}

fn polymod(sum: u32, value: u32) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = sum >> 25;
    let shifted = (sum & 0x01ff_ffff) << 5 ^ value;
    GENERATOR
        .iter()
        .enumerate()
        .filter(|(bit, _)| top >> bit & 1 == 1)
        .fold(shifted, |sum, (_, it)| sum ^ it)
}
