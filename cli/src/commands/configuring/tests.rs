// SPDX-License-Identifier: MIT OR Apache-2.0
use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    create: VmCreate,
}

fn parsed(memory: &[&str]) -> Result<Guest> {
    let kernel = tempfile::NamedTempFile::new()?;
    let path = kernel.path().to_string_lossy();
    let options = ["create", "--name", "web", "--kernel", &path];
    let order = Line::try_parse_from(options.iter().chain(memory))?.create;
    by_options(&order, &Manifest::default()).map(|(guest, _)| guest)
}

#[test]
fn a_guest_by_options_has_its_memory_at_once_or_on_demand() {
    let guest = parsed(&["--memory", "64MiB"]).unwrap();
    assert_eq!((guest.memory, guest.memory_max), (Size::mebibytes(64), None));
    let guest = parsed(&["--memory", "64MiB", "--memory-max", "2GiB"]).unwrap();
    assert_eq!((guest.memory, guest.memory_max), (Size::mebibytes(64), Some(Size::mebibytes(2048))));
}

#[test]
fn less_than_its_memory_at_most_is_refused_as_in_a_host_toml() {
    let refused = parsed(&["--memory", "64MiB", "--memory-max", "32MiB"]).unwrap_err().to_string();
    assert!(refused.contains("memory_max is not possible"), "{refused}");
    assert!(parsed(&["--memory-max", "2GiB"]).is_err(), "a part of it has to be there in any case");
}
