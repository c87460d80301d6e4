//! Closed sets of names that stand in files: each list is written once.

use std::fmt;

/// A name that is not in its set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {set}")]
pub struct UnknownName {
    /// The set, with its article: `a class`.
    pub set: &'static str,
    /// The name.
    pub name: String,
}

/// Declares an enum whose variants have names in files.
///
/// It gets `ALL`, `NAMES`, `as_str`, `Display`, `FromStr` and serde by those names.
///
/// ```
/// probity_core::named_enum! {
///     /// A side.
///     pub enum Side ("a side") {
///         /// Port.
///         Left = "left",
///         /// Starboard.
///         Right = "right",
///     }
/// }
/// assert_eq!("right".parse(), Ok(Side::Right));
/// assert_eq!("up".parse::<Side>().unwrap_err().to_string(), "`up` is not a side");
/// assert_eq!(Side::ALL.map(Side::as_str), Side::NAMES);
/// assert_eq!(Side::NAMES, ["left", "right"]);
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident ($set:literal) {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// Every one, in the order of its declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The names of all, in the same order.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($text),+];

            /// The name used in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.into_iter().find(|it| it.as_str() == name);
                found.ok_or_else(|| $crate::names::UnknownName { set: $set, name: name.to_owned() })
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::names::Named(::std::marker::PhantomData, $set))
            }
        }
    };
}

/// Reads a name of a set; for [`named_enum`].
#[derive(Debug)]
pub struct Named<T>(pub std::marker::PhantomData<T>, pub &'static str);

impl<T> serde::de::Visitor<'_> for Named<T>
where
    T: std::str::FromStr<Err = UnknownName>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of {}", self.1)
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<T, E> {
        name.parse().map_err(E::custom)
    }
}
