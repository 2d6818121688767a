// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hypervisor's statics, as its source files have them and as the chapter lists them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{quoted, table_rows};

const SOURCE: &str = "hypervisor/src";

/// A file and a name in it.
type Static = (String, String);

/// The statics in the rows `| file | names | contents | reason |` that have a reason.
pub fn listed(text: &str) -> BTreeSet<Static> {
    let rows = table_rows(text).filter(|cells| cells.len() == 4 && cells[0].contains(SOURCE) && !cells[3].is_empty());
    let names = |cells: Vec<&str>| {
        let file = cells[0].trim_matches('`').to_owned();
        quoted(cells[1]).map(|name| (file.clone(), name.to_owned())).collect::<Vec<_>>()
    };
    rows.flat_map(names).collect()
}

/// The statics of the hypervisor's source files.
pub fn of_hypervisor(root: &Path) -> BTreeSet<Static> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root.join(SOURCE)]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let file = path.strip_prefix(root).expect("it is inside").to_string_lossy().into_owned();
                let text = fs::read_to_string(&path).expect("text");
                found.extend(text.lines().filter_map(static_in).map(|name| (file.clone(), name.to_owned())));
            }
        }
    }
    found
}

/// The name of the static that a line declares or defines.
pub fn static_in(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let (before, rest) = code.split_once("static ").filter(|(before, _)| is_visibility(before))?;
    let (name, rest) = rest.trim_start_matches("mut ").split_once(':')?;
    let is_name = !before.starts_with("//") && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && rest.starts_with(' ')).then_some(name)
}

/// Words that may be in front of `static`.
fn is_visibility(text: &str) -> bool {
    text.split_whitespace().all(|word| word == "safe" || word == "unsafe" || word.starts_with("pub"))
}
