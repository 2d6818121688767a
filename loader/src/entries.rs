// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boot entries in files of their own: type 1 of the Boot Loader Specification (UAPI.1), as Fedora's GRUB and
//! systemd-boot read them.

use std::cmp::Ordering;

use crate::entry::{Entry, Environment};

/// A file of a folder `loader/entries`.
#[derive(Debug)]
pub struct EntryFile {
    /// Its name without `.conf`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Returns the entry that is started without a choice of the user: the one that GRUB has saved, or the newest.
pub fn default_entry(files: &[EntryFile], environment: &Environment) -> Option<Entry> {
    let mut offered: Vec<(&str, String, Entry)> = files.iter().filter_map(|file| read(file, environment)).collect();
    offered.sort_by(|(name, version, _), (other_name, other, _)| {
        compare(version, other).then_with(|| compare(name, other_name))
    });
    let saved = environment.get("saved_entry");
    let place = offered.iter().position(|(name, _, _)| Some(*name) == saved).or(offered.len().checked_sub(1))?;
    Some(offered.swap_remove(place).2)
}

/// Reads a file: its name, its version, and the entry that it offers. One without a kernel (`efi`) offers nothing.
fn read<'f>(file: &'f EntryFile, environment: &Environment) -> Option<(&'f str, String, Entry)> {
    let (mut entry, mut version) = (Entry { title: file.name.clone(), ..Entry::default() }, String::new());
    let mut options = Vec::new();
    for line in file.text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some((key, value)) = line.split_once([' ', '\t']).map(|(key, value)| (key, value.trim())) else { continue };
        match key {
            "title" => value.clone_into(&mut entry.title),
            "version" => value.clone_into(&mut version),
            "linux" => value.clone_into(&mut entry.kernel),
            "initrd" => {
                entry.initrds.extend(value.split_whitespace().filter(|word| !word.starts_with('$')).map(Into::into))
            }
            "options" => options.extend(value.split_whitespace()),
            _ => {}
        }
    }
    entry.cmdline = environment.expand(options);
    (!entry.kernel.is_empty()).then_some((file.name.as_str(), version, entry))
}

/// Compares versions: runs of digits as numbers, all else by letter.
fn compare(one: &str, other: &str) -> Ordering {
    parts(one).cmp(parts(other))
}

/// A piece of a version. A number is greater than letters.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'v> {
    Letters(&'v str),
    /// Its digits without leading zeros: the longer one is greater.
    Number(usize, &'v str),
}

fn parts(version: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = version;
    std::iter::from_fn(move || {
        let is_number = rest.chars().next()?.is_ascii_digit();
        let end = rest.find(|letter: char| letter.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        let digits = part.trim_start_matches('0');
        Some(if is_number { Part::Number(digits.len(), digits) } else { Part::Letters(part) })
    })
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
