// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed values out of a TOML document, and a list of all mistakes in them, each with its place.
//!
//! Values are read from toml's own tree, which has a span for each. Deserializing the whole by serde would end at the
//! first mistake; serde_path_to_error adds the path to that one, but no line and no column.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use switch::{Mac, NotAMac};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::Mistake;
use crate::size::Size;
use crate::suggest::did_you_mean;

/// The unit of time of a rate.
const PER_SECOND: &str = "/s";

/// Everything that is wrong with a text, by byte.
pub(super) struct Mistakes<'i> {
    text: &'i str,
    found: RefCell<Vec<(Option<usize>, String)>>,
}

impl<'i> Mistakes<'i> {
    pub fn new(text: &'i str) -> Self {
        Self { text, found: RefCell::default() }
    }

    /// Notes a mistake at a byte of the text, or somewhere in it.
    pub fn add(&self, at: Option<usize>, message: impl Display) {
        self.found.borrow_mut().push((at, message.to_string()));
    }

    /// Returns all mistakes, in the text's order; those without a place come last.
    pub fn into_inner(self) -> Vec<Mistake> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(at, _)| at.unwrap_or(usize::MAX));
        let place = |at: usize| {
            let before = self.text.get(..at).unwrap_or(self.text);
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
        };
        found.into_iter().map(|(at, message)| Mistake { place: at.map(place), message }).collect()
    }
}

/// A table of the document, while its keys are being read.
pub(super) struct Section<'m, 'i> {
    mistakes: &'m Mistakes<'i>,
    table: DeTable<'i>,
    /// The start of its messages.
    label: String,
    at: Option<usize>,
    /// Keys that have been asked for.
    known: Vec<&'static str>,
}

/// Parses the whole document; `None` where it is no TOML.
pub(super) fn root<'m, 'i>(text: &'i str, mistakes: &'m Mistakes<'i>) -> Option<Section<'m, 'i>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        mistakes.add(error.span().map(|span| span.start), error.message());
    }
    let section = || Section { mistakes, table: root.into_inner(), label: String::new(), at: None, known: Vec::new() };
    errors.is_empty().then(section)
}

impl<'m, 'i> Section<'m, 'i> {
    /// Notes a mistake at a key's value, where it is not known better.
    pub fn complain(&self, at: Option<usize>, message: impl Display) {
        self.mistakes.add(at.or(self.at), format_args!("{}{message}", self.label));
    }

    /// From here on messages begin with this.
    pub fn set_label(&mut self, label: String) {
        self.label = label;
    }

    /// Returns whether a key is written, and not read yet.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Takes keys as known whatever their values are: they cannot be checked before another mistake is corrected.
    pub fn know(&mut self, keys: &[&'static str]) {
        self.known.extend(keys);
        keys.iter().for_each(|&key| drop(self.table.remove(key)));
    }

    /// Returns a key's value as `read` takes it, with its place; `None` where there is none, or none that is possible.
    pub fn placed<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'i>) -> Result<T, String>,
    ) -> Option<(T, usize)> {
        self.known.push(key);
        let value = self.table.remove(key)?;
        let at = value.span().start;
        match read(value.get_ref()) {
            Ok(found) => Some((found, at)),
            Err(message) => {
                self.complain(Some(at), format_args!("{key} {message}"));
                None
            }
        }
    }

    /// Returns a key's value as `read` takes it.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'i>) -> Result<T, String>,
    ) -> Option<T> {
        self.placed(key, read).map(|(value, _)| value)
    }

    /// Returns the value of a key that must be there, as `read` takes it.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'i>) -> Result<T, String>,
    ) -> Option<(T, usize)> {
        if !self.table.contains_key(key) {
            self.complain(None, format_args!("the key {key:?} is missing; add it"));
        }
        self.placed(key, read)
    }

    /// Returns a table in this one; an empty one where there is none.
    pub fn table(&mut self, key: &'static str) -> Self {
        let found = self.placed(key, |value| match value {
            DeValue::Table(table) => Ok(table.clone()),
            other => Err(format!("is {}; write a section [{key}]", kind(other))),
        });
        let (table, at) = found.map_or((DeTable::new(), None), |(table, at)| (table, Some(at)));
        let label = format!("[{key}]: ");
        Section { mistakes: self.mistakes, table, label, at, known: Vec::new() }
    }

    /// Returns the tables of a list of them.
    pub fn tables(&mut self, key: &'static str) -> Vec<Self> {
        let wanted = |value: &DeValue<'i>| format!("is {}; write sections [[{key}]]", kind(value));
        let found = self.optional(key, |value| match value {
            DeValue::Array(array) => {
                array.iter().map(|item| self_table(item).ok_or_else(|| wanted(item.get_ref()))).collect()
            }
            other => Err(wanted(other)),
        });
        let found: Vec<(DeTable<'i>, usize)> = found.unwrap_or_default();
        let section = |(table, at)| Section {
            mistakes: self.mistakes,
            table,
            label: String::new(),
            at: Some(at),
            known: Vec::new(),
        };
        found.into_iter().map(section).collect()
    }

    /// Returns the items of a list, with their places.
    pub fn items(&mut self, key: &'static str) -> Vec<(DeValue<'i>, usize)> {
        let found = self.optional(key, |value| {
            let array = value.as_array().ok_or_else(|| format!("is {}; write a list: [\"…\"]", kind(value)))?;
            Ok(array.iter().map(|item| (item.get_ref().clone(), item.span().start)).collect())
        });
        found.unwrap_or_default()
    }

    /// Returns the section of a table that is an item of a list at this place.
    pub fn item(&self, table: DeTable<'i>, at: usize) -> Self {
        Section { mistakes: self.mistakes, table, label: self.label.clone(), at: Some(at), known: Vec::new() }
    }

    /// Returns where in the text a word of a value that begins at `at` stands.
    pub fn place_of(&self, word: &str, at: usize) -> usize {
        let line = self.mistakes.text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        at + line.find(word).unwrap_or(0)
    }

    /// Notes the keys that no caller has read.
    pub fn finish(self) {
        for key in self.table.keys() {
            let (word, at) = (key.get_ref().as_ref(), Some(key.span().start));
            let suggestion = did_you_mean(word, self.known.iter().copied());
            match suggestion.is_empty() {
                true => {
                    self.complain(at, format_args!("unknown key {word:?}; the keys here are {}", self.known.join(", ")))
                }
                false => self.complain(at, format_args!("unknown key {word:?}{suggestion}")),
            }
        }
    }
}

fn self_table<'i>(item: &Spanned<DeValue<'i>>) -> Option<(DeTable<'i>, usize)> {
    item.get_ref().as_table().map(|table| (table.clone(), item.span().start))
}

/// Describes a value's type.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// Reads a whole number in a range.
pub(super) fn number(range: RangeInclusive<u32>) -> impl FnOnce(&DeValue<'_>) -> Result<u32, String> {
    move |value| {
        let (least, most) = (range.start(), range.end());
        let DeValue::Integer(written) = value else {
            return Err(format!("is {}; write a whole number from {least} to {most}, without quotes", kind(value)));
        };
        let number = u32::from_str_radix(written.as_str(), written.radix()).ok();
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("= {written} is not possible; write {least} to {most}"))
    }
}

pub(super) fn text(value: &DeValue<'_>) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("is {}; write a text in quotes", kind(value)))
}

pub(super) fn path(value: &DeValue<'_>) -> Result<PathBuf, String> {
    text(value).map(PathBuf::from)
}

pub(super) fn flag(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("is {}; write true or false", kind(value)))
}

/// Reads a rate in bytes a second.
pub(super) fn rate(value: &DeValue<'_>) -> Result<u64, String> {
    let written = text(value)?;
    let size = written.strip_suffix(PER_SECOND).and_then(|size| size.parse::<Size>().ok());
    size.map(|size| size.bytes)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("= {written:?} is no rate; write a whole number and a unit, as \"10MiB/s\""))
}

/// Reads a size with its unit.
pub(super) fn size(value: &DeValue<'_>) -> Result<Size, String> {
    match value {
        DeValue::Integer(number) => {
            Err(format!("= {number} has no unit; write \"{number}MiB\" or \"{number}GiB\", with quotes"))
        }
        DeValue::String(text) => text.parse().map_err(|error| format!("= {error}")),
        other => Err(format!("is {}; write a whole number and a unit, as \"512MiB\"", kind(other))),
    }
}

/// Reads the MAC address of one card.
pub(super) fn mac(value: &DeValue<'_>) -> Result<Mac, String> {
    let text = text(value)?;
    text.parse().map_err(|error| match error {
        NotAMac::Malformed => format!("= {text:?} is no MAC address; write six bytes, as \"52:54:00:00:00:01\""),
        NotAMac::NoStation => {
            format!("= {text:?} is no address of one card; the first byte is even, as in \"52:54:00:…\"")
        }
    })
}

/// Reads a list; `read` takes each of its items.
pub(super) fn list<'i, T>(
    read: impl Fn(&DeValue<'i>) -> Result<T, String>,
) -> impl FnOnce(&DeValue<'i>) -> Result<Vec<T>, String> {
    move |value| {
        let items: &DeArray<'i> =
            value.as_array().ok_or_else(|| format!("is {}; write a list: [\"…\"]", kind(value)))?;
        items.iter().map(|item| read(item.get_ref())).collect()
    }
}

/// Reads one of a few words.
pub(super) fn choice<T: DeserializeOwned>(value: &DeValue<'_>) -> Result<T, String> {
    let word = text(value)?;
    let deserializer: StrDeserializer<'_, ValueError> = word.as_str().into_deserializer();
    T::deserialize(deserializer).map_err(|error| {
        let message = error.to_string();
        let known: Vec<&str> = message.split('`').skip(1).step_by(2).skip(1).collect();
        let (suggestion, list) = (did_you_mean(&word, known.iter().copied()), known.join(", "));
        match suggestion.is_empty() {
            true => format!("= {word:?} is unknown; possible are {list}"),
            false => format!("= {word:?} is unknown{suggestion} (possible are {list})"),
        }
    })
}
