// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page for browsers. Script and style are part of the program: nothing comes from elsewhere.

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse as _, Response};
use baton::timeline::page::Shown;
use baton::timeline::{Picture, page};

use crate::api::{App, Refused};

/// The Content-Security-Policy of the timeline's page: it is one file, with its script in it, and loads nothing.
const INLINE: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox allow-scripts";

/// Returns the page.
pub async fn index() -> Html<&'static str> {
    Html(include_str!("page/index.html"))
}

/// Returns the page's script.
pub async fn script() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page/page.js")).into_response()
}

/// Returns the part of the page's script that has a host updated.
pub async fn update() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page/update.js")).into_response()
}

/// Returns the part of the page's script that draws the last hour.
pub async fn hour() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page/hour.js")).into_response()
}

/// Returns the part of the page's script that draws boot, restarts and updates.
pub async fn bars() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page/timeline.js")).into_response()
}

/// Returns the part of the page's script that shows a guest's console.
pub async fn console() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page/console.js")).into_response()
}

/// Returns the page's style.
pub async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("page/page.css")).into_response()
}

/// Returns a host's timeline as `baton timeline --html` has it.
///
/// # Errors
/// There is no such host, or no line to it.
pub async fn timeline(State(app): State<App>, Path(name): Path<String>) -> Result<Response, Refused> {
    let runs = app.host(&name)?.runs().await?.to_vec();
    let picture = Picture { title: format!("Timeline of {name}"), runs };
    let page = page::page(&picture, Shown::Last).map_err(|error| Refused::failed(format!("{error:#}")))?;
    Ok(([(CONTENT_SECURITY_POLICY, INLINE)], Html(page)).into_response())
}
