// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture as one HTML page that needs nothing else: data, style and script are in it.

use super::Picture;

const TEMPLATE: &str = include_str!("page.html");

/// The page.
///
/// # Errors
/// The picture is no JSON (a time that is no number).
pub fn page(picture: &Picture) -> serde_json::Result<String> {
    // What a log reports stands inside a script: no `<` may end that or begin another.
    let data = serde_json::to_string(picture)?.replace('<', "\\u003c");
    let title = escape(&picture.title);
    Ok(TEMPLATE.replace("{{title}}", &title).replace("{{picture}}", &data))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
