// SPDX-License-Identifier: MIT OR Apache-2.0
//! The language of the repository: words that it once coined do not come back where the field has a name of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use baton::paths::workspace;

/// Coined words and phrases, in lower case, and the field's names. A word in the plural is a word of its own.
const COINED: &[(&str, &str)] = &[
    ("processor", "CPU"),
    ("processors", "CPUs"),
    ("allegation", "untrusted input"),
    ("mend", "fix or hint"),
    ("mends", "fixes or hints"),
    ("deaf", "unresponsive"),
    ("crossing", "switch pages"),
    ("parcel", "hand-over block"),
    ("baggage", "hand-over state"),
    ("seat", "slot"),
    ("seats", "slots"),
    ("anew", "again"),
    ("whoever", "the CPU that, the caller or the owner"),
    ("gap", "blackout, or pause for the guest's view"),
    ("gaps", "blackouts, or pauses for the guest's view"),
    ("goes over", "switches to the new image, or is handed over"),
    ("go over", "switch to the new image, or are handed over"),
    ("gone over", "switched to the new image, or handed over"),
    ("comes over", "is handed over"),
    ("come over", "are handed over"),
    ("taken along", "handed over"),
    ("put to rest", "parked or taken offline"),
    ("forget translations", "flush, or TLB shootdown"),
    ("address space tag", "ASID or VPID"),
    ("look", "poll, check, sample or read"),
    ("looks", "polls, checks, samples or reads"),
    ("looked", "polled, checked, sampled or read"),
    ("looking", "polling, checking or searching"),
    ("tell", "report, state or notify"),
    ("tells", "reports, states or notifies"),
    ("told", "reported, stated or notified"),
    ("telling", "reporting"),
    ("says", "states, logs or prints"),
    ("forget", "flush, discard or clear"),
    ("forgets", "flushes, discards or clears"),
    ("forgotten", "flushed, discarded or cleared"),
    ("nobody", "no guest, no client or no CPU"),
    ("somebody", "a guest, a client or a CPU"),
    ("everybody", "every guest, client or CPU"),
    ("whom", "the CPU that, the caller or the owner"),
    ("take back", "withdraw, revoke or reclaim"),
    ("takes back", "withdraws, revokes or reclaims"),
    ("taken back", "withdrawn, revoked or reclaimed"),
    ("switched on", "enabled, or powered on"),
    ("switched off", "disabled, or powered off"),
];

/// An exception: a place in which one of these words is right.
struct Allowed {
    words: &'static [&'static str],
    /// The beginning of a path, or the end of one that begins with `*`.
    path: &'static str,
    /// Part of the line; empty for all lines of the file.
    line: &'static str,
    why: &'static str,
}

const fn allowed(words: &'static [&'static str], path: &'static str, line: &'static str, why: &'static str) -> Allowed {
    Allowed { words, path, line, why }
}

const PROCESSOR: &[&str] = &["processor", "processors"];
const GAP: &[&str] = &["gap", "gaps"];
const LOOK: &[&str] = &["look", "looks"];
const TOLD: &[&str] = &["told"];

const ALLOWED: &[Allowed] = &[
    allowed(&[], "e2e/tests/words.rs", "", "it names them"),
    allowed(PROCESSOR, "crates/wire/src/", "serde(rename = ", "JSON keeps the names of release 0.1.0"),
    allowed(PROCESSOR, "cli/src/commands/records.rs", "lost", "JSON keeps the names of release 0.1.0"),
    allowed(PROCESSOR, "bench/src/panic.rs", "processor_seconds_ratio", "a goal's identifier"),
    allowed(PROCESSOR, "crates/vm/src/platform/acpi", "", "names of ACPI's structures and fields"),
    allowed(PROCESSOR, "crates/vm/src/devices/lapic/", "riority", "Processor Priority Register, in both manuals"),
    allowed(PROCESSOR, "crates/vm/src/devices/lapic/", "PROCESSOR_PRIORITY", "Processor Priority Register"),
    allowed(PROCESSOR, "crates/vm/src/devices/lapic/", "bootstrap processor", "a bit's name, in both manuals"),
    allowed(PROCESSOR, "crates/vm/src/cpu/cpuid", "multi_processor_flag", "the bit HTT, by AMD's manual"),
    allowed(PROCESSOR, "crates/vm/src/cpu/cpuid", "processor trace", "Intel Processor Trace"),
    allowed(PROCESSOR, "hypervisor/src/arch/apic.rs", "MultiProcessor", "Intel's MultiProcessor Specification"),
    allowed(PROCESSOR, "guests/agent/src/machine", "\"processor", "a line of Linux's /proc/cpuinfo"),
    allowed(PROCESSOR, "lab/src/kvm.rs", "proc/cpuinfo", "a line of Linux's /proc/cpuinfo"),
    allowed(PROCESSOR, "crates/vmx/src/", "rocessor-based", "words of controls, by Intel's manual"),
    allowed(GAP, "crates/vmx/src/", "PleGap", "the field PLE_Gap, by Intel's manual"),
    allowed(GAP, "crates/wire/src/", "serde(rename = ", "JSON keeps the names of release 0.1.0"),
    allowed(GAP, "e2e/tests/boots/images.rs", "\\\"bytes_hashed_in_gap\\\"", "JSON keeps the names of release 0.1.0"),
    allowed(GAP, "serve/tests/", "\"gap_ns\"", "JSON keeps the names of release 0.1.0"),
    allowed(GAP, "bench/src/", "goal(\"", "goals' identifiers"),
    allowed(GAP, "bench/src/", "Goal::at_most(\"", "goals' identifiers"),
    allowed(GAP, "docs/bench", "bytes_hashed_in_gap", "goals' identifiers"),
    allowed(GAP, "docs/bench", "gap_vs_linux_kexec", "goals' identifiers"),
    allowed(GAP, "cli/src/timeline/advice", "", "a gap between two lines of a log is one"),
    allowed(GAP, "cli/src/timeline/dmesg", "", "a gap between two lines of a log is one"),
    allowed(GAP, "cli/src/commands/timeline.rs", "", "a gap between two lines of a log is one"),
    allowed(GAP, "docs/", "gaps between lines", "a gap between two lines of a log is one"),
    allowed(GAP, "docs/", "the time between two lines", "a gap between two lines of a log is one"),
    allowed(GAP, "docs/", "longest gaps", "a gap between two lines of a log is one"),
    allowed(GAP, "crates/klog/", "", "numbers without gaps"),
    allowed(GAP, "crates/watch/src/tests/", "with_a_gap", "samples with a gap"),
    allowed(GAP, "crates/handover/src/tests/schema.rs", "without_a_gap", "fields without a gap"),
    allowed(GAP, "cli/src/commands/records.rs", "without gaps", "numbers without gaps"),
    allowed(GAP, "*.md", "gaps, so that every reader", "numbers without gaps"),
    allowed(GAP, "*.md", "sees no gap", "numbers without gaps"),
    allowed(GAP, "hypervisor/src/kernel/console/log/predecessor.rs", "sees no gap", "numbers without gaps"),
    allowed(GAP, "e2e/tests/boots/log.rs", "a gap in", "numbers without gaps"),
    allowed(GAP, "hypervisor/src/arch/stack.rs", "(or the gap)", "addresses without memory"),
    allowed(GAP, "cli/src/timeline/page.html", "gap: ", "a property of CSS"),
    allowed(GAP, "serve/src/page/page.css", "gap: ", "a property of CSS"),
    allowed(GAP, "scripts/docs/style.css", "gap: ", "a property of CSS"),
    allowed(GAP, "serve/src/page/update.js", "gap_ns", "JSON keeps the names of release 0.1.0"),
    allowed(LOOK, "crates/handover/src/state/", "", "fields and flags of the hand-over's schema keep their names"),
    allowed(TOLD, "crates/handover/src/state/vcpu.rs", "steal_told_ns", "a field of the hand-over's schema"),
    allowed(LOOK, "crates/vm/src/machine/nmi.rs", "", "a field and a flag of the hand-over's schema"),
    allowed(LOOK, "crates/vm/src/machine/saved/moving.rs", "", "a field and a flag of the hand-over's schema"),
    allowed(LOOK, "crates/vm/src/machine/tests/saved/moving.rs", "", "a field and a flag of the hand-over's schema"),
    allowed(TOLD, "crates/vm/src/machine/saved/cpu.rs", "steal_told_ns", "a field of the hand-over's schema"),
    allowed(&["nobody"], "e2e/src/dmesg.rs", "nobody cared", "Linux's words"),
    allowed(&["go over", "goes over", "come over"], "", "line", "bytes do go over a line"),
];

const KINDS: [&str; 11] = ["rs", "S", "ld", "sh", "toml", "md", "yml", "js", "html", "css", "lua"];

/// The files that are in the repository or would be added to it.
fn files() -> Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace()?)
        .output()
        .context("git is needed")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let files = String::from_utf8(listed.stdout)?.lines().map(PathBuf::from).collect::<Vec<_>>();
    let is_text = |path: &PathBuf| path.extension().is_some_and(|kind| KINDS.iter().any(|wanted| kind == *wanted));
    Ok(files.into_iter().filter(is_text).collect())
}

/// The words of a line, those inside identifiers too, in lower case with a blank on either side of each.
fn words(line: &str) -> String {
    let mut words = String::from(" ");
    let mut was_lower = false;
    for c in line.chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase();
        match c.is_alphanumeric() {
            true => words.extend(c.to_lowercase()),
            false if words.ends_with(' ') => {}
            false => words.push(' '),
        }
    }
    words + " "
}

fn found(line: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let words = words(line);
    let is_there = move |(_, (word, _)): &(usize, &(&str, &str))| words.contains(&format!(" {word} "));
    COINED.iter().enumerate().filter(is_there).map(|(at, (word, _))| (at, *word))
}

impl Allowed {
    fn covers(&self, path: &str, line: &str, word: &str) -> bool {
        let is_path = match self.path.strip_prefix('*') {
            Some(end) => path.ends_with(end),
            None => path.starts_with(self.path),
        };
        is_path && line.contains(self.line) && (self.words.is_empty() || self.words.contains(&word))
    }
}

/// Returns whether a line is a comment that begins with a pronoun where a reader expects the noun.
fn begins_without_a_noun(line: &str) -> bool {
    let comment = line.trim_start().trim_start_matches(['/', '!', '#']);
    let is_comment = comment.len() < line.trim_start().len();
    is_comment
        && ["What ", "Who ", "Whoever ", "As above", "When."].iter().any(|it| comment.trim_start().starts_with(it))
}

/// Returns the coined words of a text, by line; marks the exceptions that were needed.
fn coined(path: &Path, text: &str, needed: &mut [bool]) -> Vec<String> {
    let path = path.to_string_lossy();
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if begins_without_a_noun(line) && !path.ends_with(".md") {
            complaints.push(format!("{path}:{number}: begin with the noun: {line}"));
        }
        for (at, word) in found(line) {
            match ALLOWED.iter().position(|allowed| allowed.covers(&path, line, word)) {
                Some(exception) => needed[exception] = true,
                None => complaints.push(format!("{path}:{number}: \"{word}\": write {}", COINED[at].1)),
            }
        }
    }
    complaints
}

#[test]
fn things_are_called_by_the_fields_names() -> Result<()> {
    let mut needed = vec![false; ALLOWED.len()];
    let mut complaints = Vec::new();
    let root = workspace()?;
    let files = files()?;
    ensure!(files.len() > 1000, "these are not all files: {}", files.len());
    for path in files.iter().filter(|path| root.join(path).is_file()) {
        complaints.extend(coined(path, &fs::read_to_string(root.join(path))?, &mut needed));
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
    let idle: Vec<_> = ALLOWED.iter().zip(needed).filter(|(_, is_needed)| !is_needed).collect();
    let idle: Vec<_> = idle.iter().map(|(it, _)| format!("{} {:?}: {}", it.path, it.line, it.why)).collect();
    assert!(idle.is_empty(), "exceptions that nothing needs: remove them: {idle:#?}");
    Ok(())
}

#[test]
fn a_coined_word_is_found_wherever_it_stands() {
    let complaints = |path: &str, text: &str| coined(Path::new(path), text, &mut [false; ALLOWED.len()]).len();
    for seeded in [
        "/// A processor waits.",
        "let boot_processor = 0;",
        "struct ProcessorSet;",
        "const MAX_PROCESSORS: u32 = 1;",
        "| room | Processors, two |",
        "// It goes over to the new image.",
        "//! The gap's first step.",
        "fn is_gap_open() {}",
        "hint.mend()",
        "// The pin is looked at.",
        "/// What a guest has.",
        "# Who may connect.",
    ] {
        assert_eq!(complaints("hypervisor/src/main.rs", seeded), 1, "{seeded}");
    }
    for clean in ["/// A coprocessor.", "let recommended = amend;", "// A vCPU of 2 CPUs", "// stopgap", "overlooked"] {
        assert_eq!(complaints("hypervisor/src/main.rs", clean), 0, "{clean}");
    }
}

#[test]
fn an_exception_holds_for_its_place_and_its_words_only() {
    let complaints = |path: &str, text: &str| coined(Path::new(path), text, &mut [false; ALLOWED.len()]).len();
    assert_eq!(complaints("cli/src/timeline/dmesg.rs", "let gaps = 1;"), 0);
    assert_eq!(complaints("cli/src/timeline/dmesg.rs", "let processors = 1;"), 1);
    assert_eq!(complaints("cli/src/timeline/host.rs", "let gaps = 1;"), 1);
    assert_eq!(complaints("e2e/tests/boots/log.rs", "\"a gap in {own:#?}\""), 0);
    assert_eq!(complaints("e2e/tests/boots/log.rs", "the gap"), 1);
}
