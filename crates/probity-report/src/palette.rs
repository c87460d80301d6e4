//! The colours of classes and verdicts: one table for terminals and pages.
//!
//! They differ for people who see all colours, no red, no green or no blue, and can be read on
//! light and on dark ground. Still no output says anything by colour alone.

use anstyle::{Ansi256Color, Style};
use probity_core::classification::{Class, Verdict};

/// A colour where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tint {
    /// In a terminal, whose ground nobody knows: one of 256 colours.
    pub terminal: u8,
    /// On a light page: red, green, blue.
    pub light: u32,
    /// On a dark page.
    pub dark: u32,
}

/// What asks for attention without being wrong.
pub const WARN: Tint = Tint { terminal: 136, light: 0x8a_6400, dark: 0xe0_a04a };

impl Tint {
    /// That of a class.
    pub const fn of_class(class: Class) -> Self {
        match class {
            Class::Pass => Self { terminal: 30, light: 0x03_8484, dark: 0x21_9494 },
            Class::Fail => Self { terminal: 166, light: 0xc2_5605, dark: 0xda_6207 },
            Class::Error => Self { terminal: 128, light: 0x95_07b7, dark: 0xe0_84fd },
            Class::Refusal => Self { terminal: 97, light: 0x87_5faf, dark: 0x9d_74c6 },
            Class::WrongFormat => Self { terminal: 137, light: 0x65_4119, dark: 0xaf_875f },
            Class::PolicyViolation => Self { terminal: 200, light: 0x88_0472, dark: 0xff_00d7 },
            Class::Crash => Self { terminal: 246, light: 0x59_5959, dark: 0xc0_c0c0 },
            Class::Timeout => Self { terminal: 33, light: 0x01_488d, dark: 0x00_87ff },
        }
    }

    /// That of a verdict.
    pub const fn of_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::of_class(Class::Pass),
            Verdict::Fail => Self::of_class(Class::Fail),
            Verdict::Error => Self::of_class(Class::Error),
            Verdict::Undecided => WARN,
        }
    }

    /// Text of this colour in a terminal.
    pub const fn style(self) -> Style {
        Ansi256Color(self.terminal).on_default()
    }

    /// The value of a CSS property.
    pub fn css(self) -> String {
        format!("light-dark(#{:06x}, #{:06x})", self.light, self.dark)
    }
}

/// Whether this is one of the terminal's colours that are used here.
pub fn has(terminal: u8) -> bool {
    let mut tints = Class::ALL.into_iter().map(Tint::of_class).chain([WARN]);
    tints.any(|it| it.terminal == terminal)
}

/// The class whose colour a result has: what passed looks passed, whatever was expected of it.
/// None if nothing is decided.
pub const fn shown_class(verdict: Verdict, class: Class) -> Option<Class> {
    match (verdict, class) {
        (Verdict::Pass, _) => Some(Class::Pass),
        (Verdict::Undecided, _) => None,
        (Verdict::Error, Class::Pass | Class::Fail) => Some(Class::Error),
        (Verdict::Fail, Class::Pass) => Some(Class::Fail),
        (Verdict::Fail | Verdict::Error, class) => Some(class),
    }
}

#[cfg(test)]
mod tests;
