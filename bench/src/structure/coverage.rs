// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of the update's protocol that its host tests execute, by the compiler's instrumentation
//! (`-C instrument-coverage`) and LLVM's tools: rustup's component llvm-tools, or the distribution's of the compiler's
//! LLVM.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Context, Found, PROTOCOL, PROTOCOL_FOLDER, left_out};

/// Folder into which profiles are written.
const FOLDER: &str = "target/coverage";
/// The compiler with instrumentation.
const COMPILER: &str = "scripts/lib/instrumented-rustc.sh";

/// LLVM's two programs.
struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

pub(super) fn measure(context: &Context) -> Result<Found> {
    let Some(tools) = tools()? else {
        return Ok(left_out(
            "LLVM's tools are not here; `scripts/setup.sh all`, or `rustup component add llvm-tools`, fetches them",
        ));
    };
    context.step("structure: the lines that an update's tests execute");
    let folder = context.root.join(FOLDER);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let tests = build(&context.root)?;
    succeed(cargo(&context.root).args(["--quiet"]).env("LLVM_PROFILE_FILE", folder.join("%p-%m.profraw")))?;
    let merged = folder.join("merged.profdata");
    let merge = succeed(Command::new(&tools.profdata).args(["merge", "-sparse", "-o"]).arg(&merged).arg(&folder));
    if let Err(error) = merge {
        return Ok(left_out(format!("{error:#}")));
    }
    let (first, others) = tests.split_first().context("the protocol has no tests")?;
    let mut export = Command::new(&tools.cov);
    export.args(["export", "--summary-only", "--instr-profile"]).arg(&merged).arg(first);
    for test in others {
        export.arg("-object").arg(test);
    }
    let summary = succeed(&mut export)?;
    share(&serde_json::from_slice(&summary.stdout)?, &context.root.join(PROTOCOL_FOLDER).join("src"))
}

/// `cargo test` for the protocol's package by the compiler with instrumentation.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).env("RUSTC_WORKSPACE_WRAPPER", root.join(COMPILER));
    command.args(["test", "--locked", "--package", PROTOCOL, "--lib", "--tests"]);
    command
}

/// Builds the tests; returns their programs.
fn build(root: &Path) -> Result<Vec<PathBuf>> {
    let output = succeed(cargo(root).args(["--no-run", "--message-format=json"]))?;
    let lines = String::from_utf8(output.stdout)?;
    let programs = lines.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?));
    Ok(programs.collect())
}

fn program(message: &Value) -> Option<PathBuf> {
    message.get("executable")?.as_str().map(PathBuf::from)
}

fn succeed(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{name} cannot be started"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} ended with {}: {}", output.status, error.trim_end());
    Ok(output)
}

/// Sums what `llvm-cov export` reports of the files in `folder` (its JSON, `data[0].files[].summary.lines`), test
/// modules excepted.
fn share(summary: &Value, folder: &Path) -> Result<Found> {
    let files = summary.pointer("/data/0/files").and_then(Value::as_array).context("llvm-cov reports no files")?;
    let (mut part, mut whole) = (0, 0);
    for file in files {
        let name = Path::new(file["filename"].as_str().unwrap_or_default());
        if name.starts_with(folder) && !name.to_string_lossy().ends_with("tests.rs") {
            let number = |key: &str| file["summary"]["lines"][key].as_u64().unwrap_or_default() as usize;
            part += number("covered");
            whole += number("count");
        }
    }
    ensure!(whole > 0, "no line of {} was compiled with instrumentation", folder.display());
    Ok(Found::Share { part, whole })
}

/// LLVM's tools, if this machine has them.
fn tools() -> Result<Option<Tools>> {
    let libraries = String::from_utf8(succeed(Command::new("rustc").args(["--print", "target-libdir"]))?.stdout)?;
    let beside = Path::new(libraries.trim()).with_file_name("bin");
    let version = String::from_utf8(succeed(Command::new("rustc").arg("-vV"))?.stdout)?;
    let llvm = llvm_version(&version).unwrap_or_default();
    let find = |name: &str| {
        let candidates = [beside.join(name).into_os_string(), OsString::from(format!("{name}-{llvm}"))];
        let is_there = |program: &OsString| Command::new(program).arg("--version").output().is_ok();
        candidates.into_iter().find(is_there).map(PathBuf::from)
    };
    Ok(find("llvm-profdata").zip(find("llvm-cov")).map(|(profdata, cov)| Tools { profdata, cov }))
}

/// The first number of the line `LLVM version: 22.1.2`: profiles are read by tools of that version.
fn llvm_version(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("LLVM version: "))?.split('.').next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_of_the_protocol_are_counted_without_its_tests() {
        let file = |name: &str, covered, count| json!({"filename": format!("/r/crates/update/src/{name}"), "summary": {"lines": {"covered": covered, "count": count}}});
        let files =
            [file("order.rs", 9, 10), file("a/b.rs", 1, 4), file("order_tests.rs", 1, 9), file("../x.rs", 1, 9)];
        let summary = json!({"data": [{"files": files}]});
        let folder = Path::new("/r/crates/update/src");
        assert_eq!(share(&summary, folder).expect("counted"), Found::Share { part: 11, whole: 23 });
        assert!(share(&summary, Path::new("/other")).is_err());
        assert!(share(&json!({}), folder).is_err());
    }

    #[test]
    fn the_compilers_llvm_is_read_from_its_version() {
        assert_eq!(llvm_version("rustc 1.95.0\nLLVM version: 22.1.2"), Some("22"));
        assert_eq!(llvm_version("rustc 1.95.0"), None);
    }

    #[test]
    fn a_tests_program_is_read_from_cargos_messages() {
        assert_eq!(program(&json!({"executable": "/t/update-1"})), Some("/t/update-1".into()));
        assert_eq!(program(&json!({"reason": "build-finished"})), None);
        assert_eq!(program(&json!({"executable": null})), None);
    }
}
