//! Payment cards and bank accounts.

use std::ops::Range;

use super::{
    context,
    number::{Groups, luhn, value},
};

/// Words that a bank account goes with.
const ACCOUNT: &[&str] =
    &["account", "acct", "a/c", "bank account", "checking", "savings", "account number"];

/// Numbers of issuers by their first six digits, and how long their cards are.
const ISSUERS: &[(Range<u64>, &[usize])] = &[
    (100_000..200_000, &[15]),             // UATP
    (222_100..272_100, &[16]),             // Mastercard
    (300_000..306_000, &[14, 16]),         // Diners Club
    (309_500..309_600, &[14, 16]),         // Diners Club
    (340_000..350_000, &[15]),             // American Express
    (352_800..359_000, &[16, 19]),         // JCB
    (360_000..370_000, &[14, 16, 19]),     // Diners Club
    (370_000..380_000, &[15]),             // American Express
    (380_000..400_000, &[14, 16, 19]),     // Diners Club
    (400_000..500_000, &[13, 16, 19]),     // Visa
    (500_000..510_000, &[16, 18, 19]),     // Maestro, Dankort
    (510_000..560_000, &[16]),             // Mastercard
    (560_000..601_100, &[16, 18, 19]),     // Maestro
    (601_100..602_000, &[16, 19]),         // Discover
    (602_000..700_000, &[16, 17, 18, 19]), // RuPay, UnionPay, Discover, Maestro
];

/// A card's number: known issuer, right length, right check digit.
pub(super) fn card(text: &str, start: usize) -> Option<Range<usize>> {
    let groups = Groups::at(text, start, &[4, 13, 14, 15, 16, 17, 18, 19])?;
    // In one piece, or in groups as they are embossed.
    let one = groups.first(1);
    let four = groups.first(4).filter(|it| matches!(it.lengths.as_slice(), [4, 4, 4, 4]));
    let three = groups.first(3).filter(|it| matches!(it.lengths.as_slice(), [4, 6, 4 | 5]));
    let five = groups.first(5).filter(|it| matches!(it.lengths.as_slice(), [4, 4, 4, 4, 1..=3]));
    let four = four.filter(|_| !matches!(groups.lengths.get(4), Some(4)));
    [one, five, four, three].into_iter().flatten().find(is_card).map(|it| it.span)
}

fn is_card(groups: &Groups) -> bool {
    let Groups { digits, separator, .. } = groups;
    if separator == &Some(b'.') || digits.len() < 12 {
        return false;
    }
    let first = value(&digits[..6]);
    let issued = ISSUERS
        .iter()
        .any(|(range, lengths)| range.contains(&first) && lengths.contains(&digits.len()));
    issued && luhn(digits)
}

/// A US bank account: nothing but digits, so only beside a word that says so.
pub(super) fn us_bank(text: &str, start: usize) -> Option<Range<usize>> {
    let groups = Groups::at(text, start, &[8, 9, 10, 11, 12, 13, 14, 15, 16, 17])?;
    (groups.are(&[groups.digits.len()]) && context::says(text, start, ACCOUNT))
        .then_some(groups.span)
}
