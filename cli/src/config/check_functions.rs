// SPDX-License-Identifier: MIT OR Apache-2.0
//! `devices` of a `[[guest]]`: the host's PCI functions that it gets.

use std::collections::HashMap;

use bundle::{AssignedConfig, limits};
use pci::Selector;
use serde::Deserialize;
use toml::de::DeValue;

use super::read::{Section, choice, number, text};

/// The key.
const KEY: &str = "devices";

/// Functions of the guests before, and whether one that starts with the host has it.
pub(super) type Functions = HashMap<Selector, bool>;

/// The treatment of a function that cannot be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reset {
    /// The guest gets it as its previous owner has left it.
    None,
}

/// Reads the functions of a guest; those with mistakes are left out.
pub(super) fn functions(
    section: &mut Section<'_, '_>,
    is_autostarted: bool,
    taken: &mut Functions,
) -> Vec<AssignedConfig> {
    let items = section.items(KEY);
    if let Some((_, at)) = items.get(limits::FUNCTIONS) {
        let (count, most) = (items.len(), limits::FUNCTIONS);
        section.complain(Some(*at), format_args!("{KEY}: there are {count} functions; at most {most} are possible"));
    }
    let mut own = Vec::new();
    let mut assigned = Vec::new();
    for (item, at) in items {
        let Some((selector, config)) = function(section, item, at) else { continue };
        if own.contains(&selector) {
            section.complain(Some(at), format_args!("{KEY}: the function {selector} stands twice; remove one of them"));
        } else if is_autostarted && taken.get(&selector) == Some(&true) {
            let hint = "remove it from one of them, or set autostart = false there";
            section.complain(
                Some(at),
                format_args!("{KEY}: another guest that starts with the host has the function {selector}; {hint}"),
            );
        }
        *taken.entry(selector).or_default() |= is_autostarted;
        own.push(selector);
        assigned.push(AssignedConfig { selector: selector.to_string(), ..config });
    }
    assigned
}

/// Reads a selector, or a table of one, its reset, its line's interrupt, and the number of approved virtual functions.
/// The text of the configuration's selector is left out.
fn function(section: &Section<'_, '_>, item: DeValue<'_>, at: usize) -> Option<(Selector, AssignedConfig)> {
    match item {
        DeValue::Table(table) => {
            let mut item = section.item(table, at);
            let selector = item.required("function", selector);
            let reset = item.optional("reset", choice::<Reset>);
            let gsi = item.optional("gsi", number(0..=limits::GSI_MOST));
            let sriov = item.optional("sriov", number(1..=limits::VIRTUAL_FUNCTIONS.into()));
            item.finish();
            let (without_reset, virtual_functions) = (reset == Some(Reset::None), sriov.unwrap_or(0) as u8);
            Some((selector?.0, AssignedConfig { selector: String::new(), without_reset, gsi, virtual_functions }))
        }
        other => match selector(&other) {
            Ok(selector) => Some((selector, AssignedConfig::default())),
            Err(message) => {
                section.complain(Some(at), format_args!("{KEY} {message}"));
                None
            }
        },
    }
}

fn selector(value: &DeValue<'_>) -> Result<Selector, String> {
    let text = text(value)?;
    Selector::parse(&text).map_err(|error| format!("= {text:?} {error}"))
}
