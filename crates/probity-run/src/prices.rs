//! What tokens cost.

use std::collections::BTreeMap;

use probity_load::suite::Price;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("../data/prices.toml");

/// Prices by vendor and by the name of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    built_in: Table,
    own: Table,
}

type Table = BTreeMap<String, BTreeMap<String, Price>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: f64,
    output: f64,
}

impl Prices {
    /// The prices that come with the program, with those of a user's file before them.
    pub fn with(own: Option<&str>) -> Result<Self, toml::de::Error> {
        let own = own.map_or_else(|| Ok(Table::default()), Self::parse)?;
        Ok(Self { built_in: Self::parse(BUILT_IN)?, own })
    }

    fn parse(text: &str) -> Result<Table, toml::de::Error> {
        let tables: BTreeMap<String, BTreeMap<String, Entry>> = toml::from_str(text)?;
        let price = |Entry { input, output }| Price { input, output };
        let models = |models: BTreeMap<String, Entry>| {
            models.into_iter().map(|(name, entry)| (name, price(entry))).collect()
        };
        Ok(tables.into_iter().map(|(vendor, all)| (vendor, models(all))).collect())
    }

    /// The price of a model. A name in a user's file holds for all that begin like it; one of
    /// ours only for the model itself and its dated versions, because a later model of a
    /// family costs something else. The longest name wins.
    pub fn find(&self, vendor: &str, model: &str) -> Option<Price> {
        let of = |table: &'_ Table| table.get(vendor).cloned().unwrap_or_default();
        let built_in = of(&self.built_in).into_iter().filter(|(name, _)| is_version(model, name));
        let own = of(&self.own).into_iter().filter(|(name, _)| model.starts_with(name.as_str()));
        built_in.chain(own).max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
    }
}

/// Whether a model is the one of this name: itself, the latest, or one with a date or a number
/// of three digits or more.
fn is_version(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let is_date = |rest: &str| {
        let mut parts = rest.split('-');
        let is_number = |it: &str| it.chars().all(|c| c.is_ascii_digit());
        parts.next().is_some_and(|first| first.len() >= 3 && is_number(first))
            && parts.all(|it| it.len() == 2 && is_number(it))
    };
    match rest.strip_prefix('-') {
        None => rest.is_empty(),
        Some("latest") => true,
        Some(rest) => is_date(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_a_users_price_too() {
        let prices =
            Prices::with(Some("[openai]\n\"gpt-4o\" = { input = 1, output = 2 }")).unwrap();
        let input = |model| prices.find("openai", model).map(|price| price.input);
        assert_eq!(input("gpt-4o-2024-08-06"), Some(1.0));
        assert_eq!(input("gpt-4o-mini-2024-07-18"), Some(0.15));
        assert_eq!(input("mistral"), None);
        // A later or a larger model of a family is another one.
        for other in ["gpt-5.9", "gpt-5-pro", "gpt-5-minimal", "gpt-5-9"] {
            assert_eq!(input(other), None, "{other}");
        }
        for same in ["gpt-5", "gpt-5-2025-08-07", "gpt-5-latest"] {
            assert_eq!(input(same), Some(1.25), "{same}");
        }
    }

    #[test]
    fn a_broken_file_is_an_error() {
        assert!(Prices::with(Some("[openai]\nx = 3")).is_err());
    }
}
