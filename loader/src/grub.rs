// SPDX-License-Identifier: MIT OR Apache-2.0
//! `grub.cfg` as `grub-mkconfig` writes it: its menu, and which entry is the default (GNU GRUB manual 2.12, chapters 6
//! and 16).
//!
//! Nothing is executed. Commands in an `if` are read as if its condition were true, so a default that depends on the
//! state that GRUB keeps is read from there.

use crate::entry::{Entry, Environment};
use crate::words::{Word, words};

/// Submenus in submenus that are read; GRUB's own generator makes one.
const MOST_LEVELS: usize = 8;

/// An item of the menu.
#[derive(Debug, Default)]
struct Item {
    title: String,
    id: Option<String>,
    entry: Entry,
    /// The items of a submenu.
    items: Vec<Item>,
    is_submenu: bool,
}

/// A block that a line has opened with a brace.
enum Block {
    Item(Item),
    Other,
}

/// Returns the entry that is started without a choice of the user: the default, or else the first that has a kernel.
pub fn default_entry(text: &str, environment: &Environment) -> Option<Entry> {
    let (menu, default) = read(text, environment);
    let wanted = default.as_deref().and_then(|path| find(&menu, path)).filter(|entry| !entry.kernel.is_empty());
    wanted.or_else(|| first(&menu)).cloned()
}

/// Reads the menu, and the last default that is stated.
fn read(text: &str, environment: &Environment) -> (Vec<Item>, Option<String>) {
    let (mut menu, mut open, mut default) = (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        let words = words(line);
        let Some(command) = words.first() else { continue };
        let arguments = &words[1..];
        match command.text.as_str() {
            "menuentry" | "submenu" => open.push(Block::Item(item(arguments, command.text == "submenu"))),
            "}" => close(&mut open, &mut menu),
            "set" => default = stated_default(arguments, environment).or(default),
            name => {
                if let Some(Block::Item(item)) = open.last_mut() {
                    describe(&mut item.entry, name, arguments, environment);
                }
                if words.last().is_some_and(|word| word.is("{")) {
                    open.push(Block::Other);
                }
            }
        }
    }
    while !open.is_empty() {
        close(&mut open, &mut menu);
    }
    (menu, default)
}

/// Returns the item that `menuentry TITLE --class … $menuentry_id_option ID {` opens.
fn item(arguments: &[Word], is_submenu: bool) -> Item {
    let title = arguments.first().map(|word| word.text.clone()).unwrap_or_default();
    let is_id = |word: &Word| word.text == "--id" || word.text == "$menuentry_id_option";
    let named = arguments.iter().skip_while(|word| !is_id(word)).nth(1).map(|word| word.text.clone());
    let joined = arguments.iter().find_map(|word| word.text.strip_prefix("--id=")).map(str::to_owned);
    let entry = Entry { title: title.clone(), ..Entry::default() };
    Item { title, id: named.or(joined), entry, items: Vec::new(), is_submenu }
}

/// Ends the innermost block: an item goes into the submenu around it, or the menu.
fn close(open: &mut Vec<Block>, menu: &mut Vec<Item>) {
    let Some(Block::Item(item)) = open.pop() else { return };
    let around = open.iter_mut().rev().find_map(|block| match block {
        Block::Item(outer) if outer.is_submenu => Some(&mut outer.items),
        _ => None,
    });
    around.unwrap_or(menu).push(item);
}

/// Returns the default that `set default=VALUE` states. The one for the next boot only is ignored: GRUB clears it when
/// it starts that entry, and nothing is written here.
fn stated_default(arguments: &[Word], environment: &Environment) -> Option<String> {
    let value = arguments.first()?.text.strip_prefix("default=")?.to_owned();
    let value = match value.strip_prefix('$') {
        None => value,
        Some(name) if name.contains("saved_entry") => environment.get("saved_entry")?.to_owned(),
        Some(_) => return None,
    };
    (!value.is_empty()).then_some(value)
}

/// Reads a command of an entry: its kernel, command line or initial RAM disk.
fn describe(entry: &mut Entry, command: &str, arguments: &[Word], environment: &Environment) {
    match command {
        "linux" | "linux16" | "linuxefi" => {
            entry.kernel = arguments.first().map(|word| path(&word.text)).unwrap_or_default();
            entry.cmdline = environment.expand(arguments.iter().skip(1).map(|word| word.text.as_str()));
        }
        "initrd" | "initrd16" | "initrdefi" => entry.initrds = arguments.iter().map(|word| path(&word.text)).collect(),
        _ => {}
    }
}

/// Returns a path without the device before it: `(hd0,gpt2)/vmlinuz`, `($root)/vmlinuz`.
fn path(word: &str) -> String {
    let rest = word.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    rest.map_or(word, |(_, path)| path).to_owned()
}

/// Returns the entry at a path of titles, identifiers or numbers from 0 on, with `>` between those of submenus.
fn find<'m>(menu: &'m [Item], path: &str) -> Option<&'m Entry> {
    let mut items = menu;
    let mut parts = path.split('>').take(MOST_LEVELS).peekable();
    while let Some(part) = parts.next() {
        let by_name = items.iter().find(|item| item.id.as_deref() == Some(part) || item.title == part);
        let item = by_name.or_else(|| items.get(part.parse::<usize>().ok()?))?;
        match (item.is_submenu, parts.peek()) {
            (false, None) => return Some(&item.entry),
            (true, None) => return first(&item.items),
            (true, Some(_)) => items = &item.items,
            (false, Some(_)) => return None,
        }
    }
    None
}

/// Returns the first entry of a menu that has a kernel, in the order of the file.
fn first(menu: &[Item]) -> Option<&Entry> {
    let mut waiting: Vec<&Item> = menu.iter().rev().collect();
    while let Some(item) = waiting.pop() {
        if !item.is_submenu && !item.entry.kernel.is_empty() {
            return Some(&item.entry);
        }
        waiting.extend(item.items.iter().rev());
    }
    None
}

#[cfg(test)]
#[path = "grub_tests.rs"]
mod tests;
