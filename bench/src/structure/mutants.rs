// SPDX-License-Identifier: MIT OR Apache-2.0
//! The changes to the update's protocol that its host tests notice, by cargo-mutants.
//!
//! All of them take tens of minutes, so they are tried in parts, only with `--all`, and no part is begun after
//! `--minutes`. The result of a part is kept in `target/mutants/`, in a folder with a name that stands for the
//! protocol's sources: the next run goes on where this one ended, and a changed protocol starts again.
//!
//! Each mutant costs a build of the protocol and its tests, and one run of them. What a run does beside that is left
//! out: see [`TESTS_LEFT_OUT`] and [`SETTINGS`].

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::files::rust_files;
use super::{Context, Found, PROTOCOL, PROTOCOL_FOLDER, left_out};

/// Folder in which results are kept.
const FOLDER: &str = "target/mutants";
/// Changes that change nothing, with the reason: cargo-mutants leaves them out.
const CONFIG: &str = ".cargo/mutants.toml";
/// The parts that mutants are tried in.
const PARTS: usize = 8;
/// The version that set-up installs; another may make other mutants.
const VERSION: &str = "27.1.0";
/// Tests that take nine tenths of the time: every schedule of two CPUs. What only they notice counts as missed, so the
/// figure is at most too low.
const TESTS_LEFT_OUT: &str = "exhaustive::";
/// A mutant hangs if its tests take longer than this, and than five times what they take unchanged.
const LIMIT_S: &str = "30";
/// For a failure it matters that there is one: not the smallest input that leads to it, nor from where.
const SETTINGS: [(&str, &str); 3] =
    [("PROPTEST_MAX_SHRINK_ITERS", "0"), ("RUST_BACKTRACE", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")];
/// The build outputs, in [`FOLDER`]: each part finds the packages that the protocol uses there.
const BUILD_FOLDER: &str = "build";
/// Name of cargo-mutants' folder.
const OUTPUT: &str = "mutants.out";
/// A part's results once it was tried to its end.
const TRIED_FOLDER: &str = "tried";
/// cargo-mutants' exit statuses after a part that was tried to its end: all caught, some missed, some too slow.
const TRIED: [i32; 3] = [0, 2, 3];

/// The results of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    caught: usize,
    missed: usize,
}

impl Tally {
    fn plus(self, other: Self) -> Self {
        Self { caught: self.caught + other.caught, missed: self.missed + other.missed }
    }
}

pub(super) fn measure(context: &Context) -> Result<Found> {
    let folder =
        context.root.join(FOLDER).join(name_of(&context.root.join(PROTOCOL_FOLDER), &context.root.join(CONFIG))?);
    if context.all {
        if !is_here() {
            return Ok(left_out(format!(
                "cargo-mutants is not here; `scripts/setup.sh all`, or `cargo install --locked --version {VERSION} \
                 cargo-mutants`, installs it"
            )));
        }
        try_parts(context, &folder)?;
    }
    let known: Vec<Tally> = (0..PARTS).filter_map(|part| read(&folder_of(&folder, part))).collect();
    if known.len() < PARTS {
        return Ok(left_out(format!("{} of {PARTS} parts have been tried; --all goes on", known.len())));
    }
    let all = known.into_iter().fold(Tally::default(), Tally::plus);
    Ok(Found::Share { part: all.caught, whole: all.caught + all.missed })
}

/// Tries the parts that are not known, until the time is over.
fn try_parts(context: &Context, folder: &Path) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60 * context.minutes);
    for part in 0..PARTS {
        let into = folder_of(folder, part);
        if read(&into).is_none() && Instant::now() < end {
            context.step(&format!("structure: mutants of {PROTOCOL}, part {} of {PARTS}", part + 1));
            try_part(&context.root, part, &into)?;
        }
    }
    Ok(())
}

/// Tries one part; what it printed is in the part's folder if that failed.
fn try_part(root: &Path, part: usize, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    let log = fs::File::create(into.join("log"))?;
    let status = Command::new("cargo")
        .current_dir(root)
        .args(["mutants", "--package", PROTOCOL, "--no-shuffle", "--colors", "never"])
        .args(["--minimum-test-timeout", LIMIT_S, "--shard", &format!("{part}/{PARTS}"), "--output"])
        .arg(into)
        .args(["--", "--lib", "--tests", "--", "--skip", TESTS_LEFT_OUT])
        .env("CARGO_TARGET_DIR", root.join(FOLDER).join(BUILD_FOLDER))
        .envs(SETTINGS)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .context("cargo cannot be started")?;
    match status.code() {
        Some(code) if TRIED.contains(&code) => Ok(fs::rename(into.join(OUTPUT), into.join(TRIED_FOLDER))?),
        _ => bail!("cargo mutants ended with {status}; {} has the reason", into.join("log").display()),
    }
}

fn folder_of(folder: &Path, part: usize) -> PathBuf {
    folder.join(format!("{part}-of-{PARTS}"))
}

/// The tally of a part that was tried. A mutant that makes a test hang is caught by the time limit; one that does not
/// compile counts for nothing.
fn read(part: &Path) -> Option<Tally> {
    let folder = part.join(TRIED_FOLDER);
    let lines = |name: &str| fs::read_to_string(folder.join(name)).map(|text| text.lines().count()).ok();
    Some(Tally { caught: lines("caught.txt")? + lines("timeout.txt")?, missed: lines("missed.txt")? })
}

fn is_here() -> bool {
    let version = Command::new("cargo").args(["mutants", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// A name that changes with every source and test of a package, and with what is left out.
fn name_of(package: &Path, left_out: &Path) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::read(left_out).with_context(|| format!("{} cannot be read", left_out.display()))?.hash(&mut hasher);
    for file in rust_files(package)? {
        file.hash(&mut hasher);
        fs::read(package.join(file))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_once_it_was_tried_to_its_end() {
        let part = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(part.path().join(name).parent().expect("a folder")).expect("made");
            fs::write(part.path().join(name), text).expect("written");
        };
        write("mutants.out/caught.txt", "a\n");
        assert_eq!(read(part.path()), None);
        write("tried/caught.txt", "a\nb\n");
        write("tried/missed.txt", "c\n");
        write("tried/timeout.txt", "d\n");
        write("tried/unviable.txt", "e\nf\n");
        assert_eq!(read(part.path()), Some(Tally { caught: 3, missed: 1 }));
    }

    #[test]
    fn changed_sources_have_another_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        let name = || name_of(folder.path(), &folder.path().join("mutants.toml"));
        write("lib.rs", "fn a() {}");
        assert!(name().is_err());
        write("mutants.toml", "");
        let before = name().expect("named");
        assert_eq!(name().expect("named"), before);
        write("lib.rs", "fn b() {}");
        let changed = name().expect("named");
        write("mutants.toml", "exclude_re = []");
        assert!(changed != before && ![before, changed].contains(&name().expect("named")));
    }

    #[test]
    fn what_is_left_out_is_there_and_set_up_installs_the_version() {
        let root = baton::paths::workspace().expect("the sources");
        assert!(root.join(CONFIG).is_file());
        let script = fs::read_to_string(root.join("scripts/lib/toolchain.sh")).expect("a script");
        assert!(script.contains(&format!("\nMUTANTS_VERSION={VERSION}\n")));
        let tests = root.join(PROTOCOL_FOLDER).join("tests/simulated/main.rs");
        assert!(
            fs::read_to_string(tests)
                .expect("tests")
                .contains(&format!("mod {};", TESTS_LEFT_OUT.trim_end_matches(':')))
        );
    }
}
