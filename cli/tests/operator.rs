// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that an operator installs: it operates hosts and builds their bundles, without emulators and benches.

use std::fs;
use std::process::{Command, Output};

fn baton(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(arguments).current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    command.output().expect("started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_that_needs_an_emulator_is_no_command_of_an_operator() {
    for command in ["up", "demo", "emulator", "bench"] {
        let output = baton(&[command]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let error = text(&output.stderr);
        assert!(error.contains(&format!("unrecognized subcommand '{command}'")), "{error}");
    }
}

/// The shell checks the script's grammar; each command is in it.
#[test]
fn shells_complete_every_command() {
    for (shell, program) in [("bash", Some("bash")), ("zsh", Some("zsh")), ("fish", Some("fish")), ("elvish", None)] {
        let output = baton(&["completions", shell]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let script = text(&output.stdout);
        for word in ["update", "confirm", "confirm-within", "vm", "top"] {
            assert!(script.contains(word), "{shell} completes no {word}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("script");
        fs::write(&file, &script).expect("written");
        // A shell that is not installed checks nothing; bash always is.
        let checked = program.and_then(|program| Command::new(program).arg("-n").arg(&file).output().ok());
        assert!(checked.is_some() || shell != "bash", "there is no bash");
        let problem = checked.filter(|checked| !checked.status.success() || !checked.stderr.is_empty());
        assert!(problem.is_none(), "{shell}: {problem:?}");
    }
    assert_eq!(baton(&["completions", "csh"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page_without_warnings() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let output = baton(&["man", pages.to_str().expect("text")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for page in
        ["baton.1", "baton-update.1", "baton-confirm.1", "baton-top.1", "baton-vm-start.1", "baton-pci-assign.1"]
    {
        let path = pages.join(page);
        let source = fs::read_to_string(&path).expect(page);
        assert!(source.contains(".TH baton") && source.contains(".SH SYNOPSIS"), "{page}: {source}");
        // Where there is no `man`, the page's source is all that is checked.
        let Ok(shown) = Command::new("man").args(["--warnings", "-l"]).arg(&path).env("MANPAGER", "cat").output()
        else {
            continue;
        };
        assert!(shown.status.success() && shown.stderr.is_empty(), "{page}: {}", text(&shown.stderr));
    }
}

#[test]
fn an_error_is_one_line_and_its_status_has_its_kind() {
    let output = baton(&["info"]);
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(6), 1), "{error}");
    assert!(error.starts_with("baton: no host is running; `cargo baton up"), "{error}");
    let output = baton(&["info", "--json"]);
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!((output.status.code(), &error["error"]), (Some(6), &"unreachable".into()), "{error}");
}

#[test]
fn the_service_is_a_program_of_its_own_whose_arguments_are_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let [tool, service] = ["baton", "baton-serve"].map(|name| folder.path().join(name));
    std::fs::copy(env!("CARGO_BIN_EXE_baton"), &tool).expect("copied");
    let run = || {
        let mut command = Command::new(&tool);
        command.args(["serve", "--help", "--host", "a=lab:b"]).env("PATH", folder.path()).output().expect("started")
    };
    let output = run();
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("install it beside `baton`"), "{error}");
    std::fs::write(&service, "#!/bin/sh\necho \"$@\"\n").expect("written");
    std::fs::set_permissions(&service, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    assert_eq!(text(&run().stdout), "--help --host a=lab:b\n");
}
