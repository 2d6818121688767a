// SPDX-License-Identifier: MIT OR Apache-2.0
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn a_socket_has_its_mode_whatever_the_umask_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for mode in [0o600, 0o660, 0o666] {
        let path = folder.path().join(format!("{mode:o}.sock"));
        let _listener = listener(&path, mode).expect("a socket");
        assert_eq!(mode_of(&path), mode);
    }
}

#[test]
fn files_that_are_made_beside_a_socket_keep_their_modes() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            let path = folder.path().join("other");
            while !is_done.load(Ordering::Acquire) {
                fs::create_dir(&path).expect("a folder");
                assert_eq!(mode_of(&path) & 0o700, 0o700, "a folder that its owner cannot open");
                fs::remove_dir(&path).expect("removed");
            }
        });
        for number in 0..200 {
            let path = folder.path().join(format!("{number}.sock"));
            drop(listener(&path, 0o600).expect("a socket"));
            fs::remove_file(&path).expect("removed");
        }
        is_done.store(true, Ordering::Release);
        others.join().expect("no folder lacked a right");
    });
}
