// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual pages: those of chapters, made of the sources of the site, and those of the tool's commands.

use std::path::Path;
use std::process::Command;

use clap::Parser as _;

use crate::{chapters, is_here, rendered, texts};

/// Formats a page as man(1) does on a terminal of 80 columns, and returns its text and all that groff complains about.
fn formatted(page: &Path) -> (String, String) {
    let ended = Command::new("groff").args(["-man", "-t", "-k", "-ww", "-Tutf8", "-P-cbou"]).arg(page).output();
    let ended = ended.expect("groff is started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&ended.stdout), text(&ended.stderr))
}

/// Formats all pages of a folder with the named ending, none of which groff may complain about.
fn all_formatted(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let names = texts(folder, ending).into_iter().map(|(name, _)| name);
    let format = |name: String| {
        let (text, complaints) = formatted(&folder.join(&name));
        assert!(complaints.is_empty(), "{name}: {complaints}");
        (name, text)
    };
    names.map(format).collect()
}

fn has_groff() -> bool {
    is_here("groff", "manual pages are not formatted")
}

#[test]
fn every_chapter_is_a_manual_page_that_groff_formats_without_a_warning() {
    let Some(folder) = rendered("man").filter(|_| has_groff()) else { return };
    let pages = all_formatted(&folder, ".7");
    for chapter in chapters() {
        let name = format!("baton-{chapter}");
        let (_, text) = pages.iter().find(|(file, _)| *file == format!("{name}.7")).expect("a page of the chapter");
        // By these lines mandb(8) lists a page for whatis(1) and apropos(1).
        assert!(text.contains(&format!("NAME\n       {name} - ")), "{name}: {text}");
        assert!(text.contains("\nDESCRIPTION\n") && text.contains("\nSEE ALSO\n"), "{name}: {text}");
    }
}

#[test]
fn every_manual_page_that_a_chapter_names_is_there() {
    let Some(folder) = rendered("man").filter(|_| has_groff()) else { return };
    for (name, text) in all_formatted(&folder, ".7") {
        let others: Vec<_> = text.split("(7)").map(|before| before.split([' ', '[', '\n']).next_back()).collect();
        let others = others.into_iter().flatten().filter(|other| other.starts_with("baton-"));
        for other in others {
            assert!(folder.join(format!("{other}.7")).is_file(), "{name} names {other}(7)");
        }
    }
}

#[test]
fn a_manual_page_has_words_for_pictures_and_lists_for_tables() {
    let Some(folder) = rendered("man").filter(|_| has_groff()) else { return };
    let (timeline, _) = formatted(&folder.join("baton-timeline.7"));
    assert!(timeline.contains("Picture: [A host of four CPUs boots"), "{timeline}");
    let (reference, _) = formatted(&folder.join("baton-reference.7"));
    assert!(reference.contains("       cpus   default: 2\n              limits: 1 to 255\n"), "{reference}");
}

#[test]
fn every_command_of_the_tool_has_a_manual_page_that_groff_formats_without_a_warning() {
    if !has_groff() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let command = ["baton".as_ref(), "man".as_ref(), folder.path().as_os_str()];
    let command = baton::args::Cli::parse_from(command);
    assert_eq!(baton::commands::run(&command.target, command.command).expect("pages are written"), 0);
    let pages = all_formatted(folder.path(), ".1");
    for command in ["baton", "baton-update", "baton-vm-list"] {
        assert!(pages.iter().any(|(name, _)| *name == format!("{command}.1")), "{command} has no page");
    }
}
