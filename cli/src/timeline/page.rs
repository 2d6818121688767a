// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture as one HTML page that needs nothing else: data, style and script are in it.

use super::Picture;

const TEMPLATE: &str = include_str!("page.html");

/// What a page shows at first; a person at it can choose otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The last run, on a scale of its own.
    Last,
    /// All runs on one scale, so that they can be compared.
    All,
}

/// The page.
///
/// # Errors
/// The picture is no JSON (a time that is no number).
pub fn page(picture: &Picture, shown: Shown) -> serde_json::Result<String> {
    // What a log reports stands inside a script: no `<` may end that or begin another.
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
