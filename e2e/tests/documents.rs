// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the documents promise is so: packages and dependencies as the manifests have them, options as the host parses
//! them, configurations that the tool accepts, tests and files that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use baton::config::Config;
use baton::paths::workspace;
use toml::{Table, Value};

type Names = BTreeSet<String>;

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

/// Folders with a manifest: the workspace's packages, and the fuzz targets' workspace.
fn packages() -> Vec<String> {
    let crates = fs::read_dir(root().join("crates")).expect("there are crates").flatten();
    let crates = crates.map(|entry| format!("crates/{}", entry.file_name().to_string_lossy()));
    let others =
        ["hypervisor", "cli", "lab", "bench", "dev", "e2e", "fuzz", "guests/agent", "guests/kvm", "guests/tiny"]
            .map(str::to_owned);
    crates.chain(others).filter(|folder| root().join(folder).join("Cargo.toml").is_file()).collect()
}

fn package(folder: &str) -> String {
    manifest(folder)["package"]["name"].as_str().expect("a package has a name").to_owned()
}

/// By package, what it imports of the others.
fn imports() -> BTreeMap<String, Names> {
    let own: Names = packages().iter().map(|folder| package(folder)).collect();
    let of = |folder: &String| &keys(&manifest(folder), &["dependencies"]) & &own;
    packages().iter().map(|folder| (folder.clone(), of(folder))).collect()
}

fn list(text: &str, separator: char) -> Names {
    text.split(separator).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The rows of a document's tables whose header begins with `first`, cell by cell.
fn rows(document: &str, first: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split(" |").map(|cell| cell.trim().to_owned()).collect();
    let table = read(document).lines().map(str::to_owned).collect::<Vec<_>>();
    let start = table.iter().position(|line| line.starts_with(&format!("| {first} |"))).expect("the table is there");
    table[start + 2..].iter().take_while(|line| line.starts_with('|')).map(|line| cells(line)).collect()
}

#[test]
fn every_package_is_listed_with_what_it_imports() {
    let listed: BTreeMap<_, _> = rows("ARCHITECTURE.md", "package")
        .into_iter()
        .map(|cells| (cells[0].replace('`', ""), list(&cells[2], ',')))
        .collect();
    assert_eq!(listed, imports(), "ARCHITECTURE.md, table of packages (left), is not what the manifests say (right)");
}

#[test]
fn the_diagram_has_every_dependency_and_no_other() {
    let text = read("ARCHITECTURE.md");
    let drawn = text.split("```mermaid").nth(1).and_then(|rest| rest.split("```").next()).expect("a diagram");
    let arrow = |line: &str| line.split_once("-->").map(|(from, to)| (from.trim().to_owned(), list(to, '&')));
    let drawn: BTreeMap<_, _> = drawn.lines().filter_map(arrow).collect();
    let real = imports().into_iter().filter(|(_, imports)| !imports.is_empty());
    let real: BTreeMap<_, _> = real.map(|(folder, imports)| (package(&folder), imports)).collect();
    assert_eq!(drawn, real, "ARCHITECTURE.md, diagram (left), is not what the manifests say (right)");
}

#[test]
fn every_dependency_is_listed_with_its_reason() {
    let declared = keys(&read("Cargo.toml").parse().expect("a manifest"), &["workspace", "dependencies"]);
    let own: Names = packages().iter().map(|folder| package(folder)).collect();
    let listed: Names =
        rows("ARCHITECTURE.md", "crate").iter().flat_map(|cells| list(&cells[0].replace('`', ""), ',')).collect();
    assert_eq!(listed, &declared - &own, "ARCHITECTURE.md, dependencies (left), is not what Cargo.toml says (right)");
}

#[test]
fn every_option_of_the_host_is_in_the_guide() {
    let told: Vec<_> = rows("docs/guide.md", "option").iter().map(|cells| cells.join(" | ")).collect();
    let there = boot::OPTIONS.iter().map(|o| format!("`{}` | {} | `{}` | {}", o.name, o.accepted, o.default, o.what));
    assert_eq!(told, there.collect::<Vec<_>>());
}

#[test]
fn every_configuration_in_the_guide_is_accepted() {
    let text = read("docs/guide.md");
    let examples: Vec<&str> = text.split("```toml").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["vmlinuz", "initrd.img", "probe.elf", "data.bin"] {
        fs::write(folder.path().join(name), "x").expect("written");
    }
    for example in examples {
        Config::parse(&folder.path().join("host.toml"), example).unwrap_or_else(|error| panic!("{error} in{example}"));
    }
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
        let names: Names = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert!(!names.is_empty(), "no test in {cells:?}");
        let is_there = |name: &&String| code.contains(&format!("fn {name}(")) || code.contains(&format!("\"{name}\""));
        let missing: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty(), "{missing:?} are no tests");
    }
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let docs = fs::read_dir(root().join("docs")).expect("documents").flatten().map(|entry| entry.path());
    let others = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "guests/README.md"];
    for document in others.map(|name| root().join(name)).into_iter().chain(docs.filter(|path| path.is_file())) {
        let text = fs::read_to_string(&document).expect("text");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let file = document.parent().expect("a folder").join(target);
            assert!(target.contains("://") || file.exists(), "{}: {target} is not there", document.display());
        }
    }
}
