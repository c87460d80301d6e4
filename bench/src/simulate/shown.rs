//! What befell a process, and how it ended, as a person reads it.

use std::fmt;

use probity_store::BadDisk;

use super::session::{Disturbance, End, Trouble, Within};

impl fmt::Display for Disturbance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(moment) = self.dies_at {
            let within = match self.within {
                Within::Before => "before what it writes then",
                Within::Halfway => "halfway through what it writes then",
                Within::After => "after what it writes then",
            };
            let power = if self.loses_power { ", and the power is cut" } else { "" };
            parts.push(format!("killed at moment {moment}, {within}{power}"));
        }
        if let Some(moment) = self.stopped_at {
            parts.push(format!("stopped at moment {moment}"));
        }
        if let Some((transaction, trouble)) = self.disk {
            let trouble = match trouble {
                Trouble::Bad(BadDisk::FullAfter { pages }) => {
                    format!("the disk is full after {pages} pages")
                }
                Trouble::Bad(BadDisk::ReadOnly) => "the disk is read-only".to_owned(),
                Trouble::Locked(time) => format!("the store is locked for {time:?}"),
                Trouble::Uncounted => "calls cannot be counted".to_owned(),
            };
            parts.push(format!("{trouble} from transaction {transaction} on"));
        }
        if self.retries_errors {
            parts.push("errors are asked again".to_owned());
        }
        match parts.is_empty() {
            true => out.write_str("nothing befalls it"),
            false => out.write_str(&parts.join("; ")),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => out.write_str("it died"),
            Self::Failed(why) => write!(out, "it failed: {why}"),
            Self::Ended(ended) => {
                write!(out, "it ended with exit code {}", ended.exit)?;
                for (lane, status) in ended.view.lanes.iter().zip(&ended.lanes) {
                    let verdicts = lane.metrics.all.verdicts;
                    write!(
                        out,
                        "\n    {}: {} of {} cases, {} passed, {} failed, {} errors, {}",
                        lane.title(),
                        verdicts.total(),
                        lane.lane.planned,
                        verdicts.pass,
                        verdicts.fail,
                        verdicts.error,
                        serde_json::to_string(status).unwrap_or_default()
                    )?;
                }
                Ok(())
            }
        }
    }
}
