// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documents' statements are true: packages and dependencies as in the manifests, options as the host parses them,
//! configurations that the tool accepts, tests, files and headings that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use baton::config::Config;
use baton::paths::workspace;
use bundle::{Bundle, Manifest};
use clap::Parser as _;
use dev::args::Cli;
use lab::Ending;
use toml::{Table, Value};

type Names = BTreeSet<String>;

/// The chapters that the manifests are compared with.
const CRATES: &str = "docs/architecture/crates.md";
const DEPENDENCIES: &str = "docs/architecture/dependencies.md";
/// The chapters of the user's guide, and the one with the tables that are compared with the code.
const GUIDE: &str = "docs/guide";
const REFERENCE: &str = "docs/guide/reference.md";

fn root() -> PathBuf {
    workspace().expect("the tests run in the workspace")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifest(folder: &str) -> Table {
    read(&format!("{folder}/Cargo.toml")).parse().unwrap_or_else(|error| panic!("{folder}: {error}"))
}

fn keys(table: &Table, path: &[&str]) -> Names {
    let found = path.iter().try_fold(table, |table, key| table.get(*key).and_then(Value::as_table));
    found.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

/// The folders of the workspace's packages.
fn packages() -> Vec<String> {
    let crates = fs::read_dir(root().join("crates")).expect("there are crates").flatten();
    let crates = crates.map(|entry| format!("crates/{}", entry.file_name().to_string_lossy()));
    let others = [
        "hypervisor",
        "cli",
        "lab",
        "bench",
        "dev",
        "e2e",
        "fuzz",
        "guests/agent",
        "guests/kvm",
        "guests/tiny",
        "loader",
        "serve",
    ]
    .map(str::to_owned);
    crates.chain(others).filter(|folder| root().join(folder).join("Cargo.toml").is_file()).collect()
}

fn name_of(folder: &str) -> String {
    manifest(folder)["package"]["name"].as_str().expect("a package has a name").to_owned()
}

/// The names of the repository's own packages.
fn own_names() -> Names {
    packages().iter().map(|folder| name_of(folder)).collect()
}

/// By folder, the packages of this repository that it imports.
fn imports() -> BTreeMap<String, Names> {
    let own = own_names();
    let of = |folder: &String| &keys(&manifest(folder), &["dependencies"]) & &own;
    packages().iter().map(|folder| (folder.clone(), of(folder))).collect()
}

fn list(text: &str, separator: char) -> Names {
    text.split(separator).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The rows of a document's tables with a header that begins with `first`, cell by cell.
fn rows(document: &str, first: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split(" |").map(|cell| cell.trim().to_owned()).collect();
    let table = read(document).lines().map(str::to_owned).collect::<Vec<_>>();
    let start = table.iter().position(|line| line.starts_with(&format!("| {first} |"))).expect("the table is there");
    table[start + 2..].iter().take_while(|line| line.starts_with('|')).map(|line| cells(line)).collect()
}

#[test]
fn every_package_is_listed_with_its_imports() {
    let listed: BTreeMap<_, _> =
        rows(CRATES, "package").into_iter().map(|cells| (cells[0].replace('`', ""), list(&cells[2], ','))).collect();
    assert_eq!(listed, imports(), "{CRATES}, table of packages (left), is not that of the manifests (right)");
}

#[test]
fn the_diagram_has_every_dependency_and_no_other() {
    let text = read(CRATES);
    let drawn = text.split("```mermaid").nth(1).and_then(|rest| rest.split("```").next()).expect("a diagram");
    let arrow = |line: &str| line.split_once("-->").map(|(from, to)| (from.trim().to_owned(), list(to, '&')));
    let drawn: BTreeMap<_, _> = drawn.lines().filter_map(arrow).collect();
    let real = imports().into_iter().filter(|(_, imports)| !imports.is_empty());
    let real: BTreeMap<_, _> = real.map(|(folder, imports)| (name_of(&folder), imports)).collect();
    assert_eq!(drawn, real, "{CRATES}, diagram (left), is not that of the manifests (right)");
}

#[test]
fn every_dependency_is_listed_with_its_reason() {
    let declared = keys(&read("Cargo.toml").parse().expect("a manifest"), &["workspace", "dependencies"]);
    let listed: Names =
        rows(DEPENDENCIES, "crate").iter().flat_map(|cells| list(&cells[0].replace('`', ""), ',')).collect();
    assert_eq!(listed, &declared - &own_names(), "{DEPENDENCIES} (left) is not that of Cargo.toml (right)");
}

#[test]
fn every_option_of_the_host_is_in_the_guide() {
    // Without the backslash a page would take `<baud>` for HTML, and show nothing.
    let listed: Vec<_> = rows(REFERENCE, "option").iter().map(|c| c.join(" | ").replace("\\<", "<")).collect();
    let there = boot::OPTIONS.iter().map(|o| format!("`{}` | {} | `{}` | {}", o.name, o.accepted, o.default, o.what));
    assert_eq!(listed, there.collect::<Vec<_>>());
}

#[test]
fn every_configuration_in_the_guide_is_accepted() {
    let texts: Vec<_> = in_folder(GUIDE).iter().map(|path| fs::read_to_string(path).expect("text")).collect();
    let examples = texts.iter().flat_map(|text| text.split("```toml").skip(1));
    let examples: Vec<&str> = examples.filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() > 1);
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["vmlinuz", "initrd.img", "initramfs.cpio", "probe.elf", "data.bin"] {
        fs::write(folder.path().join(name), "x").expect("written");
    }
    let drivers = folder.path().join("drivers");
    fs::create_dir(&drivers).and_then(|()| fs::write(drivers.join("modules.builtin"), "")).expect("written");
    let path = folder.path().join("host.toml");
    let beside = baton::bundle::build(&Config::parse(&path, HOST).expect("good"), None).expect("built");
    let beside = Bundle::parse(&beside).expect("good").manifest().clone();
    for example in examples {
        let host = if example.contains(ADDED) { &beside } else { &Manifest::default() };
        Config::parse_beside(&path, example, host).unwrap_or_else(|error| panic!("{error} in{example}"));
    }
}

/// The first line of an example that describes a guest for a host that runs, and that host.
const ADDED: &str = "# db.toml";
const HOST: &str = "
[[network]]
name = \"lan\"
[[guest]]
name = \"storage\"
kernel = \"vmlinuz\"
memory = \"64MiB\"
vsock = true
";

/// The names between backquotes.
fn quoted(cell: &str) -> Names {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names in the first cells of a table of the reference.
fn first_cells(header: &str) -> Names {
    rows(REFERENCE, header).iter().flat_map(|cells| quoted(&cells[0])).collect()
}

#[test]
fn every_key_of_host_toml_is_in_the_reference() {
    let sections = [
        ("[host]", ""),
        ("[[host.device]]", ""),
        ("[trust]", ""),
        ("[[trust.control]]", ""),
        ("[[network]]", ""),
        ("[[guest]]", "name = \"a\"\n"),
    ];
    // A table in a table of a list follows one of these.
    let of_guests = ["[[guest.nic]]", "[[guest.disk]]"];
    for (section, start) in sections.into_iter().chain(of_guests.map(|section| (section, "[[guest]]\n"))) {
        let (before, within) = if of_guests.contains(&section) { (start, "") } else { ("", start) };
        let text = format!("{before}{section}\n{within}\"?\" = 1\n");
        let error = Config::parse(&PathBuf::from("host.toml"), &text).expect_err("an unknown key");
        let message = error.mistakes.iter().find_map(|mistake| mistake.message.split_once("the keys here are "));
        let keys = list(message.expect("a list of keys").1, ',');
        assert_eq!(first_cells(&format!("`{section}`")), keys, "{REFERENCE}, keys of {section} (left)");
    }
}

#[test]
fn every_event_is_in_the_reference() {
    let error = serde_json::from_str::<wire::EventKind>("\"?\"").expect_err("an unknown event").to_string();
    let kinds = quoted(error.split_once("expected one of ").expect("a list of events").1);
    assert_eq!(first_cells("event (`--json`)"), kinds, "{REFERENCE}, events (left), are not the protocol's (right)");
}

#[test]
fn every_exit_status_is_in_the_reference() {
    let emulator = Ending::Emulator { status: 9, output: String::new() };
    let of = |ending: Ending| ending.process_status().to_string();
    let endings = [Ending::Success, Ending::PoweredOff, Ending::Failed, Ending::Panicked, emulator].map(of);
    let usage = Cli::try_parse_from(["baton", "--?"]).expect_err("a wrong command line").exit_code().to_string();
    // Those of commands that were cut off, each with a test in `dev/tests/command_line`.
    let cut_off = ["124", "130", "141", "128 + n"].map(str::to_owned);
    assert_eq!(Ending::Killed { signal: 9 }.process_status(), 128 + 9);
    let failures = baton::program::Kind::ALL.map(|kind| kind.status().to_string());
    let expected: Names = endings.into_iter().chain([usage]).chain(cut_off).chain(failures).collect();
    let listed: Names = rows(REFERENCE, "status").iter().map(|cells| cells[0].clone()).collect();
    assert_eq!(listed, expected, "{REFERENCE}, exit statuses (left), are not the tool's (right)");
}

/// The text of every source file.
fn code() -> String {
    let mut folders: Vec<PathBuf> = packages().iter().map(|folder| root().join(folder)).collect();
    let mut code = String::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                code.push_str(&fs::read_to_string(&path).expect("text"));
            }
        }
    }
    code
}

#[test]
fn every_test_that_the_threats_name_is_there() {
    let code = code();
    for cells in rows("docs/threats.md", "a guest") {
        let names = quoted(&cells[2]);
        assert!(!names.is_empty(), "no test in {cells:?}");
        let is_there = |name: &&String| code.contains(&format!("fn {name}(")) || code.contains(&format!("\"{name}\""));
        let missing: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty(), "{missing:?} are no tests");
    }
}

/// The documents of a folder.
fn in_folder(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("documents").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect()
}

/// Every document, the chapters included.
fn documents() -> Vec<PathBuf> {
    let others = ["guests/README.md"].map(|name| root().join(name));
    [".", "docs", "docs/architecture", GUIDE].into_iter().flat_map(in_folder).chain(others).collect()
}

/// The name by which a link leads to a heading: in small letters, hyphens for spaces, no other punctuation.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_heading(text: &str, wanted: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|heading| heading == wanted)
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let documents = documents();
    assert!(documents.len() > 30, "no documents were found: {documents:?}");
    for document in documents {
        let text = fs::read_to_string(&document).expect("text");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                _ => document.parent().expect("a folder").join(file),
            };
            assert!(target.exists(), "{}: {link}: no such file", document.display());
            let is_found = heading.is_empty() || has_heading(&fs::read_to_string(&target).expect("text"), heading);
            assert!(is_found, "{}: {link}: no such heading", document.display());
        }
    }
}

/// Cells of the first row in a document's tables whose first cell begins so.
fn row(document: &str, beginning: &str) -> Vec<String> {
    let text = read(document);
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut rows = rows.map(|row| row.split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
    rows.find(|cells| cells[0].starts_with(beginning)).unwrap_or_else(|| panic!("{document}: no row {beginning:?}"))
}

#[test]
fn figures_of_exits_and_switches_are_the_same_in_all_documents() {
    const BENCH: &str = "docs/bench.md";
    const EXITS: &str = "docs/architecture/exits.md";
    let stated = [
        ("`cpuid`", EXITS, "CPUID"),
        ("`port`", EXITS, "write of a port"),
        ("`msr`", EXITS, "RDMSR"),
        ("`port_in`", EXITS, "read of COM1"),
        ("`self_ipi`", EXITS, "self-IPI"),
        ("`mmio`", EXITS, "MMIO read"),
        ("`hlt_wake`", EXITS, "from a timer's deadline"),
        ("`cpuid`", "README.md", "CPUID"),
        ("`port`", "README.md", "write of a port"),
        ("`mmio`", "README.md", "read of a register of the I/O APIC"),
        ("`self_ipi`", "README.md", "self-IPI"),
        ("`vcpu_switch`", "README.md", "a switch between two vCPUs"),
    ];
    let number = |cell: &str| cell.trim_end_matches(" instructions").to_owned();
    for (measured, document, name) in stated {
        assert_eq!(number(&row(document, name)[1]), number(&row(BENCH, measured)[1]), "{document}: {name}");
    }
}
