// SPDX-License-Identifier: MIT OR Apache-2.0
//! A question before an order that ends guests: `--yes` answers it, or the operator on a terminal.

use std::io::{self, BufRead, IsTerminal as _, Write};

use anyhow::{Result, bail};
use clap::Args;
use wire::{VmInfo, VmState};

/// Consent to the end of guests.
#[derive(Clone, Copy, Debug, Args)]
pub struct Consent {
    /// Ask no question before guests end
    #[arg(short, long)]
    yes: bool,
}

/// An order that ends guests.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// The order, as in "to power off".
    pub order: &'a str,
    /// The guests that it is for; `None`: all.
    pub guests: Option<&'a [String]>,
}

impl Consent {
    /// Asks whether the guests that run may end, if any does: `list` finds out which there are.
    ///
    /// # Errors
    /// They may not, or there is no terminal to ask at.
    pub fn obtain(self, list: impl FnOnce() -> Result<Vec<VmInfo>>, ending: Ending<'_>) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        let vms = list()?;
        let running = running(vms.iter().map(|vm| (vm.name.as_str(), vm.state)), ending.guests);
        if running.is_empty() {
            return Ok(());
        }
        let question = format!("{} ends {}", ending.order, running.join(", "));
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            bail!("{question}, and there is no terminal to ask at; give --yes if that is what you want");
        }
        ask(&question, &mut io::stdin().lock(), &mut io::stderr())
    }
}

/// Returns the names of guests that would end.
fn running<'a>(vms: impl Iterator<Item = (&'a str, VmState)>, guests: Option<&[String]>) -> Vec<String> {
    let is_alive = |(_, state): &(&str, VmState)| !state.has_ended();
    let is_meant = |(name, _): &(&str, VmState)| guests.is_none_or(|guests| guests.iter().any(|guest| guest == name));
    vms.filter(is_alive).filter(is_meant).map(|(name, _)| format!("guest {name}")).collect()
}

fn ask(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> Result<()> {
    write!(output, "{question}. Go on? [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was done"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answer: &str) -> (bool, String) {
        let mut shown = Vec::new();
        let is_given = ask("restart ends guest web", &mut answer.as_bytes(), &mut shown).is_ok();
        (is_given, String::from_utf8(shown).expect("text"))
    }

    #[test]
    fn only_a_yes_is_one() {
        let shown = "restart ends guest web. Go on? [y/N] ".to_owned();
        assert_eq!(answered("y\n"), (true, shown.clone()));
        assert_eq!(answered(" YES \n"), (true, shown.clone()));
        for no in ["n\n", "\n", "", "yess\n", "no, y\n"] {
            assert_eq!(answered(no), (false, shown.clone()), "{no:?}");
        }
    }

    #[test]
    fn guests_that_have_ended_are_not_asked_about() {
        let vms = || [("web", VmState::Running), ("old", VmState::Stopped), ("db", VmState::Paused)].into_iter();
        assert_eq!(running(vms(), None), ["guest web", "guest db"]);
        assert_eq!(running(vms(), Some(&["db".to_owned()])), ["guest db"]);
        assert!(running(vms(), Some(&["old".to_owned()])).is_empty() && running([].into_iter(), None).is_empty());
    }
}
