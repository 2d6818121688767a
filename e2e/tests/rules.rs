// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the repository itself, held by every file in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use baton::lab::workspace;

const LICENCE: &str = "SPDX-License-Identifier: MIT OR Apache-2.0";
/// Kinds of files that carry the licence.
const SOURCES: [&str; 7] = ["rs", "S", "ld", "sh", "toml", "md", "yml"];
/// Where `unsafe` may stand: the hypervisor's lowest layer, and guests that are made to misbehave.
const UNSAFE_FOLDERS: [&str; 2] = ["hypervisor/src/arch", "guests/tiny"];
const MOST_LINES: usize = 500;

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
