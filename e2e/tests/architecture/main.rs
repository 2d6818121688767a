// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chapters of the architecture are true of the tree: files, functions and statics that they name exist.

mod files;
mod statics;
mod tests;
mod walks;

use std::fs;
use std::path::PathBuf;

use baton::paths::workspace;

const CHAPTERS: &str = "docs/architecture";
const MOST_LINES: usize = 300;

fn root() -> PathBuf {
    workspace().expect("the tests run in the workspace")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Each chapter's path in the repository, and its text.
fn chapters() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join(CHAPTERS)).expect("chapters").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names.into_iter().map(|name| format!("{CHAPTERS}/{name}")).map(|path| (path.clone(), read(&path))).collect()
}

/// The cells of every row of a text's tables, headers included.
fn table_rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    rows.map(|line| line.trim_matches('|').split(" |").map(str::trim).collect())
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_entry_page_lists_every_chapter() {
    let page = read("ARCHITECTURE.md");
    let listed: Vec<_> = page.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    for (path, _) in chapters() {
        assert!(listed.contains(&path.as_str()), "ARCHITECTURE.md has no link to {path}");
    }
}

#[test]
fn each_chapter_is_short_and_has_a_diagram() {
    for (path, text) in chapters() {
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES, "{path} has {lines} lines, more than {MOST_LINES}; part it");
        assert!(text.contains("\n```mermaid\n") || text.contains("\n```text\n"), "{path} has no diagram");
    }
}

#[test]
fn every_file_that_a_chapter_names_exists() {
    let tree = files::Tree::of(&root());
    let mut problems = Vec::new();
    for (path, text) in chapters() {
        let named = tree.named_in(&text);
        assert!(!named.is_empty(), "{path} names no file");
        problems.extend(tree.missing_from(&text, &named).into_iter().map(|name| format!("{path}: {name}")));
    }
    assert!(problems.is_empty(), "no such files, or none that the chapter names in full: {problems:#?}");
}

#[test]
fn every_walk_goes_downward_through_functions_that_exist() {
    let calls = walks::calls(&read(&format!("{CHAPTERS}/walks.md")));
    assert!(calls.len() > 100, "the walks were not found: {} calls", calls.len());
    let problems = walks::problems(&calls, |path| fs::read_to_string(root().join(path)).ok());
    assert!(problems.is_empty(), "{CHAPTERS}/walks.md: {problems:#?}");
}

#[test]
fn every_static_is_listed_with_its_reason() {
    let listed = statics::listed(&read(&format!("{CHAPTERS}/statics.md")));
    let real = statics::of_hypervisor(&root());
    assert!(real.len() > 50, "no statics were found");
    let (unlisted, gone) = (&real - &listed, &listed - &real);
    assert!(unlisted.is_empty(), "{CHAPTERS}/statics.md lacks a row for: {unlisted:#?}");
    assert!(gone.is_empty(), "{CHAPTERS}/statics.md has rows for statics that are gone: {gone:#?}");
}
