// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn lines_that_the_bench_waits_for_and_files_are_in_the_script() {
    let script = of("stream:10.0.2.15:10.0.2.2:9", &["host", "host.cpio"]);
    for part in [SENDS, REPLACING, REPLACED, "mv $files", "files=\"/host /host.cpio\"", "tasks=\"stream:10.0.2.15"] {
        assert!(script.contains(part), "{part}: {script}");
    }
}
