// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service's page in Chromium without a window: the time from the beginning of its navigation to the end of its
//! load event, as the page's own performance timing has it. Nothing of the page is in a cache.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::browser::Browser;

/// The longest time for a page, far beyond the goal.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// The page, loaded.
pub(super) struct Loaded {
    /// The seconds that it took in a browser that had just started.
    pub seconds: f64,
    /// Rules for people with disabilities that it violates, by axe-core; `None` where that is not here.
    pub violations: Option<f64>,
}

/// Loads the page, and has it checked by the axe-core at this path.
pub(super) fn load(program: &Path, folder: &Path, service: SocketAddr, axe: &Path) -> Result<Loaded> {
    let mut browser = Browser::start(program, folder)?;
    let url = format!("http://{service}/");
    let target = browser.ask("Target.createTarget", json!({ "url": url }), None)?;
    let attach = json!({ "targetId": target["targetId"], "flatten": true });
    let session = browser.ask("Target.attachToTarget", attach, None)?;
    let session = session["sessionId"].as_str().context("the browser names no session")?.to_owned();
    // The page itself adds the chosen host behind its address. The last is zero before the end of the load event.
    const STATE: &str = "[location.origin + location.pathname, document.scripts.length > 0, document.readyState, \
                         performance.getEntriesByType('navigation')[0]?.loadEventEnd ?? 0]";
    let evaluate = json!({ "expression": STATE, "returnByValue": true });
    let (end, mut state) = (Instant::now() + LIMIT, Value::Null);
    while Instant::now() < end {
        state = browser.ask("Runtime.evaluate", evaluate.clone(), Some(&session))?["result"]["value"].take();
        let milliseconds = state[3].as_f64().unwrap_or_default();
        if state[0] == url && state[1] == true && milliseconds > 0.0 {
            let violations = fs::read_to_string(axe).ok().map(|axe| violations(&mut browser, &session, &axe));
            return Ok(Loaded { seconds: milliseconds / 1e3, violations: violations.transpose()? });
        }
        thread::sleep(POLL);
    }
    bail!("the browser has not loaded {url} within {LIMIT:?}; address, script, state, end of loading: {state}")
}

/// Counts the rules that the page violates.
fn violations(browser: &mut Browser, session: &str, axe: &str) -> Result<f64> {
    browser.ask("Runtime.evaluate", json!({ "expression": axe }), Some(session))?;
    let count = "axe.run().then(found => found.violations.length)";
    let run = json!({ "expression": count, "awaitPromise": true, "returnByValue": true });
    let answer = browser.ask("Runtime.evaluate", run, Some(session))?;
    answer["result"]["value"].as_f64().with_context(|| format!("axe-core reports {answer}"))
}
