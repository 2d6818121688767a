// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks through the code: tables that are call trees, `| ·· `function` | `file` | step |`, a dot for each level.

use crate::table_rows;

/// The layers of the image, the lowest first; `main.rs` is above them.
const LAYERS: [&str; 6] = ["arch", "kernel", "guests", "lifecycle", "control", "main.rs"];

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub depth: usize,
    pub function: String,
    pub file: String,
}

pub fn calls(text: &str) -> Vec<Call> {
    let call = |cells: Vec<&str>| {
        let (function, file) = (cells.first()?.split('`').nth(1)?, cells.get(1)?.split('`').nth(1)?);
        let depth = cells[0].chars().filter(|c| *c == '·').count();
        Some(Call { depth, function: function.to_owned(), file: file.to_owned() })
    };
    table_rows(text).filter_map(call).collect()
}

/// Returns the errors of the walks; `read` returns the text of a file.
pub fn problems(calls: &[Call], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut problems, mut callers) = (Vec::new(), Vec::<&Call>::new());
    for call in calls {
        if call.depth > callers.len() {
            problems.push(format!("{call:?} is too deep for the row above"));
        }
        callers.truncate(call.depth);
        match read(&call.file) {
            Some(text) if defines(&text, call) => {}
            Some(_) => problems.push(format!("{} has no function {}", call.file, call.function)),
            None => problems.push(format!("{} does not exist", call.file)),
        }
        if let Some(caller) = callers.last()
            && !read(&caller.file).is_some_and(|text| calls_it(&text, &call.function))
        {
            problems.push(format!("{} in {} does not call {}", caller.function, caller.file, call.function));
        }
        let above = callers.iter().rev().find_map(|caller| layer(&caller.file));
        if above.zip(layer(&call.file)).is_some_and(|(above, here)| here > above) {
            problems.push(format!("{} in {} is above the layer of its caller", call.function, call.file));
        }
        callers.push(call);
    }
    problems
}

/// The layer of a file of the hypervisor.
fn layer(file: &str) -> Option<usize> {
    let first = file.strip_prefix("hypervisor/src/")?.split('/').next()?;
    LAYERS.iter().position(|layer| *layer == first)
}

fn defines(text: &str, call: &Call) -> bool {
    let starts = [format!("fn {}(", call.function), format!("fn {}<", call.function)];
    if call.file.ends_with(".S") { text.contains(&call.function) } else { starts.iter().any(|it| text.contains(it)) }
}

/// Returns true if a text names a function other than to define it. A longer name that begins with it counts: it may be
/// an alias.
fn calls_it(text: &str, function: &str) -> bool {
    let uses = |at: usize| {
        let before = &text[..at];
        !before.ends_with("fn ") && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    text.match_indices(function).any(|(at, _)| uses(at))
}
