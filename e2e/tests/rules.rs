// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the repository itself, held by every file in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use baton::paths::workspace;

const LICENCE: &str = "SPDX-License-Identifier: MIT OR Apache-2.0";
/// Kinds of files that carry the licence.
const SOURCES: [&str; 7] = ["rs", "S", "ld", "sh", "toml", "md", "yml"];
/// Folders with `unsafe`: the hypervisor's lowest layer, test guests, and the peer that gives KVM memory.
const UNSAFE_FOLDERS: [&str; 4] = ["hypervisor/src/arch", "guests/agent", "guests/tiny", "guests/kvm"];
const MOST_LINES: usize = 500;
/// Greatest length of a line. Code is rustfmt's to wrap.
const MOST_COLUMNS: usize = 120;

/// Every file of the repository, by its path in it; no build output, nothing hidden.
fn files() -> Result<Vec<PathBuf>> {
    let root = workspace()?;
    let (mut files, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().context("it has a name")?.to_string_lossy().into_owned();
            match path.is_dir() {
                true if name.starts_with('.') || name == "target" => {}
                true => folders.push(path),
                false => files.push(path.strip_prefix(&root)?.to_owned()),
            }
        }
    }
    Ok(files)
}

/// Files of these kinds with their texts.
fn texts(kinds: &[&str]) -> Result<Vec<(PathBuf, String)>> {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|kind| kinds.iter().any(|wanted| kind == *wanted));
    let root = workspace()?;
    let wanted = files()?.into_iter().filter(is_wanted);
    wanted.map(|path| fs::read_to_string(root.join(&path)).map(|text| (path, text)).map_err(Into::into)).collect()
}

fn breaking(kinds: &[&str], is_broken: impl Fn(&Path, &str) -> bool) -> Result<Vec<PathBuf>> {
    let texts = texts(kinds)?;
    assert!(texts.len() > 1, "no {kinds:?} were found");
    let broken = texts.into_iter().filter(|(path, text)| is_broken(path, text));
    Ok(broken.map(|(path, _)| path).collect())
}

/// Returns whether a line is prose, which can be wrapped: in Rust a comment, in Markdown whatever is in no listing.
/// Tables and diagrams cannot.
fn is_prose(path: &Path, line: &str) -> bool {
    let text = line.trim_start();
    let is_comment = path.extension().is_some_and(|kind| kind == "md") || text.starts_with("//");
    is_comment && !text.trim_start_matches(['/', '!', ' ']).starts_with('|') && !line.contains(['│', '─', '►', '◄'])
}

/// The numbers of the lines of prose that are too long.
fn long_lines(path: &Path, text: &str) -> Vec<usize> {
    let mut is_listing = false;
    let mut is_long = |line: &str| {
        is_listing ^= line.trim_start_matches(['/', '!', ' ']).starts_with("```");
        !is_listing && is_prose(path, line) && line.chars().count() > MOST_COLUMNS && !line.contains("://")
    };
    (1..).zip(text.lines()).filter(|(_, line)| is_long(line)).map(|(number, _)| number).collect()
}

#[test]
fn prose_ends_at_column_120() -> Result<()> {
    let texts = texts(&["rs", "S", "md"])?;
    let long = texts.iter().map(|(path, text)| (path, long_lines(path, text))).filter(|(_, lines)| !lines.is_empty());
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "these files have comments or paragraphs beyond column {MOST_COLUMNS}: {long:#?}");
    Ok(())
}

#[test]
fn a_long_line_is_found_where_it_can_be_wrapped() {
    let (rust, words) = (Path::new("a.rs"), "word ".repeat(30));
    assert_eq!(long_lines(rust, &format!("fn f() {{}}\n    /// {words}")), [2]);
    assert_eq!(long_lines(rust, &format!("//! | {words}|\nlet a = \"{words}\";")), [0; 0]);
    assert_eq!(long_lines(Path::new("a.md"), &format!("{words}\n```\n{words}\n```\n{words}")), [1, 5]);
}

#[test]
fn every_source_names_its_licence_first() -> Result<()> {
    let has_licence = |text: &str| {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let line = if first.starts_with("#!") { lines.next().unwrap_or_default() } else { first };
        line.contains(LICENCE)
    };
    let broken = breaking(&SOURCES, |_, text| !text.trim().is_empty() && !has_licence(text))?;
    assert!(broken.is_empty(), "these lack \"{LICENCE}\" in their first line: {broken:#?}");
    Ok(())
}

#[test]
fn unsafe_code_stays_where_it_may_be() -> Result<()> {
    let keyword = "unsafe";
    let uses = |line: &str| {
        let code = line.trim_start();
        let starts = ["{", "fn ", "impl ", "extern ", "trait ", "("];
        let is_code = !code.starts_with("//");
        is_code
            && starts
                .iter()
                .any(|next| code.contains(&format!("{keyword} {next}")) || code.contains(&format!("{keyword}{next}")))
            || is_code && code.contains("allow(") && code.contains(&format!("{keyword}_code"))
    };
    let may = |path: &Path| UNSAFE_FOLDERS.iter().any(|folder| path.starts_with(folder));
    let broken = breaking(&["rs"], |path, text| !may(path) && text.lines().any(uses))?;
    assert!(broken.is_empty(), "there is unsafe code outside {UNSAFE_FOLDERS:?}: {broken:#?}");
    Ok(())
}

#[test]
fn no_source_is_too_long_to_be_read() -> Result<()> {
    let broken = breaking(&["rs"], |_, text| text.lines().count() > MOST_LINES)?;
    assert!(broken.is_empty(), "these have more than {MOST_LINES} lines; part them: {broken:#?}");
    Ok(())
}

/// Else a build that changes a lock file makes the next one call itself dirty.
#[test]
fn every_build_of_the_scripts_keeps_the_lock_files() -> Result<()> {
    const BUILDS: [&str; 6] = ["cargo build", "cargo test", "cargo clippy", "cargo run", "\"$command\" --", "= \"run"];
    const LEFT_OUT: [&str; 2] = ["bare_cargo", "--version"];
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let is_left_out = |line: &str| is_comment(line) || LEFT_OUT.iter().any(|word| line.contains(word));
    let is_build = |line: &&str| BUILDS.iter().any(|build| line.contains(build)) && !is_left_out(line);
    let root = workspace()?;
    let scripts = texts(&["sh"])?.into_iter().filter(|(path, _)| path.starts_with("scripts"));
    let config = fs::read_to_string(root.join(".cargo/config.toml"))?;
    let all: Vec<_> = scripts.chain([(PathBuf::from(".cargo/config.toml"), config)]).collect();
    let lines = all.iter().flat_map(|(path, text)| text.lines().filter(is_build).map(move |line| (path, line)));
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() > 5, "no build was found: {lines:#?}");
    let unlocked: Vec<_> = lines.iter().filter(|(_, line)| !line.contains("--locked")).collect();
    assert!(unlocked.is_empty(), "these lack --locked: {unlocked:#?}");
    Ok(())
}
