// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service's page in Chromium without a window: the time from the beginning of its navigation to the end of its
//! load event, as the page's own performance timing has it. Nothing of the page is in a cache.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::browser::Browser;

/// The longest time for a page, far beyond the goal.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Returns the seconds that the page takes in a browser that has just started.
pub(super) fn load(program: &Path, folder: &Path, service: SocketAddr) -> Result<f64> {
    let mut browser = Browser::start(program, folder)?;
    let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }), None)?;
    let attach = json!({ "targetId": target["targetId"], "flatten": true });
    let session = browser.ask("Target.attachToTarget", attach, None)?;
    let session = session["sessionId"].as_str().context("the browser names no session")?.to_owned();
    let url = format!("http://{service}/");
    browser.ask("Page.navigate", json!({ "url": url }), Some(&session))?;
    // `about:blank` has a load event, too; before the end of one the time is zero.
    let expression = format!(
        "location.href === '{url}' && document.querySelector('script') \
         ? performance.getEntriesByType('navigation')[0].loadEventEnd : 0"
    );
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        let evaluate = json!({ "expression": expression, "returnByValue": true });
        let answer = browser.ask("Runtime.evaluate", evaluate, Some(&session))?;
        if let Some(milliseconds) = answer["result"]["value"].as_f64().filter(|time| *time > 0.0) {
            return Ok(milliseconds / 1e3);
        }
        thread::sleep(POLL);
    }
    bail!("the browser has not loaded {url} within {LIMIT:?}")
}
