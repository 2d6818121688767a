// SPDX-License-Identifier: MIT OR Apache-2.0
//! The browser that opens pages for tests and benches.

use std::env;
use std::path::PathBuf;

/// Chromium under the names that distributions give it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Returns the browser: the one that `BATON_BROWSER` names, or the first of Chromium's names in the path.
pub fn installed() -> Option<PathBuf> {
    let named = env::var_os("BATON_BROWSER").map(PathBuf::from);
    let folders: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let found = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    named.into_iter().chain(found).find(|path| path.is_file())
}
