// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of saved guests, whole and damaged.

use std::path::PathBuf;

use super::*;
use crate::bundle::addition;
use crate::config::Guest;
use crate::size::Size;

fn host() -> Manifest {
    let folder = tempfile::tempdir().unwrap();
    let kernel = folder.path().join("kernel");
    std::fs::write(&kernel, "a kernel").unwrap();
    let guest = Guest::new("web", kernel, Size { bytes: 16 << 20 });
    addition(&guest, &[]).unwrap().0
}

/// A file with a state of 10 bytes and memory of 8,192.
fn saved(folder: &Path) -> (File, PathBuf) {
    let path = folder.join("web.saved");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let at = memory_offset(10);
    file.set_len(at + 8192).unwrap();
    file.write_all_at(&[7; 10], HEAD_BYTES).unwrap();
    file.write_all_at(&[9; 100], at + 4096).unwrap();
    let (state, memory) = (Part::of(&file, HEAD_BYTES, 10).unwrap(), Part::of(&file, at, 8192).unwrap());
    Head::new("web", "0.1.0".into(), &host(), state, vec![memory]).unwrap().write(&file).unwrap();
    (file, path)
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = saved(folder.path());
    let head = Head::read(&file, &path).unwrap();
    assert_eq!((head.guest.as_str(), head.saved_by.as_str()), ("web", "0.1.0"));
    assert_eq!(head.state.read(&file).unwrap(), [7; 10]);
    let memory = head.memory[0].read(&file).unwrap();
    assert_eq!((&memory[..4096], &memory[4096..4196]), (&[0; 4096][..], &[9; 100][..]));
    let renamed = Manifest::addition_from_content(&head.configuration("other").unwrap()).unwrap();
    assert_eq!(renamed.guests[0].name, "other");
}

#[test]
fn each_changed_byte_of_a_part_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = saved(folder.path());
    let head = Head::read(&file, &path).unwrap();
    for (part, at) in [(&head.state, 3), (&head.memory[0], 0), (&head.memory[0], 8191)] {
        file.write_all_at(&[1], part.offset + at).unwrap();
        let error = part.read(&file).unwrap_err().to_string();
        assert!(error.contains("are damaged: their SHA-256 is"), "{error}");
    }
    file.set_len(head.memory[0].offset + 100).unwrap();
    assert_eq!(head.memory[0].read(&file).unwrap_err().to_string(), "the file is cut off");
}

#[test]
fn what_is_no_saved_guest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = saved(folder.path());
    let error = |file: &File| Head::read(file, &path).unwrap_err().to_string();
    file.write_all_at(b"Baton saved guest, format 2", 0).unwrap();
    assert!(error(&file).ends_with("of another format: use the tool of the release that saved it"), "{}", error(&file));
    file.write_all_at(b"\x7fELF", 0).unwrap();
    assert!(error(&file).ends_with("is no saved guest: `baton vm save` writes such a file"), "{}", error(&file));
    file.set_len(0).unwrap();
    assert!(error(&file).contains("no saved guest"), "{}", error(&file));
    let (file, path) = (saved(tempfile::tempdir().unwrap().path()).0, path);
    file.write_all_at(b"x", FORMAT.len() as u64).unwrap();
    assert!(Head::read(&file, &path).unwrap_err().to_string().ends_with("its description is damaged"));
}

#[test]
fn a_guest_that_the_host_does_not_have_is_not_described() {
    let part = Part { offset: 0, bytes: 0, sha256: String::new() };
    assert!(Head::new("db", String::new(), &host(), part, Vec::new()).is_err());
}
