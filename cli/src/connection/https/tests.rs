// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of a client's files, and of answers. `serve/tests/service/control.rs` has those of certificates.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::identity::{Files, Identity};

fn nowhere(_: &str) -> Option<OsString> {
    None
}

#[test]
fn the_command_line_counts_before_the_environment_and_that_before_the_users_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["cert.pem", "cert.key", "ca.pem"] {
        fs::write(folder.path().join(name), "").expect("written");
    }
    let stated = Identity { certificate: Some("stated.pem".into()), ..Identity::default() };
    let variable = |name: &str| (name != "BATON_CA").then(|| format!("{name}.file").into());
    let files = stated.files_from(variable, Some(folder.path())).expect("files");
    let (certificate, key) = (Some("stated.pem".into()), Some("BATON_CERT_KEY.file".into()));
    assert_eq!(files, Files { certificate, key, authority: folder.path().join("ca.pem") });
    let files = Identity::default().files_from(nowhere, Some(folder.path())).expect("files");
    assert_eq!(files.certificate, Some(folder.path().join("cert.pem")));
}

#[test]
fn an_authority_is_needed_and_a_certificate_is_not() {
    let error = Identity::default().files_from(nowhere, Some(Path::new("/nowhere"))).expect_err("none").to_string();
    assert!(error.contains("name its file with --ca or BATON_CA"), "{error}");
    let authority = Some(PathBuf::from("ca.pem"));
    let files = Identity { authority, ..Identity::default() }.files_from(nowhere, None).expect("files");
    assert_eq!(files.certificate, None);
    assert!(files.own().expect("none is fine").is_none());
}
