//! What tokens cost.

use std::collections::BTreeMap;

use probity_load::suite::Price;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("../data/prices.toml");

/// Prices by vendor and by the beginning of a model's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(BTreeMap<String, BTreeMap<String, Price>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: f64,
    output: f64,
}

impl Prices {
    /// The prices that come with the program, with those of a user's file before them.
    pub fn with(own: Option<&str>) -> Result<Self, toml::de::Error> {
        let mut prices = Self::parse(BUILT_IN)?;
        if let Some(own) = own {
            for (vendor, models) in Self::parse(own)?.0 {
                prices.0.entry(vendor).or_default().extend(models);
            }
        }
        Ok(prices)
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let tables: BTreeMap<String, BTreeMap<String, Entry>> = toml::from_str(text)?;
        let price = |Entry { input, output }| Price { input, output };
        let models = |models: BTreeMap<String, Entry>| {
            models.into_iter().map(|(name, entry)| (name, price(entry))).collect()
        };
        Ok(Self(tables.into_iter().map(|(vendor, all)| (vendor, models(all))).collect()))
    }

    /// The price of a model: the longest name that its own begins with.
    pub fn find(&self, vendor: &str, model: &str) -> Option<Price> {
        let models = self.0.get(vendor)?;
        let fits = models.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        fits.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
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
    }

    #[test]
    fn a_broken_file_is_an_error() {
        assert!(Prices::with(Some("[openai]\nx = 3")).is_err());
    }
}
