// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture as one HTML page that needs nothing else: data, style and script are in it.

use super::Picture;

const TEMPLATE: &str = include_str!("page.html");

/// The scale that a page shows at first; its reader can choose the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The last run, on a scale of its own.
    Last,
    /// All runs on one scale, so that they can be compared.
    All,
}

/// Returns the page.
///
/// # Errors
/// The picture is no JSON (a time that is no number).
pub fn page(picture: &Picture, shown: Shown) -> serde_json::Result<String> {
    // A log's text is inside a script: no `<` may end that or begin another.
    let data = serde_json::to_string(picture)?.replace('<', "\\u003c");
    let title = escape(&picture.title);
    let scale = match shown {
        Shown::Last => "own",
        Shown::All => "shared",
    };
    Ok(TEMPLATE.replace("{{scale}}", scale).replace("{{title}}", &title).replace("{{picture}}", &data))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
