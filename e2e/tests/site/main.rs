// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's guide as `make docs` renders it: the site's pages and links, the manual pages, a visit by a browser.
//!
//! All tests share one rendering, in a folder of its own: `target/docs` is the reader's.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use baton::paths::workspace;
use lab::checks::is_possible;
use tempfile::TempDir;

mod browser;
mod manual;
mod pages;

/// The folder that everything is rendered to; `None` on a machine without pandoc.
static RENDERED: LazyLock<Option<TempDir>> = LazyLock::new(|| {
    is_here("pandoc", "the user's guide is not rendered").then(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let script = root().join("scripts/docs.sh");
        let ended = Command::new(script).arg("--guide").arg(folder.path()).output().expect("the script is started");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        folder
    })
});

fn root() -> PathBuf {
    workspace().expect("the tests run in the workspace")
}

/// A folder of what is rendered: `site` or `man`.
fn rendered(part: &str) -> Option<PathBuf> {
    RENDERED.as_ref().map(|folder| folder.path().join(part))
}

/// Returns whether a program is in the path; what is left out without it is reported.
fn is_here(program: &str, left_out: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).any(|folder| folder.join(program).is_file());
    is_possible(found, &format!("no {program} here: {left_out}"))
}

/// The files of a folder with the named ending, by name, with their texts.
fn texts(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let paths = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let wanted = paths.filter(|path| name(path).ends_with(ending));
    let mut texts: Vec<_> = wanted.map(|path| (name(&path), fs::read_to_string(&path).expect("text"))).collect();
    texts.sort();
    texts
}

/// The chapters of the user's guide, by the names that their pages have.
fn chapters() -> Vec<String> {
    let sources = texts(&root().join("docs/guide"), ".md");
    sources.into_iter().map(|(name, _)| name.trim_end_matches(".md").to_owned()).collect()
}
